"""The acceptor: the limit of connections, shares of addresses, proxies, failures of accept."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from typing import Any

import pytest

from tooli.http.http_server import listen
from tooli.serving import connection_acceptor
from tooli.serving.connection_acceptor import (
    MAX_CONNECTIONS,
    MIN_CONNECTIONS,
    ConnectionAcceptor,
    TrustedProxies,
    connection_limit,
)


@pytest.mark.parametrize(
    ("free", "limit"),
    [
        (None, MAX_CONNECTIONS),
        (10**6, MAX_CONNECTIONS),
        (1000, 750),
        (48, 36),
        (0, MIN_CONNECTIONS),
    ],
)
def test_limit_depends_on_free_descriptors(
    monkeypatch: pytest.MonkeyPatch, free: int | None, limit: int
) -> None:
    monkeypatch.setattr(connection_acceptor, "_free_descriptors", lambda: free)
    assert connection_limit() == limit


def test_free_descriptors_follow_the_limit_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    unlimited = resource.RLIM_INFINITY
    limits = [1000, 1000]
    raised: list[tuple[int, int]] = []

    def setrlimit(kind: int, new: tuple[int, int]) -> None:
        raised.append(new)
        limits[0] = new[0]

    monkeypatch.setattr(resource, "getrlimit", lambda kind: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    assert 0 < connection_limit() < 750
    limits[:] = [unlimited, unlimited]
    assert connection_limit() == MAX_CONNECTIONS
    assert raised == []


@pytest.mark.parametrize(("hard", "expected"), [(2000, 2000), (500_000, 8192), (None, 8192)])
def test_soft_limit_of_descriptors_is_raised(
    monkeypatch: pytest.MonkeyPatch, hard: int | None, expected: int
) -> None:
    resource = pytest.importorskip("resource")
    maximum = resource.RLIM_INFINITY if hard is None else hard
    limits = [1024, maximum]

    def setrlimit(kind: int, new: tuple[int, int]) -> None:
        limits[:] = new

    monkeypatch.setattr(resource, "getrlimit", lambda kind: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    assert connection_limit() > 1024 * 3 // 4
    assert limits == [expected, maximum]


@pytest.mark.parametrize(
    ("proxies", "address", "is_trusted"),
    [
        ("", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1, 10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "::1", False),
        ("fe80::/10", "fe80::1%eth0", True),
        ("*", "192.0.2.1", True),
        ("proxy.local", "192.0.2.1", False),
        ("10.0.0.0/8", "", False),
    ],
)
def test_trusted_proxies(proxies: str, address: str, is_trusted: bool) -> None:
    assert (address in TrustedProxies(proxies)) is is_trusted


class EchoProtocol(asyncio.Protocol):
    """Echoes data. A connection is idle until it has received something."""

    on_end: Any = None
    transport: Any = None
    is_idle = True
    is_aborted = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self.is_aborted:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self.is_idle = False
        self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.on_end(self)

    def abort(self) -> None:
        self.is_idle, self.is_aborted = False, True
        if self.transport is not None:
            self.transport.abort()


class Clients:
    """An acceptor with a limit, and clients that connect to it."""

    def __init__(self, limit: int, **options: Any) -> None:
        self.listener = listen("127.0.0.1", 0)
        self.acceptor = ConnectionAcceptor(self.listener, EchoProtocol, limit=limit, **options)
        self.acceptor.start()
        self.writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Clients:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.acceptor.close()
        await self.acceptor.wait_closed()
        for writer in self.writers:
            writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.listener.getsockname())
        self.writers.append(writer)
        return reader, writer

    async def echo(self) -> asyncio.StreamReader:
        """Open a connection that is not idle."""
        reader, writer = await self.connect()
        writer.write(b"hi")
        assert await asyncio.wait_for(reader.read(2), 120) == b"hi"
        return reader


async def test_oldest_idle_connection_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_acceptor, "MIN_IDLE_SECONDS", 0)
    async with Clients(limit=2, proxies="*") as clients:
        busy = await clients.echo()
        idle, _ = await clients.connect()
        await clients.echo()
        assert await asyncio.wait_for(idle.read(1), 120) == b""
        assert not busy.at_eof()


async def test_connection_waits_until_another_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_acceptor, "MIN_IDLE_SECONDS", 1000)
    async with Clients(limit=2, proxies="*") as clients:
        await clients.echo()
        await clients.echo()
        waiting, writer = await clients.connect()
        writer.write(b"hi")
        read = asyncio.ensure_future(waiting.read(2))
        await clients.connect()  # several iterations of the event loop
        assert not read.done()
        clients.writers[0].close()
        assert await asyncio.wait_for(read, 120) == b"hi"


async def test_waiting_connections_are_accepted_before_the_listener_is_closed() -> None:
    async with Clients(limit=2, proxies="*") as clients:
        with socket.create_connection(clients.listener.getsockname()) as waiting:
            clients.acceptor.close()
            waiting.sendall(b"hi")
            waiting.setblocking(False)
            loop = asyncio.get_running_loop()
            assert await asyncio.wait_for(loop.sock_recv(waiting, 2), 120) == b"hi"


async def test_address_with_its_share_is_refused() -> None:
    async with Clients(limit=4) as clients:
        await clients.echo()
        await clients.echo()
        refused, _ = await clients.connect()
        assert (await asyncio.wait_for(refused.read(100), 120)).startswith(b"HTTP/1.1 503")
        clients.writers[0].close()
        clients.writers[1].close()
        while clients.acceptor._open:
            await asyncio.sleep(0)
        await clients.echo()


async def test_failure_of_accept_pauses_the_acceptor(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_acceptor, "ACCEPT_RETRY_DELAY", 0.01)
    failures = [OSError(errno.EMFILE, "Too many open files")] * 5
    failures += [OSError(errno.EIO, "Input/output error"), ConnectionAbortedError()]

    class FailingListener:
        def __init__(self, listener: socket.socket) -> None:
            self._listener = listener

        def __getattr__(self, name: str) -> Any:
            return getattr(self._listener, name)

        def accept(self) -> Any:
            if failures:
                raise failures.pop(0)
            return self._listener.accept()

    async with Clients(limit=4) as clients:
        clients.acceptor._listener = FailingListener(clients.listener)  # type: ignore[assignment]
        with caplog.at_level(logging.ERROR, "uvicorn.error"):
            await clients.echo()
    assert failures == []
    assert [record.getMessage() for record in caplog.records] == [
        "cannot accept more connections: Too many open files. Raise ulimit -n."
    ]
