"""Start one process at a time, and report its time and memory.

This program runs on its own (`python -I -S spawn.py`) and imports as little as possible: on Linux,
the `ru_maxrss` of a program includes the peak memory of the process that called `exec`. Therefore
the process that starts the benchmarks must be smaller than the smallest of them.

    request   stdin ␟ stdout ␟ stderr ␟ folder ␟ variables ␟ argv…   one line
    replies   pid                                                    the process has started
              code ␟ cpu s ␟ wall s ␟ ru_maxrss                      the process has ended

The first three fields are paths. `folder` is the working directory. `variables` are added to the
environment: `NAME=value`, separated by ␞.
"""

import posix
import sys
from time import perf_counter

SEPARATOR, VARIABLE_SEPARATOR = "\x1f", "\x1e"


def start(stdin: str, out: str, err: str, variables: str, argv: list[str]) -> int:
    """Start a program whose three standard streams are files."""
    env = dict(posix.environ)
    for variable in filter(None, variables.split(VARIABLE_SEPARATOR)):
        name, _, value = variable.partition("=")
        env[name.encode()] = value.encode()
    write = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC
    actions = [
        (posix.POSIX_SPAWN_OPEN, 0, stdin, posix.O_RDONLY, 0),
        (posix.POSIX_SPAWN_OPEN, 1, out, write, 0o600),
        (posix.POSIX_SPAWN_OPEN, 2, err, write, 0o600),
    ]
    return posix.posix_spawn(argv[0], argv, env, file_actions=actions)


def serve() -> None:
    """Handle requests until stdin ends."""
    for line in iter(sys.stdin.readline, ""):
        stdin, out, err, folder, variables, *argv = line.rstrip("\n").split(SEPARATOR)
        posix.chdir(folder)
        began = perf_counter()
        pid = start(stdin, out, err, variables, argv)
        print(pid, flush=True)
        _, status, usage = posix.wait4(pid, 0)
        wall = perf_counter() - began
        cpu = usage.ru_utime + usage.ru_stime
        code = posix.waitstatus_to_exitcode(status)
        print(code, cpu, wall, usage.ru_maxrss, sep=SEPARATOR, flush=True)


if __name__ == "__main__":
    serve()
