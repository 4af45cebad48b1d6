"""Processes: who descends from whom, and how all of them are ended. Linux has the whole of it."""

from __future__ import annotations

import os
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def _load_signals() -> Any:
    try:
        import _signal as found  # pyright: ignore[reportMissingImports]
    except ImportError:
        import signal as found
    return found  # pyright: ignore[reportUnknownVariableType]


signals = _load_signals()
"""`signal`, as far as it is C: the rest of it imports enum."""
_ON_PARENTS_DEATH, _SUBREAPER = 1, 36  # what prctl calls them
KILL, TERM, INT = 9, 15, 2
PATIENCE = 2.0
"""Seconds after which processes that cannot be killed are left to themselves."""


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends; False where that cannot be."""
    return prctl(_SUBREAPER, 1)


def die_with_parent() -> bool:
    """Have this process killed when the one that made it ends."""
    return prctl(_ON_PARENTS_DEATH, KILL)


def prctl(option: int, value: int) -> bool:
    """Ask the kernel for something about this process; whether it has done so."""
    native, place = load_prctl()
    return native is not None and native.call_cdeclfunction(place, (option, value, 0, 0, 0)) == 0


_loaded: list[tuple[Any, Any]] = []


def load_prctl() -> tuple[Any, Any]:
    """The kernel's function, looked for once, unless several threads begin at the same moment.

    The C half of `ctypes` does for it, a tenth of the whole.
    """
    if not _loaded:
        try:
            import _ctypes as native  # pyright: ignore[reportMissingImports]

            found: Any = native
            _loaded.append((found, found.dlsym(found.dlopen(None, 0), "prctl")))
        except (ImportError, AttributeError, OSError):
            _loaded.append((None, None))
    return _loaded[0]


def signal_to(pid: int, number: int) -> bool:
    """Send a signal; False where nobody is there to take it."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


class Process:
    """What /proc tells of a living process."""

    __slots__ = ("group", "name", "parent")

    def __init__(self, parent: int, group: int, name: str) -> None:
        self.parent = parent
        self.group = group
        self.name = name


def living() -> dict[int, Process]:
    """All processes that have not ended; none where there is no /proc."""
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    seen = [(int(name), _read(name)) for name in names]
    return {pid: process for pid, process in seen if process is not None}


def _read(pid: str) -> Process | None:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            head, _, tail = os.read(descriptor, 4096).rpartition(b")")
        finally:
            os.close(descriptor)
    except OSError:
        return None
    fields = tail.split(None, 3)
    if len(fields) < 3 or fields[0] in (b"Z", b"X"):
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return Process(int(fields[1]), int(fields[2]), name)


def descendants(root: int, among: Mapping[int, Process]) -> dict[int, str]:
    """Those of the processes that are below one, with their names."""
    children: dict[int, list[int]] = {}
    for pid, process in among.items():
        children.setdefault(process.parent, []).append(pid)
    below: dict[int, str] = {}
    ahead = [root]
    while ahead:
        for pid in children.get(ahead.pop(), ()):
            if pid not in below and pid != root:
                below[pid] = among[pid].name
                ahead.append(pid)
    return below


def end_descendants(root: int, *, buries: bool = False) -> list[str]:
    """Kill whatever descends from a process until nothing does; the names of what was killed.

    Whoever forks while it is looked for is found by the next look: an orphan becomes the
    child of `root`, where that has adopted them all. Only who `buries` them takes how they
    ended: somebody else may wait for that.
    """
    ended: dict[int, str] = {}
    until = monotonic() + PATIENCE
    while monotonic() < until:
        seen = living()
        below = descendants(root, seen)
        if not below:
            break
        for group in _groups_of(below, seen):
            signal_to(-group, KILL)
        for pid in below:
            signal_to(pid, KILL)
        ended.update(below)
        if buries:
            reap()
    return list(ended.values())


def _groups_of(below: Mapping[int, str], seen: Mapping[int, Process]) -> set[int]:
    """The groups that nobody else is in: killed as a whole, not even a newborn gets away."""
    ours = {seen[pid].group for pid in below}
    others = {process.group for pid, process in seen.items() if pid not in below}
    return {group for group in ours - others if group > 1}


def end_group(leader: int) -> None:
    """Kill a process and its group: all that can be found where there is no /proc."""
    try:
        os.killpg(leader, KILL)
    except OSError:
        signal_to(leader, KILL)


def reap() -> dict[int, int]:
    """The children that have ended, with how they did."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def close_all_but(kept: Sequence[int]) -> None:
    """Close every descriptor of this process but a few."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        numbers = list(range(1024))
    for number in numbers:
        if number not in kept:
            try:
                os.close(number)
            except OSError:
                pass
