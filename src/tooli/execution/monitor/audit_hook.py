"""Watch over a running command: what it touches is held against what it declares.

    audit event ──▶ is it one of EVENTS? ──▶ whose is it? ──▶ does every watch of theirs allow it?
                     one look: most end here                    no ─▶ noted, or refused

Python calls one hook of ours for every event of the process; it can never be taken away again, so
it does next to nothing where nobody is watched. Whose event it is, the context says: it goes along
into tasks and into threads that are given it. A thread that the command starts is followed. A
thread that nothing is known about belongs to whoever is watched: at worst too much is forbidden.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_ident
from contextvars import ContextVar
from errno import EACCES

from tooli.core.record import Record
from tooli.execution.monitor.audit_events import EVENTS
from tooli.execution.monitor.implicit_access import (
    code_paths,
    is_framework_thread,
    is_implicit_access,
    is_library_call,
    is_socketpair,
    path_prefixes,
    resolve_path,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from types import TracebackType
    from typing import Any

    from tooli.core.declared_capabilities import AllowedAccess

ACTION_CAPABILITIES = {
    "read": "fs:read",
    "write": "fs:write",
    "make": "fs:write",
    "place": "fs:write",
    "delete": "fs:delete",
    "net": "net:read",
    "spawn": "proc:spawn",
    "native": "proc:spawn",
    "env": "env:write",
}
"""The capability that an act takes; `net:write` does for the network as well."""
_PROBE_EVENT = "tooli.watching"  # an event of our own: whether the hook hears any
_THREAD_ATTRIBUTE = "_tooli_watches"  # on a thread that a watched function started
_FILE_ACTIONS = frozenset(("read", "write", "make", "place", "delete"))
_NO_FOLLOW_ACTIONS = frozenset(("delete", "make", "place"))  # acts on a link itself
MAX_VIOLATIONS = 100
"""Violations that a watch keeps; a command that goes on and on fills no memory."""


class Violation(Record):
    """Something that a command touched, and did not declare or may not touch here."""

    capability: str
    target: str
    code: str  # E2003: not declared; E2005: the configuration does not allow it


class Monitor:
    """What one call is held to, and what it did beyond that.

    `declared` is the command's own word: beyond it an act is noted, or refused where it `blocks`.
    `bounds` are the owner's, and always refuse. A `whole` process belongs to the call: threads
    that were there before it are held, too.
    """

    def __init__(
        self,
        declared: AllowedAccess | None,
        bounds: AllowedAccess | None = None,
        *,
        is_blocking: bool = False,
        owns_process: bool = False,
        max_violations: int = MAX_VIOLATIONS,
    ) -> None:
        self.is_blocking = is_blocking
        self.owns_process = owns_process
        self.is_finished = False
        self.is_loop_shared = False  # it runs on an event loop that others use, too
        self.violations: list[Violation] = []
        self.on_violation: Callable[[], None] | None = (
            None  # is told at once that there is one more
        )
        self.denial: Violation | None = None  # the first that was refused: it sticks
        self._declared = _AllowanceMatcher(declared) if declared is not None else None
        self._bounds = _AllowanceMatcher(bounds) if bounds is not None else None
        matchers = [limits for limits in (self._declared, self._bounds) if limits is not None]
        self.unrestricted_actions = frozenset(
            [
                action
                for action in _FILE_ACTIONS
                if all([matcher.is_unrestricted(action) for matcher in matchers])
            ]
        )
        self._created: set[str] = set()
        self._seen: set[tuple[str, str]] = set()
        self._max_violations = max_violations

    def begin(self) -> bool:
        """The call starts: threads that nobody knows are its own from now on.

        False where nothing can be watched: another hook has a right to forbid ours.
        """
        if not _hook_installed:
            _install_hook()
        _active_monitors[self] = None
        return _hook_called

    @property
    def must_enforce(self) -> bool:
        """Whether anything may be refused, so that nothing may run unwatched."""
        return self.is_blocking or self._bounds is not None

    def finish(self) -> None:
        """The call has ended; what it left running stays under watch."""
        self.is_finished = True
        _active_monitors.pop(self, None)

    def check(self, action: str, target: str) -> None:
        """Hold one act against the limits; raises PermissionError where it is refused."""
        declared, bounds = self._declared, self._bounds
        is_declared = declared is None or declared.allows(action, target, self._created)
        is_within_bounds = bounds is None or bounds.allows(action, target, self._created)
        if is_declared and is_within_bounds:
            if action == "make" and not os.path.lexists(target):  # what is there will not be made
                self._created.add(target)
            return
        if not _is_exempt(action, target, not is_within_bounds):
            self._record_violation(action, target, "E2003" if is_within_bounds else "E2005")

    def _record_violation(self, action: str, target: str, code: str) -> None:
        capability = ACTION_CAPABILITIES[action]
        violation = Violation(capability, target, code)
        if (capability, target) not in self._seen and len(self._seen) < self._max_violations:
            self._seen.add((capability, target))
            self.violations.append(violation)
        is_refused = self.is_blocking or code == "E2005"
        if is_refused:
            self.denial = self.denial or violation
        if self.on_violation is not None:
            with unmonitored():
                self.on_violation()
        if is_refused:
            reason = "not declared" if code == "E2003" else "not allowed by the configuration"
            raise PermissionError(EACCES, f"{capability} is {reason}", target)


class _AllowanceMatcher:
    """An allowance, ready for many looks."""

    __slots__ = ("_denied", "_flags", "_prefixes")

    def __init__(self, allowance: AllowedAccess) -> None:
        self._denied = path_prefixes(allowance.denied)
        self._flags = {
            "net": allowance.net,
            "spawn": allowance.spawns,
            "native": allowance.spawns,
            "env": allowance.env_writes,
        }
        reads, writes, deletes = [
            None if paths is None else path_prefixes(paths)
            for paths in (allowance.reads, allowance.writes, allowance.deletes)
        ]
        self._prefixes = {
            "read": reads,
            "write": writes,
            "make": writes,
            "place": writes,
            "delete": deletes,
        }

    def is_unrestricted(self, action: str) -> bool:
        """Whether an act on files is allowed wherever they are: then nobody asks where."""
        return self._prefixes[action] is None and not self._denied

    def allows(self, action: str, target: str, created: set[str]) -> bool:
        """Whether an act is within it; what a call made itself it may take away again."""
        is_allowed = self._flags.get(action)
        if is_allowed is not None:
            return is_allowed
        target_prefix = target if target[-1:] == os.sep else target + os.sep
        if self._denied and target_prefix.startswith(self._denied):
            return False
        allowed_prefixes = self._prefixes[action]
        if allowed_prefixes is None or target_prefix.startswith(allowed_prefixes):
            return True
        if action == "delete" and created and _is_created(target, created):
            return self.allows("write", target, created)
        return False


def _is_created(path: str, created: set[str]) -> bool:
    """Whether a path, or a folder that it is in, is one of those; there may be many."""
    while path not in created:
        parent: str = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return True


def _is_exempt(action: str, target: str, is_owner_denied: bool) -> bool:
    """Whether it is no doing of the command's; `ordered` is that the owner's lists refuse it."""
    if action == "native":
        return is_library_call()
    if action == "net":
        return is_socketpair()
    return action not in ("spawn", "env") and is_implicit_access(action, target, is_owner_denied)


# ------------------------------------------------------------------ whose event it is

_current_monitors: ContextVar[tuple[Monitor, ...] | None] = ContextVar(
    "tooli_watches", default=None
)
_thread_monitors: dict[
    int, tuple[Monitor, ...]
] = {}  # threads that run a watched function, by their ident
_active_monitors: dict[Monitor, None] = {}  # watches of calls that have not ended
_has_followed_threads = (
    False  # whether a watched function has started a thread: it is marked itself
)
_lock = allocate_lock()
_hook_installed = False
_hook_called = False  # whether the hook is really called


class MonitorScope:
    """One stretch of a call under watch, in one thread. What was begun is ended, whatever comes
    in between: an interrupt may strike at any place."""

    __slots__ = ("_ident", "_monitor", "_previous", "_token")

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._ident = get_ident()
        self._previous = _thread_monitors.get(self._ident)
        self._token: Token[tuple[Monitor, ...] | None] | None = None

    def begin(self) -> None:
        """From now on."""
        monitor, outer = self._monitor, _current_monitors.get() or ()
        monitors = outer if monitor in outer else (*outer, monitor)
        self._token = _current_monitors.set(monitors)
        _thread_monitors[self._ident] = monitors

    def end(self) -> None:
        """Until now."""
        if self._previous is None:
            _thread_monitors.pop(self._ident, None)
        else:
            _thread_monitors[self._ident] = self._previous
        if self._token is not None:
            _current_monitors.reset(self._token)


class unmonitored:  # noqa: N801  reads like a word
    """The framework's own work in the middle of a command: a context manager."""

    def __enter__(self) -> None:
        self._token = _current_monitors.set(())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current_monitors.reset(self._token)


