"""The gate before MCP over HTTP: what it refuses, without a network."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tooli.surfaces.mcp.gate import LARGEST_BODY, Gate


async def knock(
    gate: Gate,
    *headers: tuple[bytes, bytes],
    pieces: list[bytes] | None = None,
    method: str = "POST",
) -> int:
    """The status that a request gets; one that never ends its body waits for ever."""
    waiting = list(pieces or [])
    status: list[int] = []

    async def receive() -> dict[str, Any]:
        if pieces is None:
            return {"type": "http.request", "body": b"{}", "more_body": False}
        if not waiting:
            await asyncio.Event().wait()
        piece = waiting.pop(0)
        if piece == b"GONE":
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])

    said = (
        headers
        if any([name == b"host" for name, _ in headers])
        else ((b"host", b"[::1]"), *headers)
    )
    await gate({"type": "http", "method": method, "path": "/mcp", "headers": said}, receive, send)
    return status[0] if status else 0


class Inner:
    """What stands behind the gate."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.scopes: Any = ...

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            self.bodies.append(b"lifespan")
            return
        self.bodies.append((await receive()).get("body", b""))
        self.scopes = scope["tooli.scopes"]
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_a_body_that_never_ends() -> None:
    inner = Inner()
    assert await knock(Gate(inner, body_time=0.02), pieces=[b"{", b'"a"']) == 408
    assert inner.bodies == []


async def test_a_client_that_leaves() -> None:
    inner = Inner()
    assert await knock(Gate(inner), pieces=[b"{", b"GONE"]) == 0
    assert inner.bodies == []


async def test_a_body_in_pieces() -> None:
    inner = Inner()
    assert await knock(Gate(inner), pieces=[b"{", b"}", b""]) == 200
    assert inner.bodies == [b"{}"]


async def test_a_body_that_is_too_large() -> None:
    assert await knock(Gate(Inner()), pieces=[b" " * LARGEST_BODY, b" "]) == 413
    assert await knock(Gate(Inner()), (b"content-length", b"%d" % (LARGEST_BODY + 1))) == 413


@pytest.mark.parametrize(
    ("hosts", "host", "status"),
    [
        (("example.com",), b"EXAMPLE.com:80", 200),
        (("example.com",), b"localhost", 421),
        (None, b"anything", 200),
        (None, b"", 421),
    ],
)
async def test_hosts(hosts: Any, host: bytes, status: int) -> None:
    assert await knock(Gate(Inner(), hosts=hosts), (b"host", host)) == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (b"http://anything", 200),
        (b"https://anything", 200),
        (b"https://Friend.example/", 403),
        (b"https://friend.example", 200),
        (b"http://localhost", 403),
        (b"null", 403),
    ],
)
async def test_origins_where_the_host_is_not_known(origin: bytes, status: int) -> None:
    gate = Gate(Inner(), hosts=None, origins=["https://friend.example/"])
    assert await knock(gate, (b"host", b"anything"), (b"origin", origin)) == status


@pytest.mark.parametrize("name", [b"host", b"origin", b"authorization"])
async def test_headers_that_are_there_twice(name: bytes) -> None:
    gate = Gate(Inner(), token="t")
    assert await knock(gate, (b"host", b"localhost"), (name, b"a"), (name, b"b")) == 400


async def test_scopes() -> None:
    inner = Inner()
    await knock(Gate(inner))
    assert inner.scopes == frozenset()
    await knock(Gate(inner, token="t"), (b"authorization", b"Bearer t"))
    assert inner.scopes is None


async def test_a_life_passes_through() -> None:
    inner = Inner()
    await Gate(inner)({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
    assert inner.bodies == [b"lifespan"]
