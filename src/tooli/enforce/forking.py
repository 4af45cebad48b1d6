"""Forking in a process that does other things as well: its locks, its pipes, its signals."""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock

from tooli.enforce.processes import INT, signals

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.enforce.child import Errand

under_way: set[int] = set()
"""Our ends of the pipes of all that is under way: no other process may hold them."""
_locks = [allocate_lock()]


def forking() -> Any:
    """Held from the making of pipes until a fork knows which of them are its own."""
    return _locks[0]


def fork() -> int:
    """Fork; that there are other threads is known, and what it means stands in the documents."""
    if sys.version_info < (3, 12):
        return os.fork()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def pipes() -> list[int]:
    """Four pipes, each with the end to read from first; none is taken for a standard stream."""
    ends: list[int] = []
    try:
        for _ in range(4):
            ends.extend(os.pipe())
        for i, end in enumerate(ends):
            if end < 3:  # somebody has closed one of those
                from fcntl import F_DUPFD_CLOEXEC, fcntl

                ends[i] = fcntl(end, F_DUPFD_CLOEXEC, 3)
                os.close(end)
    except OSError:
        for one in ends:
            os.close(one)
        raise
    return ends


def start_anew(ends: Sequence[int]) -> None:
    """In a process that was forked: nothing is under way here yet."""
    for mine in (*under_way, *ends):
        os.close(mine)
    under_way.clear()
    _locks[0] = allocate_lock()


def write_out() -> None:
    """Write out what open files still hold: so nothing is there twice after a fork, or lost at an
    end."""
    import _io
    import gc

    kinds = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)
    for one in gc.get_objects():
        if type(one) in kinds:
            try:
                if not one.closed and one.writable():
                    one.flush()
            except (OSError, ValueError):
                pass


class Deferred:
    """While a function runs at a terminal, Ctrl-C is its own to answer."""

    def __init__(self, errand: Errand) -> None:
        self._errand = errand
        self._before: Any = None

    def __enter__(self) -> Any:
        """What answered it before: the function has that."""
        usual = signals.getsignal(INT) is signals.default_int_handler
        if usual and self._errand.call.caller.surface == "cli":
            try:
                self._before = signals.signal(INT, self._errand.interrupt)
            except ValueError:  # not the main thread: signals do not come here
                pass
        return self._before

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signals.signal(INT, self._before)
