"""Serve an app over HTTP in another process."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
        return self.process.wait(30)


@contextmanager
def run_server(
    app: pathlib.Path = NOTES_APP, *flags: str, interface: tuple[str, ...] = ("mcp",), **env: str
) -> Iterator[Server]:
    """Start a server of an app on a free port, and stop it at the end of the block.

    `interface` is the command that has the subcommand `serve`: `mcp` or `api`.
    """
    transport = ("--transport", "http") if interface == ("mcp",) else ()
    command = [sys.executable, app, *interface, "serve", *transport, "--port", "0", *flags]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}
    ) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.search(r"http://\S+", line)
            assert found is not None, line + process.stderr.read()
            yield Server(process, found[0])
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(30)
