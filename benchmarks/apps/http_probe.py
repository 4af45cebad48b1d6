"""Measure `POST /tools/order` on eight keep-alive connections: `http_probe.py SCRIPT`.

    probe, first core ── 8 × keep-alive ──▶ server, last core

The server has a CPU core of its own and does not wait for the probe, which only copies bytes. On a
busy machine, the CPU time of the server per call is more reliable than the wall time. The probe
prints both, its own CPU time per call, and the CPU use of the server.
"""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from time import perf_counter, process_time

from cpu_clock import cpu_s

CONNECTIONS, WARM_UP, SECONDS = 8, 500, 1.5
TIMEOUT_S = 90
BODY = b'{"count":%b,"price":0.25}'
EXPECTED = b'"%d bolt at 0.25"'
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Connection:
    """A keep-alive connection with one pending call."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = (
            b"POST /tools/order HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
            b"Content-Type: application/json\r\nContent-Length: " % port
        )
        self.received = b""
        self.number = 0

    def send(self, count: bytes) -> None:
        """Send a call."""
        body = BODY % count
        self.socket.sendall(b"%b%d\r\n\r\n%b" % (self.head, len(body), body))

    def receive(self) -> bytes | None:
        """Read from the socket; return the response if it is complete, or None."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise SystemExit(f"The server closed the connection after {self.received!r}")
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        length = LENGTH.search(self.received, 0, end) if end > 0 else None
        if length is None or len(self.received) < end + 4 + int(length[1]):
            return None
        response, self.received = self.received, b""
        return response

    def order(self, number: int) -> None:
        """Send the call with this number."""
        self.number = number
        self.send(b"%d" % number)

    def ask(self, count: bytes) -> bytes:
        """Send a call and wait for its response."""
        self.send(count)
        while (response := self.receive()) is None:
            continue
        return response


class Client:
    """Sends calls on all connections, one pending call on each."""

    def __init__(self, port: int) -> None:
        self.connections = [Connection(port) for _ in range(CONNECTIONS)]
        self.by_fd = {one.socket.fileno(): one for one in self.connections}
        self.poll = select.poll()
        self.sent = self.received = 0
        for fd in self.by_fd:
            self.poll.register(fd, select.POLLIN)

    def start(self) -> None:
        """Check that an invalid argument is rejected, then send the first calls."""
        response = self.connections[0].ask(b'"many"')
        if not response.startswith(b"HTTP/1.1 4"):
            raise SystemExit(f"The response to an invalid argument was {response!r}")
        for connection in self.connections:
            self.send_next(connection)

    def send_next(self, connection: Connection) -> None:
        """Send one more call."""
        self.sent += 1
        connection.order(self.sent)

    def handle_responses(self) -> None:
        """Read the available responses, and send the next call after each."""
        for fd, _ in self.poll.poll():
            connection = self.by_fd[fd]
            response = connection.receive()
            if response is None:
                continue
            is_ok = response.startswith(b"HTTP/1.1 200")
            if not is_ok or EXPECTED % connection.number not in response:
                raise SystemExit(f"The response to call {connection.number} was {response!r}")
            self.received += 1
            self.send_next(connection)


def measure(client: Client, pid: int) -> dict[str, float]:
    """Send calls for some time, and return the wall time and CPU time per call."""
    while client.received < WARM_UP:
        client.handle_responses()
    before, cpu, own, began = client.received, cpu_s(pid), process_time(), perf_counter()
    while perf_counter() - began < SECONDS:
        client.handle_responses()
    took, cost, calls = perf_counter() - began, cpu_s(pid) - cpu, client.received - before
    return {
        "calls_per_s": calls / took,
        "wall_us": took / calls * 1e6,
        "cpu_us": cost / calls * 1e6,
        "client_us": (process_time() - own) / calls * 1e6,
        "busy": cost / took,
    }


def separate_cores(pid: int) -> None:
    """Give the server a CPU core of its own, if there is more than one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(pid, cores[-1:])
        os.sched_setaffinity(0, cores[:-1])


def stop(*_: object) -> None:
    """Raise SystemExit, so that the server is killed."""
    raise SystemExit("The server did not response in time.")


def main() -> None:
    """Start the server, call it, and print the metrics."""
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIMEOUT_S)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        server = subprocess.Popen([sys.executable, *sys.argv[1:], str(fd)], pass_fds=[fd])
    try:
        separate_cores(server.pid)
        client = Client(port)
        client.start()
        numbers = measure(client, server.pid)
    finally:
        server.kill()
        server.wait()
    print(json.dumps(numbers))
