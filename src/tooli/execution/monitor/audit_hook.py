"""Monitor a running command: compare what it accesses with what it declares.

    audit event ──▶ in EVENTS? ──▶ which calls? ──▶ does each monitor allow it?
                    most events end here              no ─▶ recorded or refused

Python calls one hook for every event of the process. A hook cannot be removed, so it does almost
nothing if no call is monitored. A context variable says which calls an event belongs to. Tasks
inherit it, and so do threads that copy the context. A thread that a command starts belongs to the
command's call. A thread that `threading` does not know, such as one that `_thread` started, belongs
to all monitored calls, so an allowed action may be refused there. Other threads are monitored only
if the process runs a single call.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_ident
from contextvars import ContextVar
from errno import EACCES

from tooli.core import Record, find_loaded
from tooli.execution.monitor.actions import (
    EVENTS,
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
    from typing import Any

    from tooli.core.declared_capabilities import AllowedAccess
    from tooli.execution.monitor.actions import Actions, Args

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
"""The capability that an action needs; `net:write` includes `net:read`."""
_PROBE_EVENT = "tooli.monitor"  # raised once to check that the hook is called
_THREAD_ATTRIBUTE = "_tooli_monitors"  # attribute of threads that a monitored function started
_FILE_ACTIONS = frozenset(("read", "write", "make", "place", "delete"))
_NO_FOLLOW_ACTIONS = frozenset(("delete", "make", "place"))  # actions on a link itself
_CREATING_ACTIONS = frozenset(("write", "make", "place"))  # if there is nothing at the path
MAX_VIOLATIONS = 100
"""Maximum number of violations that a monitor keeps."""


class Violation(Record):
    """An access that the command does not declare, or that the configuration forbids."""

    capability: str
    target: str
    code: str  # E2003: not declared; E2005: forbidden by the configuration


class Monitor:
    """The limits of one call, and its violations.

    Args:
        declared: What the command declares. Other actions are violations.
        bounds: What the configuration allows. Other actions are always refused.
        is_blocking: Refuse undeclared actions instead of only recording them.
        owns_process: True if the process runs only this call. Its threads then belong to the call,
            except threads of the framework.
        max_violations: How many violations are kept.
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
        self.is_loop_shared = False  # the call runs on an event loop that other calls use too
        self.violations: list[Violation] = []
        self.on_violation: Callable[[], None] | None = None  # called for each new violation
        # The first refused action. The call fails even if the function caught the error.
        self.denial: Violation | None = None
        self._declared = _AccessMatcher(declared) if declared is not None else None
        self._bounds = _AccessMatcher(bounds) if bounds is not None else None
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
        """Start monitoring.

        Actions of threads that `threading` does not know are checked as actions of this call.

        Return False if nothing can be monitored, because another audit hook rejected this one.
        """
        if not _hook_installed:
            _install_hook()
        _active_monitors[self] = None
        return _hook_called

    @property
    def must_enforce(self) -> bool:
        """True if actions may be refused, so that the call must not run without a monitor."""
        return self.is_blocking or self._bounds is not None

    def finish(self) -> None:
        """Mark the call as ended. Threads that it left running stay monitored."""
        self.is_finished = True
        _active_monitors.pop(self, None)

    def check(self, action: str, target: str) -> None:
        """Check one action; raise PermissionError if it is refused."""
        declared, bounds = self._declared, self._bounds
        is_declared = declared is None or declared.allows(action, target, self._created)
        is_within_bounds = bounds is None or bounds.allows(action, target, self._created)
        if is_declared and is_within_bounds:
            if action in _CREATING_ACTIONS and not os.path.lexists(target):
                self._created.add(target)  # an existing file is not created
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


class _AccessMatcher:
    """The allowed access of a call, prepared for fast checks."""

    __slots__ = ("_denied", "_flags", "_prefixes")

    def __init__(self, access: AllowedAccess) -> None:
        self._denied = path_prefixes(access.denied)
        self._flags = {
            "net": access.net,
            "spawn": access.spawns,
            "native": access.spawns,
            "env": access.env_writes,
        }
        reads, writes, deletes = [
            None if paths is None else path_prefixes(paths)
            for paths in (access.reads, access.writes, access.deletes)
        ]
        self._prefixes = {
            "read": reads,
            "write": writes,
            "make": writes,
            "place": writes,
            "delete": deletes,
        }

    def is_unrestricted(self, action: str) -> bool:
        """True if an action on files is allowed at every path."""
        return self._prefixes[action] is None and not self._denied

    def allows(self, action: str, target: str, created: set[str]) -> bool:
        """True if an action is allowed.

        A call may also delete what it created itself, if it may write there.
        """
        is_allowed = self._flags.get(action)
        if is_allowed is not None:
            return is_allowed
        target_prefix = target if target[-1:] == os.sep else target + os.sep
        if self._denied and target_prefix.startswith(self._denied):
            return False
        allowed_prefixes = self._prefixes[action]
        if allowed_prefixes is None or target_prefix.startswith(allowed_prefixes):
            return True
        if action == "delete" and created and is_within(target, created):
            return self.allows("write", target, created)
        return False


def is_within(path: str, created: set[str]) -> bool:
    """True if a path, or a parent of it, is in the set."""
    while path not in created:
        parent: str = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return True


def _is_exempt(action: str, target: str, is_denied_by_config: bool) -> bool:
    """True if Python, a library or the framework does the action, and not the command."""
    if action == "native":
        return is_library_call()
    if action == "net":
        return is_socketpair()
    return action not in ("spawn", "env") and is_implicit_access(
        action, target, is_denied_by_config
    )


