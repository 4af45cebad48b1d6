"""Measure consecutive `tools/call` over stdio: `mcp_probe.py SCRIPT [ARGUMENT…]`.

The client is the same for every server. It is small: it writes and reads lines, without an SDK. It
checks each response. The CPU time of the server is read before and after the measured calls.
"""

import json
import os
import signal
import subprocess
import sys
from time import perf_counter

from cpu_clock import cpu_s

WARM_UP, BURST, SECONDS = 300, 100, 1.0
TIMEOUT_S = 90
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
    b'{"name":"order_10","arguments":{"count":%b,"price":0.25}}}\n'
)
EXPECTED = b'"result":"%d bolt at 0.25"'


class Client:
    """A connection that sends a line and waits for a line."""

    def __init__(self, server: "subprocess.Popen[bytes]") -> None:
        assert server.stdin is not None and server.stdout is not None
        self.write_to, self.read_from = server.stdin.fileno(), server.stdout.fileno()
        self.calls = 0

    def request(self, line: bytes) -> bytes:
        """Send a request and return the response."""
        os.write(self.write_to, line)
        response = os.read(self.read_from, 1 << 16)
        while not response.endswith(b"\n"):
            more = os.read(self.read_from, 1 << 16)
            if not more:
                raise SystemExit(f"The server ended after {response!r}")
            response += more
        return response

    def open(self) -> None:
        """Initialize the session and check that an invalid argument is rejected."""
        self.request(INITIALIZE)
        os.write(self.write_to, INITIALIZED)
        response = self.request(CALL % (1_000_000, b'"many"'))
        if b'"isError":true' not in response:
            raise SystemExit(f"The response to an invalid argument was {response!r}")

    def call(self, count: int) -> None:
        """Call the tool this many times."""
        for number in range(self.calls + 1, self.calls + count + 1):
            response = self.request(CALL % (number, b"%d" % number))
            if EXPECTED % number not in response:
                raise SystemExit(f"The response to call {number} was {response!r}")
        self.calls += count


def measure(client: Client, pid: int) -> dict[str, float]:
    """Send calls for some time, and return the wall time and CPU time per call."""
    client.call(WARM_UP)
    before, cpu, began = client.calls, cpu_s(pid), perf_counter()
    while perf_counter() - began < SECONDS:
        client.call(BURST)
    took, cost, calls = perf_counter() - began, cpu_s(pid) - cpu, client.calls - before
    return {
        "calls_per_s": calls / took,
        "wall_us": took / calls * 1e6,
        "cpu_us": cost / calls * 1e6,
    }


def main() -> None:
    """Start the server, call it, and print the metrics."""
    signal.alarm(TIMEOUT_S)  # ends the probe; its server ends with its stdin
    command = [sys.executable, *sys.argv[1:]]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as server:
        client = Client(server)
        client.open()
        numbers = measure(client, server.pid)
        server.kill()
    print(json.dumps(numbers))
