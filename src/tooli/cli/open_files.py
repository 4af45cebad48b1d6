"""Handle files that are still open when the process exits.

An ordinary call loads this module only if files other than stdin, stdout and stderr are open. This
is common, because the shells of many agents pass open files to their child processes.
"""

from __future__ import annotations

import _io
import gc
import os
import sys

_WRITER_TYPES = (_io.BufferedWriter, _io.BufferedRandom)


def has_only_inherited_files(own_count: int) -> bool:
    """True if all open files are inherited from the parent process, and none is open for writing.

    Inherited files are inheritable, while files that Python opens are not. `own_count` is the
    number of descriptors that `StdoutGuard` keeps.
    """
    if None in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        return False  # descriptor 0, 1 or 2 may belong to another file
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return False
    opened = [number for number in numbers if number > 2 and not _is_inherited(number)]
    return len(opened) <= own_count and has_no_open_writers()


def _is_inherited(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # the descriptor of listdir, which is already closed
        return True


def has_no_open_writers() -> bool:
    """True if no file except stdout and stderr is open for writing.

    This function visits every object that the garbage collector tracks.
    """
    writers = [obj for obj in gc.get_objects() if type(obj) in _WRITER_TYPES]
    streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    standard = [id(getattr(stream, "buffer", None)) for stream in streams]
    return all([id(obj) in standard for obj in writers])


def flush_open_files(gc_is_frozen: bool, *, is_exiting: bool) -> None:
    """Unfreeze the garbage collector; flush all files if the process is exiting."""
    if gc_is_frozen:
        gc.unfreeze()
    if is_exiting:
        from tooli.execution.processes import flush_open_files

        flush_open_files()
