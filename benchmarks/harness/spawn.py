"""Start one process at a time, and report its time and memory.

This program runs on its own (`python -I -S spawn.py`) and imports as little as possible: on Linux,
the `ru_maxrss` of a program includes the peak memory of the process that called `exec`. Therefore
the process that starts the benchmarks must be smaller than the smallest of them.

    request   stdin-path ␟ stdout-path ␟ stderr-path ␟ argv…    one line
    replies   pid                                                when the process has started
              code ␟ cpu s ␟ wall s ␟ ru_maxrss                  when the process has ended
"""

import posix
import sys
from time import perf_counter

SEPARATOR = "\x1f"


def start(stdin: str, out: str, err: str, argv: list[str]) -> int:
    """Start a program whose three standard streams are files."""
    write = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC
    actions = [
        (posix.POSIX_SPAWN_OPEN, 0, stdin, posix.O_RDONLY, 0),
        (posix.POSIX_SPAWN_OPEN, 1, out, write, 0o600),
        (posix.POSIX_SPAWN_OPEN, 2, err, write, 0o600),
    ]
    return posix.posix_spawn(argv[0], argv, posix.environ, file_actions=actions)


def serve() -> None:
    """Handle requests until stdin ends."""
    for line in iter(sys.stdin.readline, ""):
        stdin, out, err, *argv = line.rstrip("\n").split(SEPARATOR)
        began = perf_counter()
        pid = start(stdin, out, err, argv)
        print(pid, flush=True)
        _, status, usage = posix.wait4(pid, 0)
        wall = perf_counter() - began
        cpu = usage.ru_utime + usage.ru_stime
        code = posix.waitstatus_to_exitcode(status)
        print(code, cpu, wall, usage.ru_maxrss, sep=SEPARATOR, flush=True)


if __name__ == "__main__":
    serve()
