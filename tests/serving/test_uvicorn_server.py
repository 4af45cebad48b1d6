"""The uvicorn server: timeouts for clients, cancelled requests, graceful shutdown."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from tooli.http.http_server import listen
from tooli.serving import uvicorn_server


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        for word in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{word}.complete"})
        return
    if scope["path"] == "/much":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(4_000):  # 250 MB: no buffer takes it, but a client that reads, or has gone
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        TOLD.set()
        return
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


ENDED: list[float] = []
TOLD = threading.Event()


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    async def before_end(grace: float) -> None:
        ENDED.append(grace)

    monkeypatch.setattr(uvicorn_server.TimeoutProtocol, "header_timeout", 0.2)
    monkeypatch.setattr(uvicorn_server.TimeoutProtocol, "stall_timeout", 0.2)
    config = uvicorn.Config(
        application, http=uvicorn_server.TimeoutProtocol, log_config=None, ws="none"
    )
    server = uvicorn_server.GracefulServer(config, None, 1, before_end)
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()
        ENDED.clear()
        assert server._loop is not None
        server._loop.call_soon_threadsafe(server._start_shutdown)
        thread.join(120)
        assert ENDED == [1]


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


def test_incomplete_headers_time_out(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as line:
        line.sendall(HEAD)
        assert line.recv(100) == b""


def test_silent_client_times_out(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as line:
        assert line.recv(100) == b""


def test_incomplete_headers_of_a_second_request_time_out(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as line:
        line.sendall(HEAD + b"\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 204")
        line.sendall(HEAD)
        assert line.recv(100) == b""


def test_client_that_does_not_read_is_disconnected(address: tuple[str, int]) -> None:
    TOLD.clear()
    with socket.create_connection(address, timeout=120) as line:
        line.sendall(HEAD.replace(b"/ ", b"/much ") + b"\r\n")
        assert TOLD.wait(120)


async def test_cancellation_of_a_request_is_not_logged_as_an_error() -> None:
    async def cancelled(scope: Any, receive: Any, send: Any) -> None:
        raise asyncio.CancelledError

    run = uvicorn_server._end_cancelled_requests(cancelled)
    await run({"type": "http"}, None, None)
    with pytest.raises(asyncio.CancelledError):
        await run({"type": "lifespan"}, None, None)
