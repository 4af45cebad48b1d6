"""Fork safely in a process with other threads: locks, pipes and signals."""

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
"""Pipe ends of running calls. A new child process closes them (reset_after_fork)."""
_fork_locks = [allocate_lock()]


def fork_lock() -> Any:
    """Return the lock that is held while pipes are opened and the process forks."""
    return _fork_locks[0]


def fork() -> int:
    """Fork without Python's warning about threads (docs/timeouts.md explains why it is safe)."""
    if sys.version_info < (3, 12):
        return os.fork()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def open_pipes() -> list[int]:
    """Open four pipes and return their ends, each read end before its write end.

    All descriptors are 3 or higher, so none is taken for a standard stream.
    """
    ends: list[int] = []
    try:
        for _ in range(4):
            ends.extend(os.pipe())
        for i, end in enumerate(ends):
            if end < 3:  # a standard stream was closed
                from fcntl import F_DUPFD_CLOEXEC, fcntl

                ends[i] = fcntl(end, F_DUPFD_CLOEXEC, 3)
                os.close(end)
    except OSError:
        for opened in ends:
            os.close(opened)
        raise
    return ends


def reset_after_fork(pipe_ends: Sequence[int]) -> None:
    """Close inherited pipe ends and reset the lock in a forked process."""
    for descriptor in (*open_pipe_ends, *pipe_ends):
        os.close(descriptor)
    open_pipe_ends.clear()
    _fork_locks[0] = allocate_lock()


def flush_open_files() -> None:
    """Flush open files, so that buffered data is neither lost nor written twice after a fork."""
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
    """Context manager that passes the first Ctrl-C to the function instead of raising here."""

    def __init__(self, child_call: ChildCall) -> None:
        self._child_call = child_call
        self._previous_handler: Any = None

    def __enter__(self) -> Any:
        """Return the previous SIGINT handler, which the worker installs; None if not replaced."""
        is_default = signals.getsignal(SIGINT) is signals.default_int_handler
        if is_default and self._child_call.call.caller.owns_process:
            try:
                self._previous_handler = signals.signal(SIGINT, self._child_call.interrupt)
            except ValueError:  # only the main thread can set signal handlers
                pass
        return self._previous_handler

    def __exit__(self, *_: object) -> None:
        if self._previous_handler is not None:
            signals.signal(SIGINT, self._previous_handler)
