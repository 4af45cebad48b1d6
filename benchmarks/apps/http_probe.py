"""Time `POST /tools/order` on eight kept connections: `http_probe.py STARTER`.

    probe, first core ── 8 × keep-alive ──▶ server, last core

The server has a core of its own and never waits for the probe, which only copies bytes:
it is the server that is measured. Where the machine is not quiet, the server's CPU per call
says it better than the clock; both are printed, beside what the probe itself cost and how
much of the time the server was at work.
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
PATIENCE_S = 90
BODY = b'{"count":%b,"price":0.25}'
RIGHT = b'"%d bolt at 0.25"'
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Connection:
    """A kept connection with one call on its way."""

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

    def take(self) -> bytes | None:
        """The answer, once all of it has come."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise SystemExit(f"The server closed the connection after {self.received!r}")
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        length = LENGTH.search(self.received, 0, end) if end > 0 else None
        if length is None or len(self.received) < end + 4 + int(length[1]):
            return None
        answer, self.received = self.received, b""
        return answer

    def order(self, number: int) -> None:
        """Send the call with this number."""
        self.number = number
        self.send(b"%d" % number)

    def ask(self, count: bytes) -> bytes:
        """Send a call and wait for its answer."""
        self.send(count)
        while (answer := self.take()) is None:
            continue
        return answer


class Client:
    """Keeps every connection busy."""

    def __init__(self, port: int) -> None:
        self.connections = [Connection(port) for _ in range(CONNECTIONS)]
        self.by_fd = {one.socket.fileno(): one for one in self.connections}
        self.poll = select.poll()
        self.sent = self.answered = 0
        for fd in self.by_fd:
            self.poll.register(fd, select.POLLIN)

    def open(self) -> None:
        """See that a wrong argument is refused, then send the first calls."""
        answer = self.connections[0].ask(b'"many"')
        if not answer.startswith(b"HTTP/1.1 4"):
            raise SystemExit(f"A wrong argument was answered with {answer!r}")
        for connection in self.connections:
            self.next(connection)

    def next(self, connection: Connection) -> None:
        """Send one more call."""
        self.sent += 1
        connection.order(self.sent)

    def turn(self) -> None:
        """Take the answers that are there; each makes room for the next call."""
        for fd, _ in self.poll.poll():
            connection = self.by_fd[fd]
            answer = connection.take()
            if answer is None:
                continue
            if not answer.startswith(b"HTTP/1.1 200") or RIGHT % connection.number not in answer:
                raise SystemExit(f"Call {connection.number} was answered with {answer!r}")
            self.answered += 1
            self.next(connection)


def measure(client: Client, pid: int) -> dict[str, float]:
    """Call for a while, and say what a call took and cost."""
    while client.answered < WARM_UP:
        client.turn()
    before, cpu, own, began = client.answered, cpu_s(pid), process_time(), perf_counter()
    while perf_counter() - began < SECONDS:
        client.turn()
    took, cost, calls = perf_counter() - began, cpu_s(pid) - cpu, client.answered - before
    return {
        "calls_per_s": calls / took,
        "wall_us": took / calls * 1e6,
        "cpu_us": cost / calls * 1e6,
        "client_us": (process_time() - own) / calls * 1e6,
        "busy": cost / took,
    }


def part(pid: int) -> None:
    """Give the server a core of its own, where there is more than one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(pid, cores[-1:])
        os.sched_setaffinity(0, cores[:-1])


def give_up(*_: object) -> None:
    """Leave in order, so that the server is ended."""
    raise SystemExit("The server did not answer in time.")


def main() -> None:
    """Start the server, call it, print the numbers."""
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_S)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        server = subprocess.Popen([sys.executable, *sys.argv[1:], str(fd)], pass_fds=[fd])
    try:
        part(server.pid)
        client = Client(port)
        client.open()
        numbers = measure(client, server.pid)
    finally:
        server.kill()
        server.wait()
    print(json.dumps(numbers))
