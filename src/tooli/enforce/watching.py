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

from tooli.contract.record import Record
from tooli.enforce.events import EVENTS
from tooli.enforce.needs import (
    is_library_call,
    is_needed,
    is_ours,
    is_pairing,
    places,
    prefixes,
    resolve,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from types import TracebackType
    from typing import Any

    from tooli.contract.capabilities import Allowance

CAPABILITIES = {
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
_PROBE = "tooli.watching"  # an event of our own: whether the hook hears any
_MARK = "_tooli_watches"  # on a thread that a watched function started
_FILES = frozenset(("read", "write", "make", "place", "delete"))
_NOT_FOLLOWED = frozenset(("delete", "make", "place"))  # acts on a link itself
MOST = 100
"""Violations that a watch keeps; a command that goes on and on fills no memory."""


class Violation(Record):
    """Something that a command touched, and did not declare or may not touch here."""

    capability: str
    target: str
    code: str  # E2003: not declared; E2005: the configuration does not allow it


class Watch:
    """What one call is held to, and what it did beyond that.

    `declared` is the command's own word: beyond it an act is noted, or refused where it `blocks`.
    `bounds` are the owner's, and always refuse. A `whole` process belongs to the call: threads
    that were there before it are held, too.
    """

    def __init__(
        self,
        declared: Allowance | None,
        bounds: Allowance | None = None,
        *,
        blocks: bool = False,
        whole: bool = False,
        most: int = MOST,
    ) -> None:
        self.blocks = blocks
        self.whole = whole
        self.ended = False
        self.shared = False  # it runs on an event loop that others use, too
        self.violations: list[Violation] = []
        self.hear: Callable[[], None] | None = None  # is told at once that there is one more
        self.denial: Violation | None = None  # the first that was refused: it sticks
        self._declared = _Limits(declared) if declared is not None else None
        self._bounds = _Limits(bounds) if bounds is not None else None
        both = [limits for limits in (self._declared, self._bounds) if limits is not None]
        self.everywhere = frozenset([act for act in _FILES if all([b.open_to(act) for b in both])])
        self._made: set[str] = set()
        self._seen: set[tuple[str, str]] = set()
        self._most = most

    def begin(self) -> bool:
        """The call starts: threads that nobody knows are its own from now on.

        False where nothing can be watched: another hook has a right to forbid ours.
        """
        if not _installed:
            _install()
        _live[self] = None
        return _heard

    @property
    def must_hold(self) -> bool:
        """Whether anything may be refused, so that nothing may run unwatched."""
        return self.blocks or self._bounds is not None

    def finish(self) -> None:
        """The call has ended; what it left running stays under watch."""
        self.ended = True
        _live.pop(self, None)

    def look(self, act: str, where: str) -> None:
        """Hold one act against the limits; raises PermissionError where it is refused."""
        declared, bounds = self._declared, self._bounds
        lets = declared is None or declared.allows(act, where, self._made)
        bounded = bounds is None or bounds.allows(act, where, self._made)
        if lets and bounded:
            if act == "make" and not os.path.lexists(where):  # what is there will not be made
                self._made.add(where)
            return
        if not _excused(act, where, not bounded):
            self._note(act, where, "E2003" if bounded else "E2005")

    def _note(self, act: str, where: str, code: str) -> None:
        capability = CAPABILITIES[act]
        violation = Violation(capability, where, code)
        if (capability, where) not in self._seen and len(self._seen) < self._most:
            self._seen.add((capability, where))
            self.violations.append(violation)
        refused = self.blocks or code == "E2005"
        if refused:
            self.denial = self.denial or violation
        if self.hear is not None:
            with unwatched():
                self.hear()
        if refused:
            said = "not declared" if code == "E2003" else "not allowed by the configuration"
            raise PermissionError(EACCES, f"{capability} is {said}", where)


class _Limits:
    """An allowance, ready for many looks."""

    __slots__ = ("_denied", "_flags", "_places")

    def __init__(self, allowance: Allowance) -> None:
        self._denied = prefixes(allowance.denied)
        self._flags = {
            "net": allowance.net,
            "spawn": allowance.spawns,
            "native": allowance.spawns,
            "env": allowance.env_writes,
        }
        reads, writes, deletes = [
            None if paths is None else prefixes(paths)
            for paths in (allowance.reads, allowance.writes, allowance.deletes)
        ]
        self._places = {
            "read": reads,
            "write": writes,
            "make": writes,
            "place": writes,
            "delete": deletes,
        }

    def open_to(self, act: str) -> bool:
        """Whether an act on files is allowed wherever they are: then nobody asks where."""
        return self._places[act] is None and not self._denied

    def allows(self, act: str, where: str, made: set[str]) -> bool:
        """Whether an act is within it; what a call made itself it may take away again."""
        flag = self._flags.get(act)
        if flag is not None:
            return flag
        whole = where if where[-1:] == os.sep else where + os.sep
        if self._denied and whole.startswith(self._denied):
            return False
        places = self._places[act]
        if places is None or whole.startswith(places):
            return True
        if act == "delete" and made and _is_made(where, made):
            return self.allows("write", where, made)
        return False


def _is_made(path: str, made: set[str]) -> bool:
    """Whether a path, or a folder that it is in, is one of those; there may be many."""
    while path not in made:
        above: str = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _excused(act: str, where: str, ordered: bool) -> bool:
    """Whether it is no doing of the command's; `ordered` is that the owner's lists refuse it."""
    if act == "native":
        return is_library_call()
    if act == "net":
        return is_pairing()
    return act not in ("spawn", "env") and is_needed(act, where, ordered)


# ------------------------------------------------------------------ whose event it is

_current: ContextVar[tuple[Watch, ...] | None] = ContextVar("tooli_watches", default=None)
_marks: dict[int, tuple[Watch, ...]] = {}  # threads that run a watched function, by their ident
_live: dict[Watch, None] = {}  # watches of calls that have not ended
_following = False  # whether a watched function has started a thread: it is marked itself
_lock = allocate_lock()
_installed = False
_heard = False  # whether the hook is really called


class Watching:
    """One stretch of a call under watch, in one thread. What was begun is ended, whatever comes
    in between: an interrupt may strike at any place."""

    __slots__ = ("_before", "_ident", "_token", "_watch")

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._ident = get_ident()
        self._before = _marks.get(self._ident)
        self._token: Token[tuple[Watch, ...] | None] | None = None

    def begin(self) -> None:
        """From now on."""
        watch, above = self._watch, _current.get() or ()
        watches = above if watch in above else (*above, watch)
        self._token = _current.set(watches)
        _marks[self._ident] = watches

    def end(self) -> None:
        """Until now."""
        if self._before is None:
            _marks.pop(self._ident, None)
        else:
            _marks[self._ident] = self._before
        if self._token is not None:
            _current.reset(self._token)


class unwatched:  # noqa: N801  reads like a word
    """The framework's own work in the middle of a command: a context manager."""

    def __enter__(self) -> None:
        self._token = _current.set(())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._token)


def _install() -> None:
    """Let Python call the hook from now on, once for the process."""
    global _installed
    with _lock:
        if _installed:
            return
        _installed = True
    if sys.version_info < (3, 12):
        _hear_of_threads()
    places()  # before a command could add to it
    sys.addaudithook(_hook)
    sys.audit(_PROBE)


def _hear_of_threads() -> None:
    """Older Pythons raise no event where a thread is started: it is asked for here."""
    import threading

    module: Any = threading
    start = module._start_new_thread

    def started(function: Any, args: Any, *more: Any) -> Any:
        _follow((function, args))
        return start(function, args, *more)

    module._start_new_thread = started


def _hook(event: str, args: tuple[Any, ...]) -> None:
    read = EVENTS.get(event)
    if read is None:
        other = _OTHERS.get(event)
        if other is not None:
            other(args)
        return
    watches = _current.get()
    if watches is None:
        if not (_marks or _live or _following):
            return
        watches = _owners()
    if watches:
        _judge(watches, event, read, args)


def _judge(
    watches: tuple[Watch, ...],
    event: str,
    read: Callable[[tuple[Any, ...]], tuple[tuple[str, Any], ...]],
    args: tuple[Any, ...],
) -> None:
    for act, target in read(args):
        if act not in _FILES:
            where: str | None = target
        elif all([act in watch.everywhere for watch in watches]):
            continue
        else:
            token = _current.set(())  # to look where it leads raises an event of its own
            try:
                where = resolve(target, act not in _NOT_FOLLOWED)
            finally:
                _current.reset(token)
        if where is not None:
            for watch in watches:
                watch.look(act, where)


def _owners() -> tuple[Watch, ...]:
    """Whose watch an event without a context is under."""
    ident = get_ident()
    watches = _marks.get(ident)
    if watches is not None:
        return watches
    threading = sys.modules.get("threading")
    thread = threading._active.get(ident) if threading is not None else None
    if thread is not None:
        followed = thread.__dict__.get(_MARK)
        if followed is not None and not (followed[-1].ended and _is_pooled(thread)):
            return followed
        held = tuple([watch for watch in tuple(_live) if watch.whole])
        return held if held and not is_ours() else ()
    return tuple(_live)


def _is_pooled(thread: Any) -> bool:
    """Whether a thread does work for anybody: it is nobody's when the call that made it is over."""
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", None) == "concurrent.futures.thread"


def _follow(args: tuple[Any, ...]) -> None:
    """A thread is started: it belongs to the watches of whoever starts it."""
    global _following
    watches = _current.get()
    if watches is None:
        watches = _marks.get(get_ident())
        if watches is None and _following:
            watches = _owners()
    if not watches:
        return
    thread = getattr(args[0], "__self__", None) if args else None
    if thread is None or not hasattr(thread, "_bootstrap"):
        return  # nobody knows it: it belongs to whoever is watched
    lent = str(getattr(thread, "name", "")).startswith("asyncio_")
    if lent and any([watch.shared for watch in watches]):
        return  # the loop's own, for everybody
    thread.__dict__[_MARK] = watches
    _following = True


def _hear(args: tuple[Any, ...]) -> None:
    global _heard
    _heard = True


_OTHERS: dict[str, Callable[[tuple[Any, ...]], None]] = {
    "_thread.start_new_thread": _follow,
    "_thread.start_joinable_thread": _follow,
    _PROBE: _hear,
}
