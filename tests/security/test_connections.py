"""Attacks with connections: idle ones, many of them, no free descriptors, slow readers."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from tests.integration.http.server_process import (
    RunningCall,
    ServerProcess,
    StartServer,
    server_starter,
    wait_until,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses other loopback addresses")

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    with server_starter() as start:
        yield start


def connect(server: ServerProcess, source: str = "127.0.0.1") -> socket.socket:
    address = ("127.0.0.1", server.port)
    return socket.create_connection(address, timeout=120, source_address=(source, 0))


def is_healthy(sock: socket.socket) -> bool:
    sock.sendall(HEALTH)
    return sock.recv(65536).startswith(b"HTTP/1.1 200")


def flood(stack: ExitStack, server: ServerProcess, sources: list[str], count: int) -> None:
    """Open idle connections from each source address."""
    for source in sources:
        for _ in range(count):
            stack.enter_context(connect(server, source))


@pytest.mark.parametrize("sources", [["127.0.0.1"], ["127.0.0.2", "127.0.0.3", "127.0.0.4"]])
def test_idle_connections_do_not_stop_the_service(
    start_server: StartServer, sources: list[str]
) -> None:
    server = start_server(open_files=64)
    with ExitStack() as stack:
        flood(stack, server, sources, 100)
        for source in ("127.0.0.1", "127.0.0.9"):
            with connect(server, source) as sock:
                assert is_healthy(sock)
        assert server.post("add", {"a": 2})[1]["result"] == 3
    code, _, err = server.stop()
    assert code == 0
    assert len(err.splitlines()) < 5, err[:2000]


def test_running_call_survives_a_flood(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server(open_files=64)
    call = RunningCall(server, "wait", tmp_path)
    with ExitStack() as stack:
        flood(stack, server, ["127.0.0.1", "127.0.0.2"], 100)
        assert call.finish()["result"] == "done"


def test_exhausted_descriptors_are_logged_once(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server(open_files=64)
    call = RunningCall(server, "use_all_files", tmp_path)
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(server)) for _ in range(20)]
        for sock in waiting:
            sock.sendall(HEALTH)
        assert call.finish()["result"] > 10
        assert waiting[-1].recv(65536).startswith(b"HTTP/1.1 200")
    code, _, err = server.stop()
    assert code == 0
    assert len(err.splitlines()) < 5, err[:2000]


def test_server_recovers_from_an_address_that_used_its_share(
    start_server: StartServer, tmp_path: Path
) -> None:
    """All loopback addresses are one. tests/serving tests the shares of different addresses."""
    server = start_server(open_files=64)
    release = tmp_path / "release"
    with ExitStack() as stack:
        busy: list[socket.socket] = []
        for index in range(60):  # each connection has a call that does not end
            body = b'{"started": "%b", "release": "%b"}' % (
                str(tmp_path / f"started-{index}").encode(),
                str(release).encode(),
            )
            sock = stack.enter_context(connect(server, "127.0.0.2"))
            head = b"POST /tools/wait HTTP/1.1\r\nHost: localhost\r\n"
            head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            try:
                sock.sendall(head + body)
            except OSError:
                continue  # refused
            busy.append(sock)
        release.touch()
        for sock in busy:
            with suppress(OSError):
                sock.recv(65536)  # until its call has ended, or it was refused
    assert busy

    def can_connect() -> bool:
        with connect(server, "127.0.0.3") as sock:
            return is_healthy(sock)

    assert any(can_connect() for _ in range(1000))  # the server closes connections in turn


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize("tool", ["rows", "arows"])
def test_stream_with_a_further_request_ends_with_its_client(
    start_server: StartServer, tmp_path: Path, parser: str, tool: str
) -> None:
    """The further request hid the disconnection, and the stream went on for ever."""
    server = start_server(environment={"SERVED_APP_PARSER": parser})
    release, closed = tmp_path / "release", tmp_path / "closed"
    body = json.dumps({"release": str(release), "closed": str(closed)}).encode()
    head = f"POST /tools/{tool} HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with connect(server) as sock:
        sock.sendall(head.encode() + body + HEALTH)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
    release.touch()
    wait_until(closed.exists)
