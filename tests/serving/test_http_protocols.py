"""The protocols of a connection: the size of heads, errors within pipelines, the choice of one."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from tooli.serving.http_protocols import H11Connection
from tooli.serving.httptools_protocol import HttpToolsConnection
from tooli.serving.uvicorn_server import select_protocol

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Transport(asyncio.Transport):
    """Records what a connection writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


BODIES: list[bytes] = []
DISCONNECTED: list[str] = []


async def application(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    BODIES.append(body)
    if scope["path"] == "/wait":
        await asyncio.Event().wait()
    if scope["path"] == "/stream":
        assert (await receive())["type"] == "http.disconnect"
        DISCONNECTED.append(scope["path"])
        return
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(params=[H11Connection, HttpToolsConnection])
async def connection(request: pytest.FixtureRequest) -> Any:
    config = uvicorn.Config(application, http=request.param, log_config=None, ws="none")
    config.load()
    protocol = request.param(config, ServerState(), {})
    transport = Transport()
    protocol.connection_made(transport)
    BODIES.clear()
    DISCONNECTED.clear()
    yield protocol, transport
    protocol.connection_lost(None)
    for task in protocol.tasks:
        task.cancel()


async def run_loop() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("start", "part"),
    [
        (b"GET /", b"x" * 1000),
        (HEAD + b"X: ", b"x" * 1000),
        (HEAD, b"X: 1\r\n" * 100),
        (CHUNKED + b"7;", b"x" * 1000),
    ],
    ids=["path", "header", "headers", "chunk extension"],
)
async def test_endless_head_is_refused(connection: Any, start: bytes, part: bytes) -> None:
    protocol, transport = connection
    protocol.data_received(start)
    sent = 0
    while not transport.is_closed and sent < 1_000_000:
        protocol.data_received(part)
        sent += len(part)
        await run_loop()
    assert sent < 200_000
    assert transport.written.startswith(b"HTTP/1.1 400")
    assert b"The request is not valid HTTP." in transport.written


async def test_endless_trailer_is_refused() -> None:
    config = uvicorn.Config(application, http=HttpToolsConnection, log_config=None, ws="none")
    config.load()
    protocol: Any = HttpToolsConnection(config, ServerState(), {})
    transport = Transport()
    protocol.connection_made(transport)
    protocol.data_received(CHUNKED + b"1\r\nx\r\n0\r\nX: ")
    for _ in range(100):
        protocol.data_received(b"x" * 1000)
    assert transport.is_closed
    protocol.connection_lost(None)


@pytest.mark.parametrize("size", [1, 7, 1000, 1_000_000])
async def test_body_in_small_parts_is_received(connection: Any, size: int) -> None:
    protocol, transport = connection
    body = b"x" * 30_000
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    data = b"".join([b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks])
    protocol.data_received(CHUNKED)
    for i in range(0, len(data), 50_000):
        protocol.data_received(data[i : i + 50_000])
    protocol.data_received(b"0\r\n\r\n")
    await run_loop()
    assert BODIES == [body]
    assert transport.written.startswith(b"HTTP/1.1 200")


async def test_large_body_with_a_length_is_no_head(connection: Any) -> None:
    protocol, transport = connection
    protocol.data_received(HEAD + b"Content-Length: 1000000\r\n\r\n")
    for _ in range(10):
        protocol.data_received(b"x" * 100_000)
    await run_loop()
    assert [len(body) for body in BODIES] == [1_000_000]
    assert not transport.is_closed


async def test_error_in_a_pipeline_does_not_answer_the_running_request(connection: Any) -> None:
    """The client would take the error for the answer of its first request."""
    protocol, transport = connection
    protocol.data_received(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    await run_loop()
    protocol.data_received(b"GET /2 HTTP/1.1\r\nHost: x\r\n\r\n\x00\x00\r\n\r\n")
    await run_loop()
    assert b"200" not in transport.written


NEXT = b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "next_requests", [b"", NEXT, NEXT * 3, HEAD + b"Content-Length: 5\r\n\r\n"]
)
@pytest.mark.parametrize("is_invalid", [False, True])
async def test_disconnection_ends_the_running_request(
    connection: Any, next_requests: bytes, is_invalid: bool
) -> None:
    """A stream whose client sends further requests and disconnects went on for ever."""
    protocol, _ = connection
    protocol.data_received(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    await run_loop()
    if next_requests:
        protocol.data_received(next_requests)
    await run_loop()
    assert not DISCONNECTED
    if is_invalid and not next_requests.startswith(HEAD):
        protocol.data_received(b"\x00\x00\r\n\r\n")
        await run_loop()
    protocol.connection_lost(None)
    await run_loop()
    assert DISCONNECTED == ["/stream"]
    assert len(BODIES) == 1  # no further request was started


def test_fastest_installed_protocol_is_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert select_protocol() is HttpToolsConnection
    monkeypatch.setitem(sys.modules, "httptools", None)
    assert select_protocol() is H11Connection
