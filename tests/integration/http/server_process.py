"""ServerProcess, an HTTP server in another process, and calls that it runs."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.integration.app_process import PROCESS_TIMEOUT


class ServerProcess:
    """A server process on a free port. `settings` are keywords of `serve_http`.

    `open_files` is the number of files that the process may open.
    """

    def __init__(self, open_files: int | None = None, **settings: Any) -> None:
        environment = {**os.environ, **settings.pop("environment", {})}
        shell = ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh"]
        self.process = subprocess.Popen(
            [
                *(shell if open_files is not None else ()),
                sys.executable,
                "-m",
                "tests.integration.http.served_app",
                json.dumps({"port": 0, **settings}),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stderr is not None
        self.first_line = self.process.stderr.readline()
        found = re.search(r"http://\S+:(\d+)", self.first_line)
        self.port = int(found.group(1)) if found else 0

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def open_socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def post(self, tool: str, arguments: Any = None, **headers: str) -> tuple[int, Any]:
        """Call a tool; return the status and the envelope."""
        connection = self.connect()
        try:
            all_headers = {"content-type": "application/json", **headers}
            body = json.dumps(arguments or {})
            connection.request("POST", f"/tools/{tool}", body, all_headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def stop(self, sig: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Stop the server; return its exit code, stdout and stderr."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        out, err = self.process.communicate(timeout=PROCESS_TIMEOUT)
        return self.process.returncode, out, err


StartServer = Callable[..., ServerProcess]
"""Starts a server. The arguments are those of ServerProcess."""


@contextmanager
def server_starter() -> Iterator[StartServer]:
    """Yield a function that starts servers. They are stopped at the end of the block."""
    with ExitStack() as stack:

        def start(**settings: Any) -> ServerProcess:
            server = ServerProcess(**settings)
            stack.callback(server.stop)
            return server

        yield start


class RunningCall:
    """A call that a server runs until `finish`. `folder` gets the files that control the tool.

    `may_fail=True` is for a server that ends before the call.
    """

    def __init__(
        self, server: ServerProcess, tool: str, folder: Path, *, may_fail: bool = False
    ) -> None:
        started, self._release = folder / "started", folder / "release"
        arguments = {"started": str(started), "release": str(self._release)}
        self._responses: list[tuple[int, Any]] = []

        def send() -> None:
            with suppress(*((OSError, http.client.HTTPException) if may_fail else ())):
                self._responses.append(server.post(tool, arguments))

        self._thread = threading.Thread(target=send)
        self._thread.start()
        wait_until(started.exists)

    def abandon(self) -> None:
        """Wait until the connection is closed. The tool ends if its process still runs."""
        self._release.touch()
        self._thread.join(120)
        assert not self._thread.is_alive()

    def finish(self) -> Any:
        """Let the tool return, and return the envelope."""
        self._release.touch()
        self._thread.join(120)
        return self._responses[0][1]


def wait_until(condition: Callable[[], bool]) -> None:
    """Block until a condition is true."""
    deadline = time.monotonic() + PROCESS_TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """True if a process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
