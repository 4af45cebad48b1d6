"""HTTP servers in processes of their own."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import pytest


class Served:
    """A server process on a free port."""

    def __init__(self, **settings: Any) -> None:
        environment = {**os.environ, **settings.pop("environment", {})}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.integration.http.served",
                json.dumps({"port": 0, **settings}),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stderr is not None
        self.line = self.process.stderr.readline()
        found = re.search(r"http://\S+:(\d+)", self.line)
        self.port = int(found.group(1)) if found else 0

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def post(self, tool: str, arguments: Any = None, **headers: str) -> tuple[int, Any]:
        connection = self.connect()
        try:
            payload = {"content-type": "application/json", **headers}
            connection.request("POST", f"/tools/{tool}", json.dumps(arguments or {}), payload)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def stop(self, sig: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Stop the server; return its exit code, stdout and stderr."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture
def serve():
    running: list[Served] = []

    def start(**settings: Any) -> Served:
        running.append(Served(**settings))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def until(truth: Any) -> None:
    """Wait until a condition is true; another process makes it true."""
    end = time.monotonic() + 20
    while not truth():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


@pytest.fixture(name="until")
def _until():
    return until
