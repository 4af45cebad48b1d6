"""Run a command at a pseudo-terminal and capture what a person would see."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\(B|\x0f")


def run_at_terminal(
    argv: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    *,
    width: int = 80,
    answer: str = "",
) -> tuple[str, int]:
    """Return the output of a command, escape sequences included, and its exit code.

    `answer` is typed when the command asks a yes-or-no question.
    """
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    child = subprocess.Popen(
        argv, cwd=folder, env={**env}, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    shown = bytearray()
    while chunk := _read(controller):
        shown += chunk
        if answer and shown.rstrip().endswith((b"[y/N]", b"[Y/n]")):
            os.write(controller, answer.encode() + b"\n")
            answer = ""
    os.close(controller)
    return shown.decode().replace("\r\n", "\n"), child.wait()


def strip_escapes(shown: str) -> str:
    """Return the text without escape sequences and without spaces at the ends of lines."""
    return "\n".join([line.rstrip() for line in _ESCAPES.sub("", shown).split("\n")])


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 1 << 16)
    except OSError:  # Linux raises it when the other end is closed
        return b""
