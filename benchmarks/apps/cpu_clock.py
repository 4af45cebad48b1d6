"""The CPU time of another process in nanoseconds; /proc has hundredths of a second only."""

from time import clock_gettime

SCHEDULED = 2


def cpu_s(pid: int) -> float:
    """Return the user and system time of all threads, also of those that have ended (Linux)."""
    return clock_gettime(~pid << 3 | SCHEDULED)  # as clock_getcpuclockid(3) composes it
