"""Run apps in processes that are forked from a server with slow packages already imported.

The packages are dependencies such as pydantic. Each process imports tooli itself, so the start-up
of tooli is still tested. Use this in tests that start the same app many times.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

if __name__ != "__main__":
    from tests.integration.app_process import ProcessResult, environment


PROCESS_TIMEOUT = 300
"""Seconds after which a process counts as hung."""


class ForkServer:
    """Runs apps, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def run(self, app: Path, *argv: str, env: dict[str, str]) -> ProcessResult:
        """Run an app and wait for its end."""
        with contextlib.ExitStack() as stack:
            out, err = (stack.enter_context(_temporary_file()) for _ in range(2))
            stdin = stack.enter_context(open(os.devnull, "rb"))
            files = [stdin.fileno(), out.fileno(), err.fileno()]
            code = self.run_with_files(files, app, *argv, env=env)
            return ProcessResult(code, _read(out), _read(err))

    def run_with_files(
        self, files: list[int], app: Path, *argv: str, env: dict[str, str], cwd: Path | None = None
    ) -> int:
        """Run an app with these files as stdin, stdout and stderr; return its exit code."""
        request = {"app": str(app), "argv": argv, "env": env, "cwd": str(cwd or Path.cwd())}
        socket.send_fds(self._connection, [json.dumps(request).encode()], files)
        answer = self._connection.recv(16)
        assert answer, "the server has ended"
        return int(answer)


def _temporary_file() -> IO[bytes]:
    return os.fdopen(os.memfd_create("output"), "r+b")


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


@contextlib.contextmanager
def fork_server(*modules: str) -> Iterator[ForkServer]:
    """Start a server that has imported these modules; end it when the block ends."""
    connection, child_connection = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, __file__, str(child_connection.fileno()), *modules]
    with (
        connection,
        subprocess.Popen(
            argv, pass_fds=[child_connection.fileno()], env=environment(), stdin=subprocess.DEVNULL
        ) as process,
    ):
        child_connection.close()
        try:
            yield ForkServer(connection)
        finally:
            connection.close()
            process.wait()


def serve(connection: socket.socket) -> list[str] | None:
    """Fork for every request; return the argument list in the child, and None at the end."""
    while True:
        data, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        if not data:
            return None
        pid = os.fork()
        if pid == 0:
            connection.close()
            os.setsid()  # without a controlling terminal, on which an app could ask questions
            request = json.loads(data)
            os.chdir(request["cwd"])
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            _open_standard_streams()
            faulthandler.dump_traceback_later(PROCESS_TIMEOUT, exit=True)
            os.environ.clear()
            os.environ.update(request["env"])
            return [request["app"], *request["argv"]]
        for file in files:
            os.close(file)
        _, status = os.waitpid(pid, 0)
        connection.send(b"%d" % os.waitstatus_to_exitcode(status))


def _open_standard_streams() -> None:
    """Open stdin, stdout and stderr again, as Python does when a process starts."""
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = open(
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )


def main() -> NoReturn:
    """Import the modules and serve; in each child, run the app."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        importlib.import_module(name)
    argv = serve(connection)
    if argv is None:
        sys.exit()
    sys.argv[:] = argv
    sys.path[0] = os.path.dirname(argv[0])
    runpy.run_path(argv[0], run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    main()
