"""Run a Typer program as it is and with Tooli in Typer's place, and compare what they do."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import struct
import termios
import threading
from pathlib import Path
from typing import NamedTuple

from tests.integration.app_process import environment
from tests.integration.fork_server import ForkServer

PROGRAMS = Path(__file__).parent / "programs"
PRELOADED = ("typer.main", "typer.rich_utils", "rich.panel", "rich.table", "rich.traceback")
"""Modules that the programs use. The server imports them once for all processes."""


def convert(source: str) -> str:
    """Return the source of a program with Tooli in Typer's place, with the same line numbers."""
    assert "import typer\n" in source
    source = source.replace("import typer\n", "import typer; from tooli import Tooli\n", 1)
    return source.replace("typer.Typer(", "Tooli(")


class Observed(NamedTuple):
    """What a process did: its exit code, its output, and the files in its folder."""

    code: int
    out: str
    err: str
    files: dict[str, str]


class Programs:
    """Runs the programs of this folder, each with Typer and with Tooli."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        for kind in ("typer", "tooli"):
            (folder / kind).mkdir()
        for program in PROGRAMS.glob("*.py"):
            source = program.read_text()
            (folder / "typer" / program.name).write_text(source)
            (folder / "tooli" / program.name).write_text(convert(source))

    def run(
        self,
        program: str,
        *argv: str,
        kind: str = "tooli",
        stdin: bytes | None = b"",
        terminal: bool = False,
        env: dict[str, str] | None = None,
    ) -> Observed:
        """Run a program with Tooli or Typer (`kind`) in an empty folder, at a terminal or not.

        If `stdin` is None, it is an open pipe without data.
        """
        work = self._folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        variables = {"TERM": "xterm-256color", "TOOLI_FRAMEWORK_HELP": "0", **(env or {})}
        streams = _Streams(stdin, terminal)
        code = self._server.run_with_files(
            streams.child_ends,
            self._folder / kind / f"{program}.py",
            *argv,
            env=environment(**variables),
            cwd=work,
        )
        out, err = streams.close()
        files = {path.name: path.read_text() for path in sorted(work.iterdir())}
        return Observed(code, self._normalize(out), self._normalize(err), files)

    def _normalize(self, output: bytes) -> str:
        return output.decode().replace(str(self._folder / "tooli"), str(self._folder / "typer"))


class _Streams:
    """Stdin, stdout and stderr of a process: pipes, or one terminal each."""

    def __init__(self, stdin: bytes | None, terminal: bool) -> None:
        ends = [_open_terminal() if terminal else os.pipe() for _ in range(3)]
        if not terminal:
            ends[0] = ends[0][::-1]  # the process reads
        self._parent_ends = [parent_end for parent_end, _ in ends]
        self.child_ends = [child_end for _, child_end in ends]
        self._output = {1: bytearray(), 2: bytearray()}
        if stdin:
            os.write(self._parent_ends[0], stdin)
        if stdin is not None and not terminal:
            os.close(self._parent_ends.pop(0))
            self._parent_ends.insert(0, -1)
        self._readers = [threading.Thread(target=self._read, args=(stream,)) for stream in (1, 2)]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: int) -> None:
        while True:
            try:
                data = os.read(self._parent_ends[stream], 65536)
            except OSError:  # no process has the terminal open
                return
            if not data:
                return
            self._output[stream] += data

    def close(self) -> tuple[bytes, bytes]:
        """Close all files after the end of the process; return its output."""
        for end in self.child_ends:
            os.close(end)
        for reader in self._readers:
            reader.join()
        for end in self._parent_ends:
            if end != -1:
                os.close(end)
        return bytes(self._output[1]), bytes(self._output[2])


def _open_terminal() -> tuple[int, int]:
    parent_end, child_end = pty.openpty()
    fcntl.ioctl(parent_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    mode = termios.tcgetattr(child_end)
    mode[1] &= ~termios.OPOST  # keep the line ends that the program writes
    termios.tcsetattr(child_end, termios.TCSANOW, mode)
    return parent_end, child_end
