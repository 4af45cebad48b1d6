"""Replace this process by a program that may read files, and not write them or use the network.

`python -c "…; main()" PROGRAM ARGUMENT…` enters the sandbox, and then executes the program.
"""

from __future__ import annotations

import os
import sys

from tooli.core.declared_capabilities import AllowedAccess
from tooli.execution.sandbox.landlock import EXECUTE, READ
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support, enter_sandbox


def main() -> None:
    """Enter the sandbox and execute the program of the command line."""
    argv = sys.argv[1:]
    access = AllowedAccess(reads=None, spawns=True)
    files = [
        (os.path.realpath(path), READ | EXECUTE) for path in (argv[0], *_interpreters(argv[0]))
    ]
    enter_sandbox(access, detect_sandbox_support(), files=files)
    os.execv(argv[0], argv)


def _interpreters(path: str) -> list[str]:
    """Return the programs that the first lines of a script name."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if head[:2] != b"#!":
        return []
    lines = head[2:].decode("utf-8", "replace").splitlines()[:2]
    words = [word.strip("'\"") for line in lines for word in line.split()]
    return [word for word in words if os.path.isabs(word) and os.path.isfile(word)]