def _install_hook() -> None:
    """Let Python call the hook from now on, once for the process."""
    global _hook_installed
    with _lock:
        if _hook_installed:
            return
        _hook_installed = True
    if sys.version_info < (3, 12):
        _patch_thread_start()
    code_paths()  # before a command could add to it
    sys.addaudithook(_audit_hook)
    sys.audit(_PROBE_EVENT)


def _patch_thread_start() -> None:
    """Older Pythons raise no event where a thread is started: it is asked for here."""
    import threading

    module: Any = threading
    start = module._start_new_thread

    def start_and_follow(function: Any, args: Any, *more: Any) -> Any:
        _follow_thread((function, args))
        return start(function, args, *more)

    module._start_new_thread = start_and_follow


def _audit_hook(event: str, args: tuple[Any, ...]) -> None:
    extract_actions = EVENTS.get(event)
    if extract_actions is None:
        handler = _INTERNAL_EVENTS.get(event)
        if handler is not None:
            handler(args)
        return
    monitors = _current_monitors.get()
    if monitors is None:
        if not (_thread_monitors or _active_monitors or _has_followed_threads):
            return
        monitors = _owning_monitors()
    if monitors:
        _check_event(monitors, event, extract_actions, args)


def _check_event(
    monitors: tuple[Monitor, ...],
    event: str,
    extract_actions: Callable[[tuple[Any, ...]], tuple[tuple[str, Any], ...]],
    args: tuple[Any, ...],
) -> None:
    for action, target in extract_actions(args):
        if action not in _FILE_ACTIONS:
            resolved: str | None = target
        elif all([action in monitor.unrestricted_actions for monitor in monitors]):
            continue
        else:
            token = _current_monitors.set(())  # to look where it leads raises an event of its own
            try:
                resolved = resolve_path(target, action not in _NO_FOLLOW_ACTIONS)
            finally:
                _current_monitors.reset(token)
        if resolved is not None:
            for monitor in monitors:
                monitor.check(action, resolved)


