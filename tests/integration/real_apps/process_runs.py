"""Run a program at a pipe or at a terminal, and record everything that it leaves behind."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TIME_LIMIT = 60
CTRL_C = b"\x03"
RANDOM_PARTS = (
    (re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"), b"TIME"),  # of a log message
    (re.compile(rb"(?<=[/m])tmp[a-z0-9_]{8}\b"), b"tmpXXXXXXXX"),  # a temporary folder
    (re.compile(rb"\x1b\]8;id=\d+;"), b"\x1b]8;id=N;"),  # a hyperlink of rich
)
"""Parts of output that differ between two runs of the same program, and what replaces them."""
SIZE = struct.pack("HHHH", 40, 100, 0, 0)
"""Rows and columns of the terminal."""
GIT_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}
"""Variables of the scripts that create files, so that every run has the same commits."""
START_AT_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a program with the terminal as its controlling terminal, so that Ctrl-C interrupts it."""


@dataclass(frozen=True)
class Result:
    """What a program wrote, its exit code, and the files that exist when it has ended."""

    code: int
    out: bytes
    err: bytes
    files: Mapping[str, bytes]


RUN_NAMES = "QXZJKV"
"""Names of the runs: one letter each, which wrapped text cannot split."""
HIDE_RUN_NAMES = bytes.maketrans(RUN_NAMES.encode(), b"#" * len(RUN_NAMES))


class Folder:
    """The folders of one run: `work`, in which the program starts, and `home`.

    The paths of all runs have the same length, because they can be part of text that is wrapped.
    """

    def __init__(self, parent: Path, number: int, files: Mapping[str, str], setup: str) -> None:
        self.path = parent / RUN_NAMES[number]
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in ("work", "home"):
            (self.path / folder).mkdir(parents=True)
        for name, text in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            os.utime(target, (1_600_000_000, 1_600_000_000))
        if setup:
            script = ["/bin/sh", "-euc", setup]
            subprocess.run(script, cwd=self.path / "work", env=GIT_VARIABLES, check=True)

    def environment(self, programs: Path) -> dict[str, str]:
        """Return the variables of a process, without those of agents and CI systems."""
        return {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(self.path / "home"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def result(self, code: int, out: bytes, err: bytes) -> Result:
        """Return the result of the run, with the same path for every run."""
        files = {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }
        files = {name: self._hide_run(content) for name, content in files.items()}
        return Result(code, self._hide_run(out), self._hide_run(err), files)

    def _hide_run(self, data: bytes) -> bytes:
        """Return data without the number of the run and without random parts."""
        data = data.translate(HIDE_RUN_NAMES)
        for pattern, replacement in RANDOM_PARTS:
            data = pattern.sub(replacement, data)
        return data


def run_at_pipe(argv: Sequence[str], folder: Folder, env: dict[str, str], stdin: str) -> Result:
    """Run a program with pipes; `stdin` is everything that it can read."""
    done = subprocess.run(
        argv,
        input=stdin.encode(),
        capture_output=True,
        cwd=folder.path / "work",
        env=env,
        timeout=TIME_LIMIT,
        check=False,
    )
    return folder.result(done.returncode, done.stdout, done.stderr)


def run_at_terminal(
    argv: Sequence[str], folder: Folder, env: dict[str, str], answers: Sequence[tuple[str, str]]
) -> Result:
    """Run a program with a terminal; each answer is typed when its text is displayed."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, SIZE)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", START_AT_TERMINAL, *argv],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=folder.path / "work",
        env={**env, "TERM": "xterm-256color"},
    )
    os.close(terminal)
    watchdog = threading.Timer(TIME_LIMIT, process.kill)
    watchdog.start()
    try:
        displayed = _converse(screen, [(text.encode(), keys.encode()) for text, keys in answers])
        code = process.wait(TIME_LIMIT)
    finally:
        process.kill()
        process.wait()
        watchdog.cancel()
        os.close(screen)
    return folder.result(code, displayed, b"")


def _converse(screen: int, waiting: list[tuple[bytes, bytes]]) -> bytes:
    """Read everything that is displayed, and type each answer when its text was displayed.

    A program misses Ctrl-C if it comes between the prompt and the reading of the answer. It is
    typed again until the program reacts, and counts as one.
    """
    displayed = bytearray()
    position = 0
    keys = b""
    while True:
        if keys == CTRL_C and not select.select([screen], [], [], 1)[0]:
            os.write(screen, keys)
            continue
        try:
            data = os.read(screen, 65536)
        except OSError:  # no process has the terminal open
            break
        if not data:
            break
        displayed += data
        while waiting and waiting[0][0] in displayed[position:]:
            awaited, keys = waiting.pop(0)
            position = displayed.index(awaited, position) + len(awaited)
            os.write(screen, keys)
    return re.sub(rb"(\^C)+", b"^C", bytes(displayed))
