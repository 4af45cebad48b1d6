"""Deferred tools: an app lists a search tool and a run tool."""

from __future__ import annotations

from typing import Any

from mcp import Client
from tests.mcp.sdk_client import each_mode, make_server

from tooli import Tooli
from tooli.annotations import Destructive, Idempotent, ReadOnly


@each_mode
async def test_deferred_tool_is_run_by_run_tool(mode: Any) -> None:
    app = Tooli("app")
    app.command("greet")(lambda: "hello")
    async with Client(make_server(app, deferred=True), mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "search_tools",
            "run_tool",
        ]
        result = await client.call_tool("run_tool", {"name": "greet"})
        assert result.content[0].text == "hello"  # type: ignore[union-attr]


@each_mode
async def test_strict_policy_applies_to_deferred_tools(mode: Any) -> None:
    app = Tooli("app", security_policy="strict")
    app.command("open", auth=[], help="Open the gate.")(lambda: "opened")
    app.command("close", auth=["gate"], help="Close the gate.")(lambda: "closed")
    async with Client(make_server(app, deferred=True), mode=mode) as client:
        found = await client.call_tool("search_tools", {"query": "gate"})
        assert not found.is_error
        assert "Open" in found.content[0].text
        assert "Close" not in found.content[0].text  # the caller may not use it
        assert not (await client.call_tool("run_tool", {"name": "open"})).is_error
        rejected = await client.call_tool("run_tool", {"name": "close"})
        assert "E2001" in rejected.content[0].text
        unknown = await client.call_tool("run_tool", {"name": "lock"})
        assert "E1001" in unknown.content[0].text


@each_mode
async def test_run_tool_has_the_worst_effects_of_all_tools(mode: Any) -> None:
    async def hints(app: Tooli) -> dict[str, bool]:
        async with Client(make_server(app, deferred=True), mode=mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            annotations = listed["run_tool"].annotations
            assert annotations is not None
            return annotations.model_dump(exclude_none=True, exclude={"title"}, by_alias=True)

    app = Tooli("app")
    app.command("find", annotations=ReadOnly | Idempotent)(lambda: "x")
    app.command("list", annotations=ReadOnly | Idempotent)(lambda: "x")
    assert await hints(app) == {
        "readOnlyHint": True,
        "idempotentHint": True,
        "openWorldHint": True,
    }
    app.command("fetch", capabilities=["net:read"])(lambda: "x")
    assert await hints(app) == {"readOnlyHint": True, "openWorldHint": True}
    app.command("harmless", danger_level="none")(lambda: "x")
    assert await hints(app) == {"destructiveHint": False, "openWorldHint": True}
    app.command("touch", annotations=Idempotent)(lambda: "x")  # it may be destructive
    assert await hints(app) == {"destructiveHint": True, "openWorldHint": True}
    group = Tooli("group")
    group.command("drop", annotations=Destructive)(lambda: "x")
    app.add_typer(group)
    assert await hints(app) == {"destructiveHint": True, "openWorldHint": True}


@each_mode
async def test_own_command_replaces_a_builtin_tool_in_the_list(mode: Any) -> None:
    app = Tooli("app")

    @app.command("search_tools")
    def search(words: str) -> str:
        """Search the shop."""
        return f"found {words}"

    async with Client(make_server(app, deferred=True), mode=mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(listed["search_tools"].input_schema["properties"]) == ["words"]
        result = await client.call_tool("search_tools", {"words": "tea"})
    assert "found tea" in result.content[0].text  # type: ignore[union-attr]
