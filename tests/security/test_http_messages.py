"""Attacks with HTTP messages over a socket: request smuggling, unusual forms, slow clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn")

from tests.integration.http.server_process import ServerProcess

BODY = b'{"a":1}'
START = b"POST /tools/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"7\r\n" + BODY + b"\r\n0\r\n\r\n"
HIDDEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module", params=["h11", "httptools"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    process = ServerProcess(environment={"SERVED_APP_PARSER": request.param})
    yield process
    code, _, err = process.stop()
    assert (code, err) == (0, "")


def exchange(server: ServerProcess, data: bytes, responses: int | None = None) -> bytes:
    """Send data, and return what the server sends until it closes the connection.

    With `responses`, return after this number of responses.
    """
    received = b""
    with server.open_socket() as sock:
        try:
            sock.sendall(data)
            while received.count(b"HTTP/1.1 ") != responses and (chunk := sock.recv(65536)):
                received += chunk
        except ConnectionError:
            pass
    return received


@pytest.mark.parametrize(
    "request_bytes",
    [
        START + b"Content-Length: 7\r\n" + CHUNKED + b"\r\n" + CHUNKS,
        START + CHUNKED + b"Content-Length: 7\r\n\r\n" + CHUNKS,
        START + CHUNKED + b"content-LENGTH: 0\r\n\r\n" + CHUNKS,
        START + b"Content-Length: 7\r\nContent-Length: 8\r\n\r\n" + BODY,
        START + b"Content-Length: 7, 8\r\n\r\n" + BODY,
        START + b"Content-Length: +7\r\n\r\n" + BODY,
        START + b"Content-Length: 0x7\r\n\r\n" + BODY,
        START + b"Content-Length: -7\r\n\r\n" + BODY,
        START + b"Content-Length : 7\r\n\r\n" + BODY,
        START + b"Content-Length: 99999999999999999999999\r\n\r\n" + BODY,
        START + CHUNKED + CHUNKED + b"\r\n" + CHUNKS,
        START + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
        START + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
        START + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
        START + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + CHUNKS,
        START + CHUNKED + b"\r\n-7\r\n" + BODY + b"\r\n0\r\n\r\n",
        START + CHUNKED + b"\r\n0x7\r\n" + BODY + b"\r\n0\r\n\r\n",
        START + CHUNKED + b"\r\n7;" + b"x" * 100_000,
        START + CHUNKED + b"\r\n" + b"f" * 30 + b"\r\n" + BODY,
        START + b"Host: localhost\r\nContent-Length: 7\r\n\r\n" + BODY,
        START + b"X-A: 1\r\nX\x00B: 2\r\nContent-Length: 7\r\n\r\n" + BODY,
        b"POST /tools/add HTTP/1.1\r\nContent-Type: application/json\r\n\r\n",
        b"POST /tools/add HTTP/1.0\r\nContent-Type: application/json\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        START + b"X: 1\r\n" * 300 + b"Content-Length: 7\r\n\r\n" + BODY,
    ],
)
def test_ambiguous_request_ends_the_connection(server: ServerProcess, request_bytes: bytes) -> None:
    """The server answers with one error. What follows is not read as a second request."""
    received = exchange(server, request_bytes + HIDDEN)
    assert received.count(b"HTTP/1.1 ") <= 1
    assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413", b"HTTP/1.1 501"))


@pytest.mark.parametrize(
    ("request_bytes", "statuses"),
    [
        (b"GET //health HTTP/1.1\r\nHost: localhost\r\n\r\n", [404]),
        (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", [421]),
        (b"GET /health HTTP/1.1\r\nHost: localhost:80@evil.example\r\n\r\n", [421]),
        (b"GET /health HTTP/1.1\r\nHost: \r\n\r\n", [421]),
        (b"GET /health HTTP/1.1\r\nHost: [::1\r\n\r\n", [421]),
        (b"TRACE /health HTTP/1.1\r\nHost: localhost\r\n\r\n", [405]),
        (b"GET /health HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n", [200]),
        (
            b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
            b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQA\r\n\r\n",
            [200],
        ),
        (
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n",
            [200],
        ),
        (START + CHUNKED + b"\r\n" + CHUNKS, [200]),
        (START + CHUNKED + b"\r\n7;ext=1\r\n" + BODY + b"\r\n0\r\nX-Trailer: 1\r\n\r\n", [200]),
        (HIDDEN * 50, [200] * 50),
    ],
)
def test_unusual_request_is_answered(
    server: ServerProcess, request_bytes: bytes, statuses: list[int]
) -> None:
    received = exchange(server, request_bytes, len(statuses))
    answered = [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]
    assert answered == statuses


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (START + b"Content-Length: 7\r\nContent-Length: 7\r\n\r\n" + BODY, b"200"),
    ],
)
def test_request_that_httptools_refuses(
    server: ServerProcess, request_bytes: bytes, status: bytes
) -> None:
    """The parser of httptools is stricter than h11. No parser answers the request twice."""
    received = exchange(server, request_bytes, 1)
    assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 " + status))
    assert received.count(b"HTTP/1.1 ") == 1


def test_trailer_is_not_a_header(server: ServerProcess) -> None:
    trailer = b"Host: evil.example\r\nX-Filler: 1\r\n"
    request = START + CHUNKED + b"\r\n7\r\n" + BODY + b"\r\n0\r\n" + trailer + b"\r\n"
    assert exchange(server, request, 1).startswith(b"HTTP/1.1 200")


def test_small_chunks_are_accepted(server: ServerProcess) -> None:
    chunks = b"".join([b"1\r\n%c\r\n" % byte for byte in BODY.ljust(40_000)]) + b"0\r\n\r\n"
    received = exchange(server, START + CHUNKED + b"\r\n" + chunks, 1)
    assert received.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "start",
    [
        b"POST /x HTTP/1.1\r\nHost: localhost\r\n",
        b"POST / HTTP/1.1\r\nHost: elsewhere\r\n",
        START,
    ],
)
def test_invalid_chunk_after_the_headers_is_not_logged(server: ServerProcess, start: bytes) -> None:
    received = exchange(server, start + CHUNKED + b"\r\nzz\r\n")
    assert received.startswith(b"HTTP/1.1 4")  # the fixture checks that stderr is empty
