"""SdkPeer: messages of a running call to its client, and questions that nobody answers."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.sdk_client import each_mode, make_server

from tooli import Context, Tooli
from tooli.mcp import sdk_peer
from tooli.mcp.sdk_peer import MAX_QUEUED_MESSAGES
from tooli.pipeline.question_routing import route_questions


@each_mode
async def test_messages_beyond_the_limit_are_dropped(mode: Any) -> None:
    """A tool that sends many messages uses little memory, and its answer is sent."""
    app = Tooli("app")

    @app.command()
    def report_often(ctx: Context) -> str:
        for i in range(20 * MAX_QUEUED_MESSAGES):
            ctx.report(i)
        return "done"

    received: list[float] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        received.append(done)

    async with Client(make_server(app), mode=mode) as client:
        result = await client.call_tool("report_often", {}, progress_callback=on_progress)
    assert "done" in result.content[0].text  # type: ignore[union-attr]
    assert received == sorted(received)


@each_mode
async def test_unanswered_question_fails_the_call(mode: Any) -> None:
    app = Tooli("app")

    @app.command()
    def ask(ctx: Context) -> str:
        return ctx.elicit("?", {"type": "object", "properties": {}}).action

    async def refuse(context: Any, params: Any) -> types.ErrorData:
        return types.ErrorData(code=-1, message="refused")

    async with Client(make_server(app), mode=mode, elicitation_callback=refuse) as client:
        if client.protocol_version == "2026-07-28":
            with pytest.raises(MCPError, match="refused"):
                await client.call_tool("ask", {})
        else:
            result = await client.call_tool("ask", {})
            assert "did not answer" in result.content[0].text  # type: ignore[union-attr]


async def test_cancellation_ends_a_question() -> None:
    app = Tooli("app")
    ended = threading.Event()
    asked = asyncio.Event()

    @app.command()
    def ask(ctx: Context) -> str:
        try:
            return ctx.elicit("?", {"type": "object", "properties": {}}).action
        finally:
            ended.set()

    async def wait_forever(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await asyncio.sleep(3600)
        raise AssertionError

    async with Client(make_server(app), mode="legacy", elicitation_callback=wait_forever) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "ask", {})
            await asked.wait()
            tasks.cancel_scope.cancel()
        assert await asyncio.to_thread(ended.wait, 120)


async def call_with_unanswered_question(app: Tooli) -> types.CallToolResult:
    """Call the command `ask` from a client that never answers."""

    async def wait_forever(context: Any, params: Any) -> types.ElicitResult:
        await asyncio.sleep(3600)
        raise AssertionError

    async with Client(make_server(app), mode="legacy", elicitation_callback=wait_forever) as client:
        return await client.call_tool("ask", {})


async def test_question_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_peer, "QUESTION_TIMEOUT", 0.05)
    app = Tooli("app")

    @app.command()
    def ask(ctx: Context) -> str:
        return ctx.elicit("?", {"type": "object", "properties": {}}).action

    result = await call_with_unanswered_question(app)
    assert result.is_error
    assert "within 0.05 seconds" in result.content[0].text  # type: ignore[union-attr]


async def test_timeout_ends_a_question() -> None:
    app = Tooli("app")

    @app.command(timeout=0.5)
    def ask(ctx: Context) -> str:
        return ctx.elicit("?", {"type": "object", "properties": {}}).action

    result = await call_with_unanswered_question(app)
    assert "E4050" in result.content[0].text  # type: ignore[union-attr]


async def test_question_that_would_block_the_event_loop() -> None:
    app = Tooli("app")

    @app.command()
    async def ask(ctx: Context) -> str:
        return ctx.elicit("?", {"type": "object", "properties": {}}).action

    @app.command()
    async def line(ctx: Context) -> str:
        return input("Name: ")

    async def accept(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={})

    end_route = route_questions()  # as a server process has
    async with Client(make_server(app), mode="legacy", elicitation_callback=accept) as client:
        result = await client.call_tool("ask", {})
        assert "must ask with `await`" in result.content[0].text  # type: ignore[union-attr]
        result = await client.call_tool("line", {})
        assert "E1038" in result.content[0].text  # type: ignore[union-attr]
    end_route()
