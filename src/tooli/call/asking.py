"""Ask a person, on the terminal itself, never on a stream that carries data."""

from __future__ import annotations

import sys


def ask(question: str, *, default: bool = False) -> bool:
    """A person's yes or no; Ctrl-D and an empty line mean the default."""
    choice = "[Y/n]" if default else "[y/N]"
    while True:
        answer = _line(f"{question} {choice} ").strip().lower()
        if not answer:
            return default
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")


def _line(prompt: str) -> str:
    """One line from the terminal: stdin if it is one, the process's own terminal if not."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return sys.stdin.readline()
    windows = sys.platform == "win32"
    try:  # two files, because one for both would have to seek
        with (
            open("CONOUT$" if windows else "/dev/tty", "w") as screen,
            open("CONIN$" if windows else "/dev/tty") as keys,
        ):
            screen.write(prompt)
            screen.flush()
            return keys.readline()
    except OSError:
        return ""
