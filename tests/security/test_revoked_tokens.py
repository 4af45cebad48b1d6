"""Streams whose token is revoked or expires: they end soon, with an event that says why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from hashlib import sha256
from pathlib import Path
from threading import Event
from time import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from tests.http.asgi_client import HOST, JSON, AsgiClient, Header
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan

from tooli import Tooli
from tooli.http import access_control
from tooli.mcp import mcp_endpoint
from tooli.policy import jwt_tokens

SECRET = "0123456789abcdef" * 4
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Server:
    """An app, and a token file that accepts the tokens `ali` and `eve`."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "tokens"
        self.write(ali="ali notes:read", eve="eve notes:read")
        self.release, self.closed = Event(), Event()
        self.app = app = Tooli("app", security_policy="strict")

        @app.command(auth=[])
        def rows() -> Iterator[int]:
            """Yield a row, then wait."""
            try:
                yield 1
                self.release.wait(120)
                yield from range(100)
            finally:
                self.closed.set()

        @app.command(auth=[])
        async def arows() -> AsyncIterator[int]:
            """Yield rows for ever."""
            try:
                while True:
                    yield 1
                    await asyncio.sleep(0.001)
            finally:
                self.closed.set()

        @app.command(auth=[])
        async def wait() -> None:
            """Wait for ever."""
            await asyncio.sleep(3600)

        app.resource("notes://1", auth=["notes:read"])(lambda: "note")

    def write(self, **tokens: str) -> None:
        lines = [f"{sha256(t.encode()).hexdigest()} {rest}\n" for t, rest in tokens.items()]
        self.file.write_text("".join(lines))
        self.file.chmod(0o600)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(access_control, "RECHECK_SECONDS", 0.01)
    monkeypatch.setenv("TOOLI_TOKENS", str(tmp_path / "tokens"))
    monkeypatch.setenv("TOOLI_TOKEN_KEY", str(tmp_path / "key"))
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "key").chmod(0o600)
    running = Server(tmp_path)
    yield running
    running.release.set()


def bearer(token: str) -> Header:
    return b"authorization", f"Bearer {token}".encode()


def open_stream(
    api: Any, method: str, path: str, message: Any, *headers: Header
) -> tuple[AsgiClient, asyncio.Task[None]]:
    client = AsgiClient(api)
    client.send_body(b"" if message is None else json.dumps(message).encode())
    if message is not None:
        headers = (JSON, *headers)
    return client, client.start(method, path, [HOST, *headers])


def open_rows(
    api: Any, accept: bytes, tool: str = "rows", token: str = "ali"
) -> tuple[AsgiClient, asyncio.Task[None]]:
    return open_stream(api, "POST", f"/tools/{tool}", {}, (b"accept", accept), bearer(token))


Revoke = Callable[[Server], object]
REVOCATIONS: dict[str, Revoke] = {
    "removed": lambda server: server.write(eve="eve notes:read"),
    "another subject": lambda server: server.write(ali="eva notes:read"),
    "fewer scopes": lambda server: server.write(ali="ali"),
    "no file": lambda server: server.file.unlink(),
    "invalid file": lambda server: server.file.write_text("x"),
}


@pytest.mark.parametrize("revoke", REVOCATIONS.values(), ids=REVOCATIONS)
@pytest.mark.parametrize("tool", ["rows", "arows"])
async def test_stream_of_a_tool_ends(server: Server, revoke: Revoke, tool: str) -> None:
    api = server.app.asgi(mcp=False)
    lines, lines_task = open_rows(api, b"application/x-ndjson", tool)
    events, events_task = open_rows(api, b"text/event-stream", tool)
    other, other_task = open_rows(api, b"text/event-stream", tool, "eve")
    for client in (lines, events, other):
        await client.wait_for_messages(2)
    revoke(server)
    for task in (lines_task, events_task):
        await asyncio.wait_for(task, 120)
    codes = {REVOCATIONS["no file"]: "E4075", REVOCATIONS["invalid file"]: "E4075"}
    last_line = json.loads(lines.body.splitlines()[-1])
    assert last_line["error"]["code"] == codes.get(revoke, "E2004")
    last_event = events.body.split(b"\n\n")[-2]
    assert last_event.startswith(b'event: error\ndata: {"ok":false')
    assert lines.sent[-1]["more_body"] is events.sent[-1]["more_body"] is False
    server.release.set()
    assert await asyncio.to_thread(server.closed.wait, 120)
    if revoke is REVOCATIONS["removed"]:
        assert b"E2004" in last_event
        assert not other_task.done() or b"event: end" in other.body
    other.disconnect()
    await asyncio.wait_for(other_task, 120)


