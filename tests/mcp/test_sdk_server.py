"""The SDK's server of an app: pages, changes, floods, ends; what no client sees at once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tooli import Context, Message, Tooli
from tooli.annotations import Destructive
from tooli.mcp import service
from tooli.mcp.sdk_peer import MAX_QUEUED_MESSAGES
from tooli.mcp.sdk_server import AppServer, make_server
from tooli.mcp.service import McpService
from tooli.stages import rate_limit

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def serve(app: Tooli, **options: Any) -> AppServer:
    return make_server(McpService(app, **options))


# ------------------------------------------------------------------ pages


@ERAS
async def test_pages(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
async def test_an_empty_app(mode: Any) -> None:
    async with Client(serve(Tooli("app")), mode=mode) as client:
        assert (await client.list_tools()).tools == []
        assert (await client.list_prompts()).prompts == []
        assert [r.uri for r in (await client.list_resources()).resources] == [
            "skill://app/SKILL.md"
        ]


@ERAS
async def test_a_strict_app(mode: Any) -> None:
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


@ERAS
async def test_messages_of_every_form(mode: Any) -> None:
    app = Tooli("app")
    block = {"type": "text", "text": "c"}
    messages = ["a", Message("b", "assistant"), {"role": "user", "content": block}]
    app.prompt("all")(lambda: [*messages, {"role": "assistant", "content": "d"}, {"x": 1}])
    async with Client(serve(app), mode=mode) as client:
        messages = (await client.get_prompt("all")).messages
    shown = [(one.role, one.content.text) for one in messages]  # type: ignore[union-attr]
    assert shown == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
        ("assistant", "d"),
        ("user", '{"x":1}'),
    ]


@ERAS
async def test_deferred(mode: Any) -> None:
    app = Tooli("app")
    app.command("greet")(lambda: "hello")
    async with Client(serve(app, deferred=True), mode=mode) as client:
        assert [one.name for one in (await client.list_tools()).tools] == [
            "search_tools",
            "run_tool",
        ]
        result = await client.call_tool("run_tool", {"name": "greet"})
        assert result.content[0].text == "hello"  # type: ignore[union-attr]


@ERAS
async def test_deferred_under_a_strict_policy(mode: Any) -> None:
    app = Tooli("app", security_policy="strict")
    app.command("open", auth=[], help="Open the gate.")(lambda: "opened")
    app.command("close", auth=["gate"], help="Close the gate.")(lambda: "closed")
    async with Client(serve(app, deferred=True), mode=mode) as client:
        found = await client.call_tool("search_tools", {"query": "gate"})
        assert not found.is_error
        assert "Close" in found.content[0].text
        assert not (await client.call_tool("run_tool", {"name": "open"})).is_error
        refused = await client.call_tool("run_tool", {"name": "close"})
        assert "E2001" in refused.content[0].text
        unknown = await client.call_tool("run_tool", {"name": "lock"})
        assert "E1001" in unknown.content[0].text


# ------------------------------------------------------------------ while a call runs


@ERAS
async def test_a_flood_of_words(mode: Any) -> None:
    """A tool that says more than anybody reads fills no memory, and its answer comes."""
    app = Tooli("app")

    @app.command()
    def chatter(ctx: Context) -> str:
        for i in range(20 * MAX_QUEUED_MESSAGES):
            ctx.report(i)
        return "done"

    heard: list[float] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async with Client(serve(app), mode=mode) as client:
        result = await client.call_tool("chatter", {}, progress_callback=hear)
    assert "done" in result.content[0].text  # type: ignore[union-attr]
    assert heard == sorted(heard)


@ERAS
async def test_many_calls_at_once(mode: Any) -> None:
    """Calls that wait for each other do not keep each other from running."""
    app = Tooli("app")
    count = 40
    together = threading.Barrier(count)

    @app.command()
    def meet() -> int:
        return together.wait(20)

    async with Client(serve(app), mode=mode) as client:
        results = await asyncio.gather(*[client.call_tool("meet", {}) for _ in range(count)])
    assert not any([result.is_error for result in results])


@ERAS
async def test_a_client_that_does_not_answer(mode: Any) -> None:
    app = Tooli("app")

    @app.command()
    def ask(ctx: Context) -> str:
        return ctx.elicit("?", {"type": "object", "properties": {}}).action

    async def refuse(context: Any, params: Any) -> types.ErrorData:
        return types.ErrorData(code=-1, message="not today")

    async with Client(serve(app), mode=mode, elicitation_callback=refuse) as client:
        if client.protocol_version == "2026-07-28":
            with pytest.raises(MCPError, match="not today"):
                await client.call_tool("ask", {})
        else:
            result = await client.call_tool("ask", {})
            assert "did not answer" in result.content[0].text  # type: ignore[union-attr]


async def test_cancelling_ends_a_question() -> None:
    app = Tooli("app")
    ended = threading.Event()
    asked = asyncio.Event()

    @app.command()
    def ask(ctx: Context) -> str:
        try:
            return ctx.elicit("?", {"type": "object", "properties": {}}).action
        finally:
            ended.set()

    async def never(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await asyncio.sleep(3600)
        raise AssertionError

    async with Client(serve(app), mode="legacy", elicitation_callback=never) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "ask", {})
            await asked.wait()
            tasks.cancel_scope.cancel()
        assert await asyncio.to_thread(ended.wait, 10)


# ------------------------------------------------------------------ the end


@ERAS
async def test_closing(mode: Any) -> None:
    app = Tooli("app")
    begun, go = threading.Event(), threading.Event()

    @app.command()
    def wait(ctx: Context) -> str:
        begun.set()
        go.wait(20)
        return "done"

    server = serve(app)
    async with Client(server, mode=mode) as client:
        await client.list_tools()
        running = asyncio.create_task(client.call_tool("wait", {}))
        await asyncio.to_thread(begun.wait, 10)
        closing = asyncio.create_task(server.close(20))
        await asyncio.sleep(0)
        with pytest.raises(MCPError, match="accepts no more calls"):
            await client.call_tool("wait", {})
        go.set()
        await closing
        assert "done" in (await running).content[0].text  # type: ignore[union-attr]


@ERAS
async def test_closing_without_grace(mode: Any) -> None:
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
        await asyncio.to_thread(begun.wait, 10)
        await server.close(0)
        with pytest.raises(MCPError, match="the call was cancelled"):
            await running
        assert await asyncio.to_thread(left.wait, 10)


@ERAS
async def test_our_own_defects_are_not_told(
    mode: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(Tooli("app"))
    monkeypatch.setattr(server.resource_service, "list_prompts", None)
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError, match=r"^Internal server error$") as failed:
            await client.list_prompts()
        assert failed.value.code == -32603
    assert "TypeError" in capsys.readouterr().err


async def test_the_notifier_stops_listening_to_the_app() -> None:
    app = Tooli("app")
    async with Client(serve(app), mode="legacy") as client:
        await client.list_tools()
        assert len(app._state.change_listeners) == 1
    assert app._state.change_listeners == []


async def test_destructive_resources_are_refused() -> None:
    app = Tooli("app")

    @app.resource("x://wipe")
    @app.command(annotations=Destructive)
    def wipe() -> str:
        raise AssertionError

    async with Client(serve(app), mode="legacy") as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("x://wipe")
        assert refused.value.data["error"]["code"] == "E1010"


# ------------------------------------------------------------------ completion behind its guards


def letters(*scopes: str) -> tuple[Tooli, list[str]]:
    app, asked = Tooli("app", security_policy="strict"), list[str]()

    def names(text: str) -> list[str]:
        asked.append(text)
        return ["alice\x1b]0;x\x07 AKIAIOSFODNN7EXAMPLE"]

    async def places(text: str) -> list[str]:
        asked.append(text)
        return ["al\x1b[2Jps"]

    complete = {"name": names, "place": places}

    @app.prompt(auth=scopes, complete=complete)
    def letter(name: str, place: str) -> str:
        return name + place

    return app, asked


@ERAS
async def test_completion_is_for_those_who_may_ask(mode: Any) -> None:
    app, asked = letters("vault:read")
    async with Client(serve(app), mode=mode) as client:
        for name in ("name", "place"):
            with pytest.raises(MCPError) as refused:
                await client.complete(
                    types.PromptReference(name="letter"), {"name": name, "value": "al"}
                )
            assert refused.value.data["error"]["code"] == "E2001"
    assert asked == []


@ERAS
async def test_completions_are_cleaned(mode: Any) -> None:
    app, asked = letters()
    prompt = types.PromptReference(name="letter")
    async with Client(serve(app), mode=mode) as client:
        found = await client.complete(prompt, {"name": "name", "value": "al"})
        assert "\x1b" not in found.completion.values[0]
        assert "AKIAIOSFODNN7EXAMPLE" not in found.completion.values[0]
        found = await client.complete(prompt, {"name": "place", "value": "al"})
        assert found.completion.values == ["alps"]
    assert asked == ["al", "al"]


async def test_completions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", None)
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "2/hour")
    app, asked = letters()
    prompt = types.PromptReference(name="letter")
    async with Client(serve(app), mode="legacy") as client:
        for value in ("a", "al"):
            await client.complete(prompt, {"name": "name", "value": value})
        with pytest.raises(MCPError) as refused:
            await client.complete(prompt, {"name": "name", "value": "ali"})
        assert refused.value.data["error"]["code"] == "E4029"
    assert asked == ["a", "al"]
