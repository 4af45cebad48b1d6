"""Forking in a process that does other things as well: its locks, its pipes, its signals."""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock

from tooli.execution.process_tree import SIGINT, signals

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.execution.process_runner import ChildCall

open_pipe_ends: set[int] = set()
"""Our ends of the pipes of all that is under way: no other process may hold them."""
_fork_locks = [allocate_lock()]


def fork_lock() -> Any:
    """Held from the making of pipes until a fork knows which of them are its own."""
    return _fork_locks[0]


def fork() -> int:
    """Fork; that there are other threads is known, and what it means stands in the documents."""
    if sys.version_info < (3, 12):
        return os.fork()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def open_pipes() -> list[int]:
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
        for opened in ends:
            os.close(opened)
        raise
    return ends


def reset_after_fork(pipe_ends: Sequence[int]) -> None:
    """In a process that was forked: nothing is under way here yet."""
    for descriptor in (*open_pipe_ends, *pipe_ends):
        os.close(descriptor)
    open_pipe_ends.clear()
    _fork_locks[0] = allocate_lock()


def flush_open_files() -> None:
    """Write out what open files still hold: so nothing is there twice after a fork, or lost at an
    end."""
    import _io
    import gc

    file_types = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)
    for file in gc.get_objects():
        if type(file) in file_types:
            try:
                if not file.closed and file.writable():
                    file.flush()
            except (OSError, ValueError):
                pass


class DeferredInterrupt:
    """While a function runs at a terminal, Ctrl-C is its own to answer."""

    def __init__(self, child_call: ChildCall) -> None:
        self._child_call = child_call
        self._previous_handler: Any = None

    def __enter__(self) -> Any:
        """What answered it before: the function has that."""
        is_default = signals.getsignal(SIGINT) is signals.default_int_handler
        if is_default and self._child_call.call.caller.owns_process:
            try:
                self._previous_handler = signals.signal(SIGINT, self._child_call.interrupt)
            except ValueError:  # not the main thread: signals do not come here
                pass
        return self._previous_handler

    def __exit__(self, *_: object) -> None:
        if self._previous_handler is not None:
            signals.signal(SIGINT, self._previous_handler)
