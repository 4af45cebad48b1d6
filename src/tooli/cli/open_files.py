"""Leaving a process in which more is open than stdin, stdout, stderr: whose it is, what then.

Loaded where there is any such descriptor: many an agent's shell leaves some to what it starts.
"""

from __future__ import annotations

import _io
import gc
import os
import sys

_WRITER_TYPES = (_io.BufferedWriter, _io.BufferedRandom)


def has_only_inherited_files(own_count: int) -> bool:
    """Whether all of it was left open by whoever started us, and nothing here writes to it.

    What is inherited is inheritable, and nothing is that Python opens; `ours` are the channel's.
    """
    if None in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        return False  # any file may have taken its number
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return False
    opened = [number for number in numbers if number > 2 and not _is_inherited(number)]
    return len(opened) <= own_count and has_no_open_writers()


def _is_inherited(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # it has been closed: the folder that was just read
        return True


def has_no_open_writers() -> bool:
    """Whether nobody has a file open for writing, by a look at every object there is."""
    writers = [obj for obj in gc.get_objects() if type(obj) in _WRITER_TYPES]
    streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    standard = [id(getattr(stream, "buffer", None)) for stream in streams]
    return all([id(obj) in standard for obj in writers])


def flush_open_files(gc_is_frozen: bool, *, is_exiting: bool) -> None:
    """Let the collector see what it was spared; have files written out where the process ends."""
    if gc_is_frozen:
        gc.unfreeze()
    if is_exiting:
        from tooli.execution.forking import flush_open_files

        flush_open_files()
