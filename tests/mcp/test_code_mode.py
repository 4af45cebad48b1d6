"""Code mode: clients see a tool that finds functions, and a tool that runs scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.mcp.sdk_client import each_mode, make_server
from tests.orchestrate.script_app import Shop

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.errors import DependencyError
from tooli.mcp.service import McpService
from tooli.serving import dispatcher


def text_of(result: Any) -> str:
    return result.content[0].text


async def call(app: Tooli, mode: Any, name: str, **arguments: Any) -> Any:
    """Call one tool of an app in code mode."""
    async with Client(make_server(app, code_mode=True), mode=mode) as client:
        return await client.call_tool(name, arguments)


@each_mode
async def test_two_tools_instead_of_all(mode: Any) -> None:
    async with Client(make_server(Shop().app, code_mode=True), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["search_tools", "run_code"]
        names = list(tools["run_code"].input_schema["properties"])
        assert names == ["code", "inputs", "yes", "dry_run", "apply"]
        annotations = tools["run_code"].annotations
        assert annotations is not None
        assert annotations.destructive_hint  # it can run a destructive tool
        assert client.instructions is not None
        assert "run_code" in client.instructions


@each_mode
async def test_search_answers_stubs(mode: Any) -> None:
    app = Shop().app
    text = text_of(await call(app, mode, "search_tools", query="find items"))
    assert "async def find(" in text
    assert "class Item(TypedDict):" in text
    everything = text_of(await call(app, mode, "search_tools"))
    for name in ("find", "price", "drop", "buy"):
        assert f"async def {name}(" in everything
    first = text_of(await call(app, mode, "search_tools", limit=1))
    assert first.count("async def") == 1
    assert "# 3 more tools match" in first
    assert "No tool matches" in text_of(await call(app, mode, "search_tools", query="zzzz"))


@each_mode
async def test_script_runs(mode: Any) -> None:
    shop = Shop()
    code = "print('seen')\nitems = await find(text=part)\n[item['name'] for item in items]"
    result = await call(shop.app, mode, "run_code", code=code, inputs={"part": "e"})
    assert not result.is_error
    assert result.structured_content["result"] == ["pen", "tea"]
    assert result.structured_content["meta"]["printed"] == "seen"  # models see only this
    assert result.meta["io.tooli/meta"]["calls"] == {"find": 1}
    assert shop.ran == ["find"]


@each_mode
async def test_errors_come_before_the_first_call(mode: Any) -> None:
    shop = Shop()
    result = await call(shop.app, mode, "run_code", code="await find()\nawait price(nme='tea')")
    assert result.is_error
    error = json.loads(text_of(result))["error"]
    assert error["code"] == "E1070"
    assert [problem["line"] for problem in error["details"]["errors"]] == [2, 2]
    assert shop.ran == []
    other = await call(shop.app, mode, "run_code", code="await pirce(name='tea')")
    assert "Did you mean" in text_of(other)
    syntax = await call(shop.app, mode, "run_code", code="for")
    assert "search_tools shows the functions" in text_of(syntax)


@each_mode
async def test_validation_checks_the_script(mode: Any) -> None:
    shop = Shop()
    async with Client(make_server(shop.app, code_mode=True), mode=mode) as client:
        meta: Any = {"io.tooli/options": {"validate": True}}
        for code, is_wrong in (("await find()", False), ("await finds()", True)):
            result = await client.call_tool("run_code", {"code": code}, meta=meta)
            assert result.is_error is is_wrong
            assert ("E1070" in text_of(result)) is is_wrong
    assert shop.ran == []


@each_mode
async def test_destructive_tool_needs_a_confirmation(mode: Any) -> None:
    shop = Shop()
    refused = await call(shop.app, mode, "run_code", code="await drop(name='tea')")
    assert json.loads(text_of(refused))["error"]["code"] == "E1010"
    assert shop.ran == []
    done = await call(shop.app, mode, "run_code", code="await drop(name='tea')", yes=True)
    assert done.structured_content["result"] == "tea"
    approval = await call(shop.app, mode, "run_code", code="await buy(name='tea')", yes=True)
    assert json.loads(text_of(approval))["error"]["code"] == "E2101"
    assert shop.ran == ["drop tea"]


@each_mode
async def test_plan_of_a_script(mode: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    shop = Shop()
    code = "for item in await find('e'):\n    await drop(name=item['name'])"
    planned = await call(shop.app, mode, "run_code", code=code, dry_run=True)
    plan = planned.structured_content["result"]
    assert [action["target"] for action in plan["actions"]] == [
        *('drop(name="pen")', 'drop(name="tea")')
    ]
    assert shop.ran == ["find"]
    done = await call(shop.app, mode, "run_code", code=code, apply=plan["token"], yes=True)
    assert not done.is_error
    assert [name for name in shop.ran if name != "find"] == ["drop pen", "drop tea"]
    again = await call(shop.app, mode, "run_code", code=code, apply=plan["token"], yes=True)
    assert json.loads(text_of(again))["error"]["code"] == "E1051"


@each_mode
async def test_script_sees_what_its_caller_sees(mode: Any) -> None:
    app = Tooli("app", security_policy="strict")
    app.command("open", auth=[], help="Open the gate.")(lambda: "opened")
    app.command("close", auth=["gate"], help="Close the gate.")(lambda: "closed")
    stubs = text_of(await call(app, mode, "search_tools"))
    assert "close" not in stubs
    assert (await call(app, mode, "run_code", code="await open_()")).structured_content[
        "result"
    ] == "opened"
    hidden = await call(app, mode, "run_code", code="await close()")
    assert "E1070" in text_of(hidden)


@each_mode
async def test_tool_that_only_reads_is_enough_for_a_harmless_hint(mode: Any) -> None:
    app = Tooli("app")
    app.command("find", annotations=ReadOnly)(lambda: "x")
    async with Client(make_server(app, code_mode=True), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools["run_code"].input_schema["properties"]) == ["code", "inputs"]
        annotations = tools["run_code"].annotations
        assert annotations is not None
        assert annotations.read_only_hint
        assert tools["search_tools"].annotations.read_only_hint  # type: ignore[union-attr]


@each_mode
async def test_same_failing_call_is_stopped(mode: Any) -> None:
    shop = Shop()
    code = (
        "for _ in range(20):\n    try:\n        await price(name='x')\n    except Exception as e:"
    )
    code += "\n        last = str(e)\nlast"
    result = await call(shop.app, mode, "run_code", code=code)
    assert "E4031" in text_of(result)
    assert shop.ran.count("price x") < 20


@each_mode
async def test_own_command_replaces_a_tool_of_code_mode(mode: Any) -> None:
    app = Tooli("app")

    @app.command("run_code")
    def run(code: str) -> str:
        """Run a code of the shop."""
        return f"ran {code}"

    result = await call(app, mode, "run_code", code="A7")
    assert "ran A7" in text_of(result)


@each_mode
async def test_tools_that_are_registered_later(mode: Any) -> None:
    app = Tooli("app")
    async with Client(make_server(app, code_mode=True), mode=mode) as client:
        app.command("late", annotations=ReadOnly)(lambda: "x")
        assert "async def late()" in text_of(await client.call_tool("search_tools", {}))
        done = await client.call_tool("run_code", {"code": "await late()"})
        assert text_of(done) == '{"result":"x"}'


def test_package_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "is_installed", lambda name: False)
    with pytest.raises(DependencyError, match="pydantic-monty") as caught:
        McpService(Shop().app, code_mode=True)
    assert caught.value.suggestion is not None
    assert "tooli[eval]" in caught.value.suggestion.fix