async def test_stream_with_an_expired_jwt_ends(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = {"sub": "joe", "exp": int(time()) + 600}
    token = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET))
    api = server.app.asgi(mcp=False)
    client, task = open_rows(api, b"text/event-stream", token=token)
    await client.wait_for_messages(2)
    monkeypatch.setattr(jwt_tokens, "LEEWAY_SECONDS", -1000)
    await asyncio.wait_for(task, 120)
    assert b"The token has expired." in client.body.split(b"\n\n")[-2]


async def test_stream_with_a_fixed_token_stays_open(server: Server) -> None:
    api = server.app.asgi(mcp=False, token="fixed")
    client, task = open_rows(api, b"text/event-stream", "arows", "fixed")
    await client.wait_for_messages(2)
    server.file.unlink()
    await client.wait_for_messages(50)
    client.disconnect()
    await asyncio.wait_for(task, 120)


async def test_response_that_is_no_stream_is_complete(server: Server) -> None:
    release = asyncio.Event()

    async def wait() -> str:
        await release.wait()
        return "done"

    server.app.command("slow", auth=[])(wait)
    api = server.app.asgi(mcp=False)
    client, task = open_stream(api, "POST", "/tools/slow", {}, bearer("ali"))
    await asyncio.sleep(0)
    server.file.write_text("")
    await asyncio.sleep(0.05)
    release.set()
    await asyncio.wait_for(task, 120)
    assert client.json()["result"] == "done"


# ------------------------------------------------------------------ MCP


async def open_session(api: Any) -> Header:
    client, task = open_stream(api, "POST", "/mcp", INITIALIZE, ACCEPT, bearer("ali"))
    await asyncio.wait_for(task, 120)
    session = (b"mcp-session-id", client.headers["mcp-session-id"].encode())
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    _, task = open_stream(api, "POST", "/mcp", ready, ACCEPT, session, bearer("ali"))
    await asyncio.wait_for(task, 120)
    return session


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


STREAMS = ["session", "call", "listen"]


async def open_mcp_stream(api: Any, kind: str) -> tuple[AsgiClient, asyncio.Task[None]]:
    if kind == "listen":
        version = (b"mcp-protocol-version", b"2026-07-28")
        method = (b"mcp-method", b"subscriptions/listen")
        wanted = {"resourceSubscriptions": ["notes://1"]}
        message = request("subscriptions/listen", notifications=wanted, _meta=MODERN)
        return open_stream(api, "POST", "/mcp", message, ACCEPT, version, method, bearer("ali"))
    session = await open_session(api)
    if kind == "session":
        return open_stream(api, "GET", "/mcp", None, ACCEPT, session, bearer("ali"))
    message = request("tools/call", name="wait", arguments={})
    return open_stream(api, "POST", "/mcp", message, ACCEPT, session, bearer("ali"))


@pytest.mark.parametrize("revoke", REVOCATIONS.values(), ids=REVOCATIONS)
@pytest.mark.parametrize("kind", STREAMS)
async def test_mcp_stream_ends(server: Server, kind: str, revoke: Revoke) -> None:
    async with run_lifespan(server.app.asgi()) as api:
        client, task = await open_mcp_stream(api, kind)
        await client.wait_for_messages(1)
        assert client.headers["content-type"].startswith("text/event-stream")
        revoke(server)
        await asyncio.wait_for(task, 120)
        assert client.sent[-1]["body"].startswith(b'event: error\ndata: {"ok":false')
        assert client.sent[-1]["more_body"] is False
        server.app.announce("notes://1")
        server.write(ali="ali notes:read")
        again, task = await open_mcp_stream(api, kind)
        await again.wait_for_messages(1)
        assert again.status == 200
        again.disconnect()
        await asyncio.wait_for(task, 120)
        assert not api._slots._open_requests._counts


async def test_sse_session_ends(server: Server) -> None:
    mounts = {"": mcp_endpoint(server.app, transport="sse")}
    async with run_lifespan(server.app.asgi(mcp=False, mounts=mounts)) as api:
        client, task = open_stream(api, "GET", "/sse", None, ACCEPT, bearer("ali"))
        await client.wait_for_messages(2)
        server.write(eve="eve")
        await asyncio.wait_for(task, 120)
        assert b"event: error\ndata: " in client.body
        assert b"E2004" in client.body
        assert not api.mounts[0].app._handler._sessions._sessions
