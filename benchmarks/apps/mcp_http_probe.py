"""Measure `tools/call` over Streamable HTTP: `mcp_http_probe.py handshake|stateless TOOL SCRIPT`.

The probe prints the CPU time of the server per call. It sends one call after the other on one
connection, and checks each answer.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from time import perf_counter

from cpu_clock import cpu_s

TIMEOUT_S = 90
WARM_UP, SECONDS = 50, 1.0
HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
SESSION = re.compile(rb"(?i)\r\nmcp-session-id: *([^\r]+)")
CLIENT = {"name": "bench", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
EXPECTED = {"order": b"7 bolt at 0.25", "text": b"lazy dog"}
ARGUMENTS = {"order": {"count": 7, "price": 0.25}, "text": {"count": 1}}


class Connection:
    """A keep-alive connection to the endpoint /mcp."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json"}
        self.headers |= {"Accept": "application/json, text/event-stream", **headers}

    def encode(self, message: dict[str, object]) -> bytes:
        """Return the request for a message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        head = "".join([f"{name}: {value}\r\n" for name, value in self.headers.items()])
        return f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def send(self, request: bytes) -> bytes:
        """Send a request and return the response with its head."""
        self.socket.sendall(request)
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            data = self.socket.recv(1 << 16)
            if not data:
                raise SystemExit(f"The server closed the connection after {bytes(received)!r}")
            received += data
        found = LENGTH.search(received, 0, end + 2)
        missing = end + 4 + (int(found[1]) if found else 0) - len(received)
        while missing > 0:
            data = self.socket.recv(1 << 20)
            received += data
            missing -= len(data)
        return bytes(received)


def open_connection(port: int, era: str, tool: str) -> Connection:
    """Return a connection that is ready to call the tool."""
    if era == "stateless":
        headers = {"Mcp-Method": "tools/call", "Mcp-Name": tool}
        return Connection(port, {"MCP-Protocol-Version": STATELESS, **headers})
    connection = Connection(port, {})
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
    request = {"id": 0, "method": "initialize", "params": params}
    session = SESSION.search(connection.send(connection.encode(request)))
    connection.headers["MCP-Protocol-Version"] = HANDSHAKE
    if session is not None:
        connection.headers["Mcp-Session-Id"] = session[1].decode()
    connection.send(connection.encode({"method": "notifications/initialized"}))
    return connection


def stop(*_: object) -> None:
    """Raise SystemExit, so that the server is killed."""
    raise SystemExit("The server did not answer in time.")


def main() -> None:
    """Start the server, call it, and print the metrics."""
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIMEOUT_S)
    era, tool, script = sys.argv[1:]
    params: dict[str, object] = {"name": tool, "arguments": ARGUMENTS[tool]}
    if era == "stateless":
        params["_meta"] = META
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        with open(os.devnull, "wb") as null:
            command = [sys.executable, script, str(fd)]
            server = subprocess.Popen(command, pass_fds=[fd], stderr=null)
    try:
        connection = open_connection(port, era, tool)
        request = connection.encode({"id": 1, "method": "tools/call", "params": params})

        def call() -> None:
            answer = connection.send(request)
            if not answer.startswith(b"HTTP/1.1 200") or EXPECTED[tool] not in answer:
                raise SystemExit(f"The answer was {answer[:500]!r}")

        for _ in range(WARM_UP):
            call()
        calls, cpu, began = 0, cpu_s(server.pid), perf_counter()
        while perf_counter() - began < SECONDS:
            call()
            calls += 1
        numbers = {
            "cpu_us": (cpu_s(server.pid) - cpu) / calls * 1e6,
            "wall_us": (perf_counter() - began) / calls * 1e6,
        }
    finally:
        server.kill()
        server.wait()
    print(json.dumps(numbers))