# ------------------------------------------------------------------ which calls an event belongs to

_current_monitors: ContextVar[tuple[Monitor, ...] | None] = ContextVar(
    "tooli_monitors", default=None
)
# Monitors of threads that run a monitored function, by thread ident.
_thread_monitors: dict[int, tuple[Monitor, ...]] = {}
_active_monitors: dict[Monitor, None] = {}  # monitors of calls that have not ended
# True once a monitored function has started a thread. Such a thread has _THREAD_ATTRIBUTE.
_has_followed_threads = False
_lock = allocate_lock()
_hook_installed = False
_hook_called = False  # set by the hook itself


class MonitorScope:
    """Monitors a section of a call in the current thread, from begin() to end().

    The previous state is saved when the object is created, so end() restores it even if an
    interrupt stops begin().
    """

    __slots__ = ("_ident", "_monitor", "_previous", "_token")

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._ident = get_ident()
        self._previous = _thread_monitors.get(self._ident)
        self._token: Token[tuple[Monitor, ...] | None] | None = None

    def begin(self, *, is_for_thread: bool = True) -> None:
        """Start the section.

        It belongs to the current task only, if `is_for_thread` is False.
        """
        monitor, outer = self._monitor, _current_monitors.get()
        if outer is None:  # such as in a thread that a monitored function started
            outer = _owning_monitors()
        monitors = outer if monitor in outer else (*outer, monitor)
        self._token = _current_monitors.set(monitors)
        if is_for_thread:
            _thread_monitors[self._ident] = monitors

    def end(self) -> None:
        """End the section."""
        if self._previous is None:
            _thread_monitors.pop(self._ident, None)
        else:
            _thread_monitors[self._ident] = self._previous
        if self._token is not None:
            _current_monitors.reset(self._token)


class unmonitored:  # noqa: N801  lower case, like contextlib.suppress
    """Context manager that turns monitoring off while the framework itself does something."""

    def __enter__(self) -> None:
        self._token = _current_monitors.set(())

    def __exit__(self, *_: object) -> None:
        _current_monitors.reset(self._token)


def _install_hook() -> None:
    """Install the audit hook, once per process."""
    global _hook_installed
    with _lock:
        if _hook_installed:
            return
        _hook_installed = True
    if sys.version_info < (3, 12):
        _patch_thread_start()
    code_paths()  # before a command can change sys.path
    sys.addaudithook(_audit_hook)
    sys.audit(_PROBE_EVENT)


def _patch_thread_start() -> None:
    """Follow new threads on Python 3.10 and 3.11, which lack the audit event for them."""
    import threading

    module: Any = threading
    start = module._start_new_thread

    def start_and_follow(function: Any, args: Any, *more: Any) -> Any:
        _follow_thread((function, args))
        return start(function, args, *more)

    module._start_new_thread = start_and_follow


def _audit_hook(event: str, args: Args) -> None:
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
        _check_actions(monitors, extract_actions(args))


def _check_actions(monitors: tuple[Monitor, ...], actions: Actions) -> None:
    """Resolve the targets of actions and check each action with all monitors."""
    for action, target in actions:
        if action not in _FILE_ACTIONS:
            resolved: str | None = target
        elif all([action in monitor.unrestricted_actions for monitor in monitors]):
            continue
        else:
            token = _current_monitors.set(())  # resolving a path raises events as well
            try:
                resolved = resolve_path(target, action not in _NO_FOLLOW_ACTIONS)
            finally:
                _current_monitors.reset(token)
        if resolved is not None:
            for monitor in monitors:
                monitor.check(action, resolved)


def _owning_monitors() -> tuple[Monitor, ...]:
    """Return the monitors of the current thread, whose context variable is not set."""
    ident = get_ident()
    monitors = _thread_monitors.get(ident)
    if monitors is not None:
        return monitors
    threads: dict[int, Any] = find_loaded("threading", "_active") or {}
    thread = threads.get(ident)
    # A thread of `_thread` gets a _DummyThread when it calls threading.current_thread().
    if thread is not None and type(thread).__name__ != "_DummyThread":
        inherited = thread.__dict__.get(_THREAD_ATTRIBUTE)
        if inherited is not None and not (inherited[-1].is_finished and _is_pool_thread(thread)):
            return inherited
        process_monitors = tuple(
            [monitor for monitor in tuple(_active_monitors) if monitor.owns_process]
        )
        return process_monitors if process_monitors and not is_framework_thread() else ()
    return tuple(_active_monitors)


def _is_pool_thread(thread: Any) -> bool:
    """True if a thread belongs to an executor, which outlives the call that created it."""
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", None) == "concurrent.futures.thread"


def _follow_thread(args: Args) -> None:
    """Mark a new thread as belonging to the monitors of the thread that starts it."""
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
        return  # not a threading.Thread: it belongs to all monitored calls
    is_loop_thread = str(getattr(thread, "name", "")).startswith("asyncio_")
    if is_loop_thread and any([monitor.is_loop_shared for monitor in monitors]):
        return  # a pool thread of the event loop, which other calls use as well
    thread.__dict__[_THREAD_ATTRIBUTE] = monitors
    _has_followed_threads = True


def _mark_hook_called(args: Args) -> None:
    global _hook_called
    _hook_called = True


_INTERNAL_EVENTS: dict[str, Callable[[Args], None]] = {
    "_thread.start_new_thread": _follow_thread,
    "_thread.start_joinable_thread": _follow_thread,
    _PROBE_EVENT: _mark_hook_called,
}