def _owning_monitors() -> tuple[Monitor, ...]:
    """Whose watch an event without a context is under."""
    ident = get_ident()
    monitors = _thread_monitors.get(ident)
    if monitors is not None:
        return monitors
    threading = sys.modules.get("threading")
    thread = threading._active.get(ident) if threading is not None else None
    if thread is not None:
        inherited = thread.__dict__.get(_THREAD_ATTRIBUTE)
        if inherited is not None and not (inherited[-1].is_finished and _is_pool_thread(thread)):
            return inherited
        process_monitors = tuple(
            [monitor for monitor in tuple(_active_monitors) if monitor.owns_process]
        )
        return process_monitors if process_monitors and not is_framework_thread() else ()
    return tuple(_active_monitors)


def _is_pool_thread(thread: Any) -> bool:
    """Whether a thread does work for anybody: it is nobody's when the call that made it is over."""
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", None) == "concurrent.futures.thread"


def _follow_thread(args: tuple[Any, ...]) -> None:
    """A thread is started: it belongs to the watches of whoever starts it."""
    global _has_followed_threads
    monitors = _current_monitors.get()
    if monitors is None:
        monitors = _thread_monitors.get(get_ident())
        if monitors is None and _has_followed_threads:
            monitors = _owning_monitors()
    if not monitors:
        return
    thread = getattr(args[0], "__self__", None) if args else None
    if thread is None or not hasattr(thread, "_bootstrap"):
        return  # nobody knows it: it belongs to whoever is watched
    is_loop_thread = str(getattr(thread, "name", "")).startswith("asyncio_")
    if is_loop_thread and any([monitor.is_loop_shared for monitor in monitors]):
        return  # the loop's own, for everybody
    thread.__dict__[_THREAD_ATTRIBUTE] = monitors
    _has_followed_threads = True


def _mark_hook_called(args: tuple[Any, ...]) -> None:
    global _hook_called
    _hook_called = True


_INTERNAL_EVENTS: dict[str, Callable[[tuple[Any, ...]], None]] = {
    "_thread.start_new_thread": _follow_thread,
    "_thread.start_joinable_thread": _follow_thread,
    _PROBE_EVENT: _mark_hook_called,
}
