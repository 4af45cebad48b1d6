"""What was written to the client and not read yet: wait for it.

Only calls that report progress load this module.
"""

from __future__ import annotations

import os
import stat
import sys
from time import monotonic, sleep

READ_TIMEOUT, POLL_INTERVAL, FIXED_DELAY = 0.25, 0.0005, 0.005
"""Seconds to wait until a client has read, between two checks, and where it cannot be checked."""


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
