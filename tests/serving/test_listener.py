"""Listening: addresses, ports and tokens; the network: heads that never end, an end in order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from tooli.errors import InputError
from tooli.serving import uvicorn_server
from tooli.serving.listener import check_address, is_loopback, listen, server_url, take_token


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
        thread.join(20)
        assert ENDED == [1]


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


def test_a_head_that_never_ends(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as line:
        line.sendall(HEAD)
        assert line.recv(100) == b""


def test_a_client_that_says_nothing(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as line:
        assert line.recv(100) == b""


def test_a_second_head_that_never_ends(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=120) as line:
        line.sendall(HEAD + b"\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 204")
        line.sendall(HEAD)
        assert line.recv(100) == b""


def test_a_client_that_does_not_read_on(address: tuple[str, int]) -> None:
    TOLD.clear()
    with socket.create_connection(address, timeout=120) as line:
        line.sendall(HEAD.replace(b"/ ", b"/much ") + b"\r\n")
        assert TOLD.wait(20)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.com", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_addresses(host: str, local: bool) -> None:
    assert is_loopback(host) is local
    check_address(host, requires_token=True)
    if local:
        check_address(host, requires_token=False)
    else:
        with pytest.raises(InputError, match="token"):
            check_address(host, requires_token=False)


def test_ports() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert server_url(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(InputError, match=f"Port {port}"):
            listen("127.0.0.1", port)
    with pytest.raises(InputError, match="not an address"):
        listen("no such host.invalid", 0)


def test_an_empty_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_TOKEN", "")
    with pytest.raises(InputError, match="empty"):
        take_token(None)
