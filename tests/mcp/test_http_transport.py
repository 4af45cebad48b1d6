"""MCP over HTTP: the paths of the transports below a root path, and the event store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp_types import JSONRPCNotification
from tests.http.asgi_client import HOST, JSON, AsgiClient

from tooli import Tooli
from tooli.mcp import mcp_endpoint
from tooli.mcp.http_transport import MemoryEventStore

ACCEPT = (b"accept", b"application/json, text/event-stream")
INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


@asynccontextmanager
async def run_lifespan(api: Any) -> AsyncIterator[Any]:
    """An application between its startup and its shutdown."""
    inbox, replies = asyncio.Queue[Any](), asyncio.Queue[Any]()
    life = asyncio.ensure_future(api({"type": "lifespan", "state": {}}, inbox.get, replies.put))
    await inbox.put({"type": "lifespan.startup"})
    await asyncio.wait_for(replies.get(), 120)
    yield api
    await inbox.put({"type": "lifespan.shutdown"})
    await asyncio.wait_for(life, 120)


@pytest.mark.parametrize(
    ("path", "root", "status"),
    [
        ("/mcp", "", 200),
        ("/api/mcp", "/api", 200),
        ("/api/mcp/", "/api", 200),
        ("/api/mcp", "/api/", 200),
        ("/mcp", "/m", 200),  # a server that removes the prefix from the path
        ("/mcp", "/api", 200),
        ("/api/mcp", "", 404),
        ("/apimcp", "/api", 404),
    ],
)
@pytest.mark.parametrize("mounted", [True, False])
async def test_streamable_http_path_depends_on_the_root_path(
    path: str, root: str, status: int, mounted: bool
) -> None:
    app = Tooli("app")
    async with run_lifespan(app.asgi(mcp=True) if mounted else mcp_endpoint(app)) as api:
        client = AsgiClient(api)
        client.send_body(json.dumps(INITIALIZE).encode())
        await asyncio.wait_for(client.start("POST", path, [HOST, JSON, ACCEPT], root=root), 120)
        assert client.status == status


async def test_sse_sends_the_url_for_messages() -> None:
    async with run_lifespan(mcp_endpoint(Tooli("app"), transport="sse")) as api:
        stream = AsgiClient(api)
        task = stream.start("GET", "/api/sse", [HOST, ACCEPT], root="/api")
        await stream.wait_for_messages(2)
        url = stream.body.split(b"data: ")[1].split()[0].decode()
        path, _, query = url.partition("?")
        assert path == "/api/messages/"
        message = AsgiClient(api)
        message.send_body(json.dumps(INITIALIZE).encode())
        await message.start("POST", path, [HOST, JSON], query.encode(), "/api")
        assert message.status == 202
        await stream.wait_for_messages(3)
        assert b'"serverInfo"' in stream.body
        stream.disconnect()
        await asyncio.wait_for(task, 120)


# ------------------------------------------------------------------ events of streams


def make_event(name: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=name)


async def replay(events: MemoryEventStore, last: str) -> tuple[str | None, list[str]]:
    """Return the stream and the methods of the events after an event."""
    replayed: list[str] = []

    async def collect(event: Any) -> None:
        replayed.append(event.message.method)

    return await events.replay_events_after(last, collect), replayed


async def test_events_after_the_last_event_id_are_replayed() -> None:
    events = MemoryEventStore()
    first = await events.store_event("1", None)
    await events.store_event("1", make_event("a"))
    await events.store_event("2", make_event("other"))
    second = await events.store_event("1", make_event("b"))
    assert await replay(events, first) == ("1", ["a", "b"])
    assert await replay(events, second) == ("1", [])


async def test_unknown_event_id_replays_nothing() -> None:
    events = MemoryEventStore()
    await events.store_event("1", make_event("a"))
    for last in ("", "1", "x@1", "1@2", "@1"):
        assert await replay(events, last) == (None, [])


async def test_oldest_events_and_streams_are_dropped_first() -> None:
    events = MemoryEventStore(max_streams=2, max_events=2)
    first = await events.store_event("1", make_event("a"))
    for name in ("b", "c", "d"):
        await events.store_event("1", make_event(name))
    assert await replay(events, first) == ("1", ["c", "d"])
    await events.store_event("2", make_event("x"))
    await events.store_event("3", make_event("y"))
    assert await replay(events, first) == (None, [])
