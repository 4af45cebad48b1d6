"""Measure calls with large results: `large_probe.py http|stdio TOOL COUNT SCRIPT`.

The probe prints the CPU time of the server per call. It sends one call after the other, reads each
answer and checks its size.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from time import process_time

from cpu_clock import cpu_s

TIMEOUT_S = 90
WARM_UP, CALLS = 5, 25
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
    b'{"name":"%b","arguments":{"count":%d}}}\n'
)


def connect_http(tool: str, count: int, port: int) -> Callable[[], int]:
    """Return a function that calls the tool over HTTP and returns the size of the answer."""
    connection = socket.create_connection(("127.0.0.1", port))
    body = b'{"count":%d}' % count
    request = (
        b"POST /tools/%b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (tool.encode(), port, len(body), body)
    )

    def call() -> int:
        connection.sendall(request)
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += connection.recv(1 << 16)
        if not received.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"The response was {received[:300]!r}")
        found = LENGTH.search(received, 0, end + 2)
        assert found is not None
        missing = end + 4 + int(found[1]) - len(received)
        while missing > 0:
            missing -= len(connection.recv(1 << 20))
        return int(found[1])

    return call


def connect_stdio(tool: str, count: int, server: "subprocess.Popen[bytes]") -> Callable[[], int]:
    """Return a function that calls the tool over stdio and returns the size of the answer."""
    assert server.stdin is not None and server.stdout is not None
    writes, reads = server.stdin, server.stdout
    numbers = iter(range(1, 1_000_000))

    def send(line: bytes) -> None:
        writes.write(line)
        writes.flush()

    send(INITIALIZE)
    reads.readline()
    send(INITIALIZED)

    def call() -> int:
        send(CALL % (next(numbers), tool.encode(), count))
        answer = reads.readline()
        if b'"isError":true' in answer[:2000] or b'"error":' in answer[:200]:
            raise SystemExit(f"The answer was {answer[:300]!r}")
        return len(answer)

    return call


def stop(*_: object) -> None:
    """Raise SystemExit, so that the server is killed."""
    raise SystemExit("The server did not answer in time.")


def main() -> None:
    """Start the server, call it, and print the metrics."""
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIMEOUT_S)
    transport, tool, count, script = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    pipe = subprocess.PIPE
    if transport == "http":
        with socket.create_server(("127.0.0.1", 0)) as listener:
            fd, port = listener.fileno(), listener.getsockname()[1]
            server = subprocess.Popen([sys.executable, script, str(fd)], pass_fds=[fd])
        connect = connect_http, port
    else:
        command = [sys.executable, script]
        with open(os.devnull, "wb") as null:
            server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null)
        connect = connect_stdio, server
    try:
        call = connect[0](tool, count, connect[1])  # type: ignore[operator, arg-type]
        sizes = {call() for _ in range(WARM_UP)}
        cpu, own = cpu_s(server.pid), process_time()
        sizes |= {call() for _ in range(CALLS)}
        cost = (cpu_s(server.pid) - cpu) / CALLS
    finally:
        server.kill()
        server.wait()
    if min(sizes) < 100 * count:
        raise SystemExit(f"The sizes of the answers were {sizes}")
    print(json.dumps({"cpu_us": cost * 1e6, "client_us": (process_time() - own) / CALLS * 1e6}))
