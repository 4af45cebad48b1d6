"""The CPU time of another process, to the nanosecond; what /proc tells comes in hundredths."""

from time import clock_gettime

SCHEDULED = 2


def cpu_s(pid: int) -> float:
    """User and system time of all threads so far, of those that have ended as well (Linux)."""
    return clock_gettime(~pid << 3 | SCHEDULED)  # as clock_getcpuclockid(3) composes it
