"""Pages about the app, mounted applications, and timeouts of clients."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.http.driving import HOST, JSON, Client, post, send
from tests.parity.zoo import make_app

from tooli import Tooli
from tooli.describe.schema_formats import describe_tool
from tooli.http import info_pages
from tooli.http.client_timeouts import ClientTimeout, wait_with_timeout
from tooli.testing.http_interfaces import run_lifespan


async def test_health_is_short() -> None:
    client = await send(Tooli("small", version="3").asgi(mcp=False, token="t"), "GET", "/health")
    assert client.json() == {"ok": True, "app": "small", "version": "3"}


async def test_tools_have_all_that_a_form_needs() -> None:
    app = make_app()
    told = (await send(app.asgi(mcp=False), "GET", "/tools")).json()
    assert {key: told[key] for key in ("app", "version", "description", "prog")} == {
        "app": "zoo",
        "version": "1.2.0",
        "description": "Everything once.",
        "prog": "zoo",
    }
    commands = {command["name"]: command for command in told["commands"]}
    find = commands["find-files"]
    tool = app.find("find-files")
    assert tool is not None
    assert find.items() >= describe_tool(tool, "json").items()
    assert find["positional"] == ["pattern"]
    assert find["flags"]["kinds"] == "--kind"
    assert find["negations"]["follow"] == "--no-follow"
    assert "streams" not in find
    assert commands["count"]["streams"] is True
    assert commands["users.create"]["path"] == ["users", "create"]
    assert commands["users.create"]["mcp_name"] == "users_create"


async def test_the_documents_follow_the_app() -> None:
    app = Tooli("growing")
    app.command("one")(lambda: 1)
    api = app.asgi(mcp=False)
    assert len((await send(api, "GET", "/tools")).json()["commands"]) == 1
    app.command("two")(lambda: 2)
    assert len((await send(api, "GET", "/tools")).json()["commands"]) == 2
    assert len((await send(api, "GET", "/openapi.json")).json()["paths"]) == 2


# ------------------------------------------------------------------ the page


async def test_the_page_runs_only_its_own_scripts(monkeypatch) -> None:
    monkeypatch.setattr(info_pages, "_read_page", lambda: b'<script nonce="__NONCE__"></script>')
    api = Tooli("paged").asgi(mcp=False, token="t")
    first, second = await send(api, "GET", "/"), await send(api, "GET", "/")
    (nonce,) = re.findall(r'nonce="([\w-]{20,})"', first.body.decode())
    policy = first.headers["content-security-policy"]
    assert f"script-src 'nonce-{nonce}'" in policy
    assert f"style-src 'nonce-{nonce}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert nonce not in second.body.decode()
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["referrer-policy"] == "no-referrer"
    assert first.headers["cache-control"] == "no-store"


async def test_without_a_page_there_is_none(monkeypatch) -> None:
    assert (await send(Tooli("paged").asgi(mcp=False, page=False), "GET", "/")).status == 404
    monkeypatch.setattr(
        "importlib.resources.files", lambda _: __import__("pathlib").Path("/nowhere")
    )
    client = await send(Tooli("paged").asgi(mcp=False), "GET", "/")
    assert (client.status, client.code) == (404, "E1404")


# ------------------------------------------------------------------ mounts


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


# ------------------------------------------------------------------ client timeouts


async def test_a_timeout_ends_a_wait() -> None:
    with pytest.raises(ClientTimeout):
        await wait_with_timeout(0.001, asyncio.Event().wait())
    with pytest.raises(ClientTimeout):
        await wait_with_timeout(0.001, asyncio.get_running_loop().create_future())
    task = asyncio.current_task()
    assert task is not None
    assert getattr(task, "cancelling", int)() == 0


async def test_a_wait_returns_what_was_awaited() -> None:
    async def now() -> int:
        return 1

    async def soon() -> int:
        await asyncio.sleep(0)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except asyncio.TimeoutError:
            await asyncio.sleep(0)
        return 2

    async def never() -> None:
        await asyncio.sleep(0)
        raise KeyError

    assert await wait_with_timeout(20, now()) == 1
    assert await wait_with_timeout(20, soon()) == 2
    with pytest.raises(KeyError):
        await wait_with_timeout(20, never())


async def test_a_wait_can_be_cancelled() -> None:
    task = asyncio.ensure_future(wait_with_timeout(20, asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
