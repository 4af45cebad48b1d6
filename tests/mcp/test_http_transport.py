"""MCP over HTTP: the paths of the transports below a root path, and unread answers."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient

from tooli import Tooli
from tooli.mcp import http_transport, mcp_endpoint

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


# ------------------------------------------------------------------ large messages


async def send_in_session(api: Any, body: bytes, session: bytes | None = None) -> AsgiClient:
    client = AsgiClient(api)
    client.send_body(body)
    headers = [HOST, JSON, ACCEPT, *([] if session is None else [(b"mcp-session-id", session)])]
    await asyncio.wait_for(client.start("POST", "/mcp", headers), 120)
    return client


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":['
        + b"[]," * 100_000
        + b"1]}}}",
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":["'
        + b"x" * 3_000_000
        + b'"]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large","arguments":{}}}',
    ],
    ids=["request", "notification", "answer"],
)
async def test_idle_session_keeps_no_large_message(body: bytes) -> None:
    """The loops of the SDK keep the last message of a session."""
    app = Tooli("app")
    app.command("large")(lambda: "x" * 9_000_000)
    async with run_lifespan(mcp_endpoint(app)) as api:
        opened = await send_in_session(api, json.dumps(INITIALIZE).encode())
        session = opened.headers["mcp-session-id"].encode()
        await send_in_session(
            api, b'{"jsonrpc":"2.0","method":"notifications/initialized"}', session
        )
        await send_in_session(api, body, session)  # imports modules
        tracemalloc.start()
        try:
            await send_in_session(api, body, session)
            await asyncio.sleep(0)
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 2_000_000
            assert tracemalloc.get_traced_memory()[1] > 2_900_000
        finally:
            tracemalloc.stop()
