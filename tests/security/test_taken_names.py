"""The tool of a provider cannot take the name of a command of the app, or of a built-in tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.http.asgi_client import post

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.core.tool import Tool
from tooli.describe.mcp_tools import tools_by_safe_name
from tooli.mcp.code_mode import CodeMode
from tooli.mcp.deferred_tools import DeferredTools
from tooli.providers import LocalProvider, Provider, described_tool
from tooli.serving.dispatcher import ToolDispatcher
from tooli.testing import invoke

SPELLINGS = ["find-orders", "find_orders", "find-orders@9.0"]


class Source(Provider):
    name = "source"

    def __init__(self, *names: str) -> None:
        self.names = names

    def tools(self) -> Iterator[Tool]:
        for name in self.names:
            version = name.partition("@")[2] or None
            options: Any = {"version": version} if version else {}
            yield described_tool(
                name.partition("@")[0],
                lambda _: "foreign",
                input_schema={"properties": {}},
                annotations=ReadOnly,
                **options,
            )


def make_app(*names: str, is_first: bool = False, **options: Any) -> Tooli:
    app, users = Tooli("shop", **options), Tooli("users")
    if is_first:
        app.add_provider(Source(*names))

    @app.command("find-orders", annotations=ReadOnly)
    def find_orders() -> str:
        return "own"

    @users.command("create", annotations=ReadOnly)
    def create() -> str:
        return "own"

    app.add_typer(users, name="users")
    if not is_first:
        app.add_provider(Source(*names))
    return app


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(
    "names", [(name,) for name in SPELLINGS] + [("find_orders@8", "find_orders@9")]
)
async def test_other_spellings_of_a_command(names: tuple[str, ...], is_first: bool) -> None:
    app = make_app(*names, is_first=is_first)
    assert app.find_orders().result == "own"
    assert app.call("find_orders").result == "own"
    assert invoke(app, "find-orders").result == "own"
    for name in ("find_orders@9.0", "find-orders@9"):
        assert app.call(name).result != "foreign"
    assert (await post(app.asgi(), "find_orders")).json()["result"] == "own"
    assert "foreign" not in invoke(app, "find_orders", "--json").stdout
    assert any("the app itself has a command" in str(p) for p in app.catalog.problems.values())


def test_tool_with_the_name_of_a_group() -> None:
    app = make_app("users", "users.drop")
    assert not app.call("users").ok
    assert app.call("users.create").result == "own"
    assert not app.call("users.drop").ok
    assert "'users'" in str(app.catalog.problems["users"])


@pytest.mark.parametrize("is_first", [False, True])
def test_commands_get_their_names_over_mcp_first(is_first: bool) -> None:
    app = make_app("users_create", "Find-Orders", is_first=is_first)
    named = {name: tool.key for name, tool in tools_by_safe_name(app.catalog).items()}
    assert named["users_create"] == "users.create"
    assert named["find_orders"] == "find-orders"
    assert named["users_create_2"] == "users_create"
    assert [*named.values()] == [tool.key for tool in app.catalog]


@pytest.mark.parametrize("name", ["run_tool", "run-tool", "search_tools", "RUN-TOOL", "run-code"])
@pytest.mark.parametrize("is_deferred", [False, True])
def test_tools_that_find_and_run_tools(
    name: str, is_deferred: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(name, defer_loading=is_deferred)
    taken = name.lower().replace("-", "_")
    assert taken not in tools_by_safe_name(app.catalog)
    assert f"{taken}_2" in tools_by_safe_name(app.catalog)
    if is_deferred:
        deferred = DeferredTools(ToolDispatcher(app))
        assert [tool.key for tool in deferred.listed_tools.values()] == ["search-tools", "run-tool"]
        call = {"name": "run_tool", "arguments": {"name": "users_create"}}
        assert deferred.resolve_call("run_tool", call)[0] == "users_create"
        assert deferred.tools["users_create"].key == "users.create"


def test_tools_of_code_mode() -> None:
    app = make_app("run-code")
    code_mode = CodeMode(ToolDispatcher(app))
    assert [tool.key for tool in code_mode.listed_tools.values()] == ["search-tools", "run-code"]
    for name in ("search_tools", "run_code"):
        assert not code_mode.tools[name].is_provided
    assert code_mode.tools["run_code_2"].is_provided


def test_command_of_the_app_still_replaces_a_built_in_tool() -> None:
    app = Tooli("shop")
    app.command("run-tool")(lambda: None)
    app.command("other")(lambda: None)
    assert [*tools_by_safe_name(app.catalog)] == ["run_tool", "other"]


@pytest.mark.parametrize(
    ("first", "second"), [("find", "find"), ("get_it", "get-it"), ("a.b", "a"), ("a", "a.b")]
)
def test_second_provider_cannot_take_a_name_of_the_first(first: str, second: str) -> None:
    app = Tooli("shop")
    own = LocalProvider("own")
    own.tool(first, annotations=ReadOnly)(lambda: "first")
    app.add_provider(own)
    app.add_provider(Source(second, "more"))
    assert app.call(first).result == "first"
    assert app.call(second).result != "foreign"
    assert app.call("more").result == "foreign"
    problems = [str(problem) for problem in app.catalog.problems.values()]
    assert any("the provider 'own' has a tool" in problem for problem in problems)
    report = json.loads(invoke(app, "doctor", "--json").stdout)
    assert report["result"]["ok"] is False


def test_tool_without_a_name_hides_no_other_tool() -> None:
    class Server(Source):
        problems: dict[str, str] = {}

        def tools(self) -> Iterator[Tool]:
            self.problems["\u200b"] = "'' is not a name of a tool"
            yield from super().tools()

    app = Tooli("shop")
    app.add_provider(Server("find"))
    assert app.call("find").result == "foreign"
    assert "is not a name" in str([*app.catalog.problems.values()])
