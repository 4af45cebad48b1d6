"""Mounted applications: behind the access control, with the lifespan of the server."""

from __future__ import annotations

import pytest
from tests.http.asgi_client import HOST, JSON, Client, post, send
from tests.parity.zoo import make_app

from tooli import Tooli
from tooli.testing.http_interfaces import run_lifespan


class Inner:
    """An application that notes what happens to it."""

    def __init__(self, fails: str = "") -> None:
        self.seen: list[str] = []
        self.fails = fails

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            while True:
                word = (await receive())["type"]
                self.seen.append(word)
                ending = "failed" if self.fails == word else "complete"
                await send({"type": f"{word}.{ending}"})
                if word == "lifespan.shutdown":
                    return
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.seen.append("cut")
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        self.seen.append(f"{scope['path']} {scope['tooli.scopes']}")
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % size})


async def test_a_mount_has_access_control_and_a_lifespan() -> None:
    inner = Inner()
    api = Tooli("outer").asgi(mcp=False, mounts={"/mcp": inner}, token="t", max_body=100)
    token = (b"authorization", b"Bearer t")
    async with run_lifespan(api):
        assert (await send(api, "POST", "/mcp", b"{}")).status == 401
        evil = (b"origin", b"http://evil.example")
        assert (await send(api, "POST", "/mcp", b"{}", token, evil)).status == 403
        assert (await send(api, "POST", "/mcp/x", b"abc", token)).body == b"3"
        assert (await send(api, "DELETE", "/mcp", None, token)).status == 201
        assert (await send(api, "POST", "/mcpx", b"{}", token)).status == 404
        large = await send(api, "POST", "/mcp", b" ", token, (b"content-length", b"101"))
        assert large.status == 413
        client = Client(api)
        for _ in range(5):
            client.say(b" " * 30, more=True)
        await client.start("POST", "/mcp", [HOST, JSON, token])
    assert inner.seen == [
        "lifespan.startup",
        "/mcp/x None",
        "/mcp None",
        "lifespan.shutdown",
    ]


@pytest.mark.parametrize("path", ["/", "/health", "/x"])
async def test_root_mount_needs_a_token_for_every_path(path: str) -> None:
    inner = Inner()
    api = Tooli("outer").asgi(mcp=False, mounts={"/": inner}, token="t", tools=False)
    refused = await send(api, "GET", path)
    assert (refused.status, refused.code) == (401, "E2401")
    assert inner.seen == []
    assert (await send(api, "GET", path, None, (b"authorization", b"Bearer t"))).status == 201


async def test_a_mount_may_not_support_lifespan() -> None:
    async def simple(scope, receive, send) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with run_lifespan(Tooli("outer").asgi(mcp=False, mounts={"/x": simple})) as api:
        assert (await send(api, "GET", "/x")).status == 202


async def test_a_mount_that_cannot_start_is_reported() -> None:
    api = Tooli("outer").asgi(mcp=False, mounts={"/x": Inner("lifespan.startup")})
    sent_types = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def note(message):
        sent_types.append(message["type"])

    await api({"type": "lifespan"}, receive, note)
    assert sent_types == ["lifespan.startup.failed"]


async def test_mcp_is_mounted_at_its_path() -> None:
    pytest.importorskip("mcp")
    async with run_lifespan(make_app().asgi()) as api:
        asked = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        accept = (b"accept", b"application/json, text/event-stream")
        assert (await send(api, "POST", "/mcp", asked, accept)).json()["jsonrpc"] == "2.0"
        assert (await post(api, "users/list")).status == 200
