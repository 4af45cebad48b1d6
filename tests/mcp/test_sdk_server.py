"""AppServer: pages, concurrent calls, shutdown and internal errors."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tooli import Context, Tooli
from tooli.mcp import service
from tooli.mcp.sdk_server import AppServer, make_server
from tooli.mcp.service import McpService

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def serve(app: Tooli, **options: Any) -> AppServer:
    return make_server(McpService(app, **options))


# ------------------------------------------------------------------ pages


@ERAS
async def test_pages_of_lists(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PAGE_SIZE", 2)
    app = Tooli("app")
    for i in range(5):
        app.command(f"tool-{i}")(lambda: "")
        app.prompt(f"prompt-{i}")(lambda: "")
        app.resource(f"x://{i}")(lambda: "")
        app.resource(f"x{i}://{{a}}")(lambda a: "")
    async with Client(serve(app), mode=mode) as client:
        for listing, key, count in (
            (client.list_tools, "tools", 5),
            (client.list_prompts, "prompts", 5),
            (client.list_resources, "resources", 6),
            (client.list_resource_templates, "resource_templates", 5),
        ):
            found: list[str] = []
            cursor: str | None = None
            while True:
                page = await listing(cursor=cursor)
                found += [one.name for one in getattr(page, key)]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert len(found) == count, key
            with pytest.raises(MCPError) as refused:
                await listing(cursor="p1000")
            assert refused.value.code == -32602


@ERAS
async def test_empty_app(mode: Any) -> None:
    async with Client(serve(Tooli("app")), mode=mode) as client:
        assert (await client.list_tools()).tools == []
        assert (await client.list_prompts()).prompts == []
        assert [r.uri for r in (await client.list_resources()).resources] == [
            "skill://app/SKILL.md"
        ]


@ERAS
async def test_strict_policy(mode: Any) -> None:
    app = Tooli("app", security_policy="strict")
    app.resource("x://open", auth=[])(lambda: "open")
    app.resource("x://shut")(lambda: "shut")
    app.prompt("open", auth=[])(lambda: "open")
    app.prompt("shut", auth=["admin"])(lambda: "shut")
    async with Client(serve(app), mode=mode) as client:
        await client.read_resource("x://open")
        await client.read_resource("skill://app/SKILL.md")
        await client.get_prompt("open")
        with pytest.raises(MCPError) as refused:
            await client.read_resource("x://shut")
        assert refused.value.data["error"]["code"] == "E2002"
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("shut")
        assert refused.value.data["error"]["code"] == "E2001"


# ------------------------------------------------------------------ while a call runs


@ERAS
async def test_concurrent_calls(mode: Any) -> None:
    """Calls that wait for each other do not keep each other from running."""
    app = Tooli("app")
    count = 40
    together = threading.Barrier(count)

    @app.command()
    def meet() -> int:
        return together.wait(120)

    async with Client(serve(app), mode=mode) as client:
        results = await asyncio.gather(*[client.call_tool("meet", {}) for _ in range(count)])
    assert not any([result.is_error for result in results])


# ------------------------------------------------------------------ the end


@ERAS
async def test_close_waits_for_running_calls(mode: Any) -> None:
    app = Tooli("app")
    begun, go = threading.Event(), threading.Event()

    @app.command()
    def wait(ctx: Context) -> str:
        begun.set()
        go.wait(120)
        return "done"

    server = serve(app)
    async with Client(server, mode=mode) as client:
        await client.list_tools()
        running = asyncio.create_task(client.call_tool("wait", {}))
        await asyncio.to_thread(begun.wait, 120)
        closing = asyncio.create_task(server.close(20))
        await asyncio.sleep(0)
        with pytest.raises(MCPError, match="accepts no more calls"):
            await client.call_tool("wait", {})
        go.set()
        await closing
        assert "done" in (await running).content[0].text  # type: ignore[union-attr]


@ERAS
async def test_close_without_grace_cancels_calls(mode: Any) -> None:
    app = Tooli("app")
    begun, left = threading.Event(), threading.Event()

    @app.command()
    def wait(ctx: Context) -> str:
        begun.set()
        while not ctx.cancelled:
            left.wait(0.01)
        left.set()
        return "late"

    server = serve(app)
    async with Client(server, mode=mode) as client:
        running = asyncio.create_task(client.call_tool("wait", {}))
        await asyncio.to_thread(begun.wait, 120)
        await server.close(0)
        with pytest.raises(MCPError, match="the call was cancelled"):
            await running
        assert await asyncio.to_thread(left.wait, 120)


@ERAS
async def test_internal_error_hides_its_details(
    mode: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(Tooli("app"))
    monkeypatch.setattr(server.resource_service, "list_prompts", None)
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError, match=r"^Internal server error$") as failed:
            await client.list_prompts()
        assert failed.value.code == -32603
    assert "TypeError" in capsys.readouterr().err


async def test_notifier_stops_listening() -> None:
    app = Tooli("app")
    async with Client(serve(app), mode="legacy") as client:
        await client.list_tools()
        assert len(app._state.change_listeners) == 1
    assert app._state.change_listeners == []


# ------------------------------------------------------------------ completion behind its guards
