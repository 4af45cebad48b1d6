"""MCP over HTTP: the paths of the transports below a root path, and the event store."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakSet

import pytest
from mcp_types import JSONRPCNotification
from tests.http.asgi_client import HOST, JSON, AsgiClient

from tooli import Tooli
from tooli.mcp import http_transport, mcp_endpoint
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


async def test_events_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(make_event("a" * 100).model_dump_json())
    monkeypatch.setattr(http_transport, "MAX_STORED_BYTES", 3 * size)
    events = MemoryEventStore()
    first = await events.store_event("1", make_event("a" * 100))
    await events.store_event("1", make_event("b" * 100))
    await events.store_event("1", make_event("c" * 100))
    assert (await replay(events, first))[1] == ["b" * 100, "c" * 100]
    await events.store_event("2", make_event("d" * 200))
    assert events.size <= 3 * size
    assert (await replay(events, first))[1] == ["c" * 100]
    last = await events.store_event("3", None)
    await events.store_event("3", make_event("e" * 1000))  # the last event is always kept
    assert (await replay(events, last))[1] == ["e" * 1000]
    assert (await replay(events, first))[0] is None


async def test_events_of_all_sessions_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "_STORES", WeakSet[MemoryEventStore]())
    monkeypatch.setattr(http_transport, "MAX_BYTES_OF_ALL_STORES", 1000)
    small, large = MemoryEventStore(), MemoryEventStore()
    await small.store_event("1", make_event("a"))
    for _ in range(20):
        await large.store_event("1", make_event("b" * 100))
    assert small.size + large.size <= 1000
    assert small.size > 0
    del large
    gc.collect()
    for _ in range(3):
        await small.store_event("1", make_event("c" * 100))
    assert small.size > 300


@pytest.mark.parametrize("limit", ["MAX_UNREAD_MESSAGES", "MAX_UNREAD_BYTES"])
async def test_unread_answers_end_an_sse_session(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_transport, limit, {"MAX_UNREAD_BYTES": 5000}.get(limit, 5))
    app = Tooli("app")
    app.command("echo")(lambda: "x" * 1000)
    async with run_lifespan(mcp_endpoint(app, transport="sse")) as api:
        stream = AsgiClient(api)
        task = stream.start("GET", "/sse", [HOST, ACCEPT])
        await stream.wait_for_messages(2)
        query = stream.body.split(b"?")[1].split()[0]
        await post_message(api, query, INITIALIZE)
        await stream.wait_for_messages(3)
        await post_message(api, query, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        stream.is_reading.clear()
        params = {"name": "echo", "arguments": {}}
        for i in range(10):
            if not task.done():
                message = {"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": params}
                await post_message(api, query, message)
        await asyncio.wait_for(task, 120)
        assert await post_message(api, query, INITIALIZE) == 404


async def post_message(api: Any, query: bytes, message: Any) -> int:
    """Send a message to an SSE session; return the status of the response."""
    client = AsgiClient(api)
    client.send_body(json.dumps(message).encode())
    task = client.start("POST", "/messages/", [HOST, JSON], query)
    await client.wait_for_messages(2)
    del task
    return client.status


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "1.0", "id": 1, "method": "tools/call", "params": {"token": "hunter2"}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ["hunter2"]},
        ["hunter2"],
        "hunter2",
    ],
)
async def test_invalid_message_is_not_repeated(message: Any) -> None:
    async with run_lifespan(Tooli("app").asgi(mcp=True)) as api:
        opened = AsgiClient(api)
        opened.send_body(json.dumps(INITIALIZE).encode())
        await asyncio.wait_for(opened.start("POST", "/mcp", [HOST, JSON, ACCEPT]), 120)
        session = (b"mcp-session-id", opened.headers["mcp-session-id"].encode())
        for headers in ([session], []):
            client = AsgiClient(api)
            client.send_body(json.dumps(message).encode())
            sent = [HOST, JSON, ACCEPT, *headers]
            await asyncio.wait_for(client.start("POST", "/mcp", sent), 120)
            assert client.status == 400
            assert b"hunter2" not in client.body
            assert client.json()["error"]["message"]
            assert client.headers["content-length"] == str(len(client.body))
