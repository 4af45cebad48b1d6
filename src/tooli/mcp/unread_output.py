"""What was written to the client and not read yet: wait for it, and how much it can be.

Only calls that report progress and large messages load this module.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from time import monotonic, sleep

READ_TIMEOUT, POLL_INTERVAL, FIXED_DELAY = 0.25, 0.0005, 0.005
"""Seconds to wait until a client has read, between two checks, and where it cannot be checked."""


PIPE_BYTES = 1 << 20
"""Size of the pipe to a client that gets large messages: the limit for users on Linux."""


def widen_pipe(fd: int) -> None:
    """Let a pipe hold more, so that a large message needs fewer switches between the processes."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # no pipe, or the user has too many large ones
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def wait_until_read(fd: int) -> None:
    """Wait until a client has read everything that was written to a pipe or socket, for a while."""
    deadline = monotonic() + READ_TIMEOUT
    while (unread := count_unread_bytes(fd)) and monotonic() < deadline:
        sleep(POLL_INTERVAL)
    if unread is None:
        sleep(FIXED_DELAY)


def count_unread_bytes(fd: int) -> int | None:
    """Return how many written bytes the other end has not read.

    It is 0 for a file, a terminal or a closed descriptor. None: the system cannot tell.
    """
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return 0
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        return 0
    if sys.platform != "linux":
        return None
    import fcntl  # not on Windows
    import termios

    request = termios.TIOCOUTQ if stat.S_ISSOCK(mode) else termios.FIONREAD
    try:
        return int.from_bytes(fcntl.ioctl(fd, request, bytes(4)), sys.byteorder)
    except OSError:
        return None
