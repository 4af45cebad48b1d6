"""The uvicorn server: timeouts for clients, cancelled requests, graceful shutdown."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import uvicorn

from tooli.http.http_server import listen
from tooli.serving import http_protocols, httptools_protocol, uvicorn_server


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})
        return
    if scope["path"] == "/thread":
        await asyncio.to_thread(BARRIER.wait)
    if scope["path"] == "/large":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        # 250 MB, more than the buffers hold: sent only if the client reads or disconnects
        for _ in range(4_000):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        LARGE_RESPONSE_ENDED.set()
        return
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


GRACE_PERIODS: list[float] = []
LARGE_RESPONSE_ENDED = threading.Event()
BARRIER = threading.Barrier(40, timeout=120)


@pytest.fixture(params=[http_protocols.H11Connection, httptools_protocol.HttpToolsConnection])
def address(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, int]]:
    async def on_shutdown(grace: float) -> None:
        GRACE_PERIODS.append(grace)

    monkeypatch.setattr(request.param, "header_timeout", 0.2)
    monkeypatch.setattr(request.param, "stall_timeout", 0.2)
    config = uvicorn.Config(application, http=request.param, log_config=None, ws="none")
    server = uvicorn_server.GracefulServer(config, None, 1, on_shutdown)
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()
        GRACE_PERIODS.clear()
        assert server._loop is not None
        server._loop.call_soon_threadsafe(server._start_shutdown)
        thread.join(120)
        assert GRACE_PERIODS == [1]


REQUEST_START = b"GET / HTTP/1.1\r\nHost: x\r\n"


def test_incomplete_headers_time_out(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as sock:
        sock.sendall(REQUEST_START)
        assert sock.recv(100) == b""


def test_async_functions_have_a_thread_for_each_call(address: tuple[str, int]) -> None:
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_connection(address, timeout=120))
            for _ in range(BARRIER.parties)
        ]
        for sock in sockets:
            sock.sendall(b"GET /thread HTTP/1.1\r\nHost: x\r\n\r\n")
        for sock in sockets:
            assert sock.recv(1000).startswith(b"HTTP/1.1 204")


def test_silent_client_times_out(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as sock:
        assert sock.recv(100) == b""


def test_incomplete_headers_of_a_second_request_time_out(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as sock:
        sock.sendall(REQUEST_START + b"\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 204")
        sock.sendall(REQUEST_START)
        assert sock.recv(100) == b""


def test_client_that_does_not_read_is_disconnected(address: tuple[str, int]) -> None:
    LARGE_RESPONSE_ENDED.clear()
    with socket.create_connection(address, timeout=120) as sock:
        sock.sendall(REQUEST_START.replace(b"/ ", b"/large ") + b"\r\n")
        assert LARGE_RESPONSE_ENDED.wait(120)


async def test_cancellation_of_a_request_is_not_logged_as_an_error() -> None:
    async def cancelled(scope: Any, receive: Any, send: Any) -> None:
        raise asyncio.CancelledError

    run = uvicorn_server._end_cancelled_requests(cancelled)
    await run({"type": "http"}, None, None)
    with pytest.raises(asyncio.CancelledError):
        await run({"type": "lifespan"}, None, None)
