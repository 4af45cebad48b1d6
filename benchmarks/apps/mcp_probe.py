"""Time `tools/call` on one stdio connection, one after the other: `mcp_probe.py STARTER [WORD…]`.

The client is the same for every server, and light: lines through two pipes, no SDK. Each
answer is looked at; the server's CPU is read at both ends of the stretch that counts.
"""

import json
import os
import signal
import subprocess
import sys
from time import perf_counter

from cpu_clock import cpu_s

WARM_UP, BURST, SECONDS = 300, 100, 1.0
PATIENCE_S = 90
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
    b'{"name":"order_10","arguments":{"count":%b,"price":0.25}}}\n'
)
RIGHT = b'"result":"%d bolt at 0.25"'


class Client:
    """One connection: a line out, a line in."""

    def __init__(self, server: "subprocess.Popen[bytes]") -> None:
        assert server.stdin is not None and server.stdout is not None
        self.write_to, self.read_from = server.stdin.fileno(), server.stdout.fileno()
        self.calls = 0

    def ask(self, line: bytes) -> bytes:
        """Send a request and wait for its answer."""
        os.write(self.write_to, line)
        answer = os.read(self.read_from, 1 << 16)
        while not answer.endswith(b"\n"):
            more = os.read(self.read_from, 1 << 16)
            if not more:
                raise SystemExit(f"The server ended after {answer!r}")
            answer += more
        return answer

    def open(self) -> None:
        """Initialize the session and check that an invalid argument is rejected."""
        self.ask(INITIALIZE)
        os.write(self.write_to, INITIALIZED)
        answer = self.ask(CALL % (1_000_000, b'"many"'))
        if b'"isError":true' not in answer:
            raise SystemExit(f"A wrong argument was answered with {answer!r}")

    def call(self, count: int) -> None:
        """Call the tool this many times."""
        for number in range(self.calls + 1, self.calls + count + 1):
            answer = self.ask(CALL % (number, b"%d" % number))
            if RIGHT % number not in answer:
                raise SystemExit(f"Call {number} was answered with {answer!r}")
        self.calls += count


def measure(client: Client, pid: int) -> dict[str, float]:
    """Call for a while, and say what a call took and cost."""
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
    """Start the server, call it, print the numbers."""
    signal.alarm(PATIENCE_S)  # ends the probe; its server ends with its stdin
    command = [sys.executable, *sys.argv[1:]]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as server:
        client = Client(server)
        client.open()
        numbers = measure(client, server.pid)
        server.kill()
    print(json.dumps(numbers))
