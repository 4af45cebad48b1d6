"""Measure the memory of `api serve`: `idle_probe.py IDLE_SCRIPT LARGE_SCRIPT`.

The probe waits until the server of the first app answers `GET /health`, and prints its resident
memory. Then it calls a tool of the second app with a large result, and prints by how much the peak
memory of that server grows.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

TIMEOUT_S = 90
CALLS = 5
URL = "http://127.0.0.1:{}/"


def memory_mb(pid: int, field: str) -> float:
    """Return a field of the memory of a process (Linux)."""
    with open(f"/proc/{pid}/status") as status:
        found = re.search(rf"{field}:\s*(\d+) kB", status.read())
    assert found is not None
    return int(found[1]) / 1024


def wait_for(url: str) -> None:
    """Wait until the server answers."""
    while True:
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            time.sleep(0.02)


def call(url: str, count: int) -> int:
    """Call a tool and return the size of the answer."""
    body = json.dumps({"count": count}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return len(answer.read())


def stop(*_: object) -> None:
    """Raise SystemExit, so that the server is killed."""
    raise SystemExit("The server did not answer in time.")


@contextmanager
def run_server(script: str) -> Iterator[tuple[int, str]]:
    """Run `api serve` of an app; yield its process id and its URL."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, script, "api", "serve", "--port", str(port)]
    with open(os.devnull, "wb") as null:
        server = subprocess.Popen(command, stdout=null, stderr=null)
    url = URL.format(port)
    try:
        wait_for(url + "health")
        yield server.pid, url
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """Start the servers and print their memory."""
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIMEOUT_S)
    idle_script, large_script = sys.argv[1:]
    with run_server(idle_script) as (pid, _):
        numbers = {"idle_mb": memory_mb(pid, "VmRSS")}
    with run_server(large_script) as (pid, url):
        call(url + "tools/items", 1)
        call(url + "tools/text", 1)
        before = memory_mb(pid, "VmRSS")
        size = max([call(url + "tools/items", 2000) for _ in range(CALLS)])
        growth = memory_mb(pid, "VmHWM") - before
        numbers |= {"growth_mb": growth, "result_mb": size / (1 << 20)}
    print(json.dumps(numbers))
