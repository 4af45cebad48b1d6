"""Serve an app over HTTP in another process."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.app_process import PROCESS_TIMEOUT

NOTES_APP = pathlib.Path(__file__).with_name("notes_app.py")


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port."""
        host, _, port = self.url.split("/")[2].rpartition(":")
        return host.strip("[]"), int(port)

    def shut_down(self) -> int:
        """Send SIGTERM, wait for the process to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PROCESS_TIMEOUT)


@contextmanager
def run_server(
    app: pathlib.Path = NOTES_APP,
    *flags: str,
    interface: tuple[str, ...] = ("mcp",),
    open_files: int | None = None,
    **env: str,
) -> Iterator[Server]:
    """Start a server of an app on a free port, and stop it at the end of the block.

    `interface` is the command that has the subcommand `serve`: `mcp` or `api`. `open_files` is the
    soft limit of files that the process may open.
    """
    transport = ("--transport", "http") if interface == ("mcp",) else ()
    command = [sys.executable, app, *interface, "serve", *transport, "--port", "0", *flags]
    if open_files is not None:
        command = ["sh", "-c", f'ulimit -Sn {open_files}; exec "$@"', "sh", *command]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}
    ) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.search(r"https?://\S+", line)
            assert found is not None, line + process.stderr.read()
            # a server whose log nobody reads stops when the pipe is full
            reader = threading.Thread(target=deque, args=(process.stderr, 0))
            reader.start()
            yield Server(process, found[0])
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(PROCESS_TIMEOUT)
        reader.join(PROCESS_TIMEOUT)
