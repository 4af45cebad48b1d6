"""Make large messages over stdio faster: a larger pipe, and memory that is used again.

The first large message loads this module.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from tooli.execution.processes import load_c_function

PIPE_BYTES = 1 << 20
"""Size of the pipe to a client that gets large messages: the limit for users on Linux."""

KEPT_BYTES = 8 << 20
"""Free memory that the C library keeps in each of its arenas. Larger blocks are always released."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt, in the C library of GNU


def prepare_for_large_messages(fd: int) -> None:
    """Prepare the process and the pipe at a descriptor for large messages."""
    if sys.platform == "linux":
        widen_pipe(fd)
        keep_freed_memory()


def widen_pipe(fd: int) -> None:
    """Let a pipe hold more, so that a large message needs fewer switches between the processes."""
    import fcntl  # not on Windows

    with suppress(OSError):  # no pipe, or the user has too many large ones
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def keep_freed_memory() -> None:
    """Let the C library use the memory of a message for the next one.

    Otherwise it returns most of the memory after each message, and the kernel clears it for the
    next one. That takes about as long as everything else that a text of 1 MB needs.
    """
    mallopt = load_c_function("mallopt")
    for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
        mallopt(option, KEPT_BYTES)
