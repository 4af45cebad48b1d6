"""SdkPeer: messages and questions of a tool to its client."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tooli import Context, Tooli
from tooli.mcp.sdk_peer import MAX_QUEUED_MESSAGES
from tooli.mcp.sdk_server import AppServer, make_server
from tooli.mcp.service import McpService

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def serve(app: Tooli, **options: Any) -> AppServer:
    return make_server(McpService(app, **options))


@ERAS
async def test_messages_beyond_the_limit_are_dropped(mode: Any) -> None:
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
async def test_unanswered_question_fails_the_call(mode: Any) -> None:
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

    async def never(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await asyncio.sleep(3600)
        raise AssertionError

    async with Client(serve(app), mode="legacy", elicitation_callback=never) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "ask", {})
            await asked.wait()
            tasks.cancel_scope.cancel()
        assert await asyncio.to_thread(ended.wait, 120)
