"""Several versions of one command, on every interface."""

from __future__ import annotations

from typing import Any

import pytest
from tests.http.asgi_client import post
from tests.providers.provided import ToolList, echo_tool

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.errors import DefinitionError
from tooli.mcp.protocol import RpcError
from tooli.mcp.service import McpService, RequestContext, caller_from_client_info
from tooli.schema.json_schema import input_schema
from tooli.testing import Case, assert_parity, invoke
from tooli.transforms import Namespace, ToolTransform, VersionFilter


def make_app() -> Tooli:
    app = Tooli("app", version="5")

    @app.command("add", version="1.0", deprecated="use 2.0", annotations=ReadOnly)
    def add_two(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.command("add", version="3.0rc1", annotations=ReadOnly)
    def add_text(text: str) -> str:
        """Add anything."""
        return text

    @app.command("add", version="2.0", annotations=ReadOnly)
    def add_many(numbers: list[int]) -> int:
        """Add many numbers."""
        return sum(numbers)

    @app.command(version="7")
    def single() -> int:
        return 7

    return app


# ------------------------------------------------------------------ choosing


def test_highest_stable_version_is_the_default() -> None:
    app = make_app()
    result = app.call("add", numbers=[1, 2, 3])
    assert (result.unwrap(), result.meta["version"], result.meta["tool"]) == (6, "2.0", "app.add")
    older = app.call("add@1.0", a=1, b=2)
    assert (older.unwrap(), older.meta["version"], older.meta["tool"]) == (3, "1.0", "app.add")
    assert older.meta["deprecated"] == "use 2.0"
    assert app.call("add@3.0rc1", text="x").unwrap() == "x"
    assert app.call("single@7").unwrap() == 7


def test_versions_on_the_command_line() -> None:
    app = make_app()
    assert invoke(app, "add", "1", "2", "3", "--json").result == 6
    assert invoke(app, "add@1.0", "1", "2", "--json").result == 3
    assert invoke(app, "add@1.0", "1_0", "2", "--json").result == 12  # Typer parses it
    assert invoke(app, "single@7", "--json").result == 7
    shown = invoke(app, "--help", env={"TOOLI_OUTPUT": "text"}).stdout
    assert "Add many numbers." in shown
    assert "@1.0" not in shown
    older = invoke(app, "add@1.0", "--help", env={"TOOLI_OUTPUT": "text"}).stdout
    assert "Add two numbers." in older


@pytest.mark.parametrize("name", ["add@9", "add@"])
def test_unknown_version_lists_those_there_are(name: str) -> None:
    app = make_app()
    for error in (app.call(name).error, invoke(app, name, "--json").error):
        assert error is not None
        message = error["message"] if isinstance(error, dict) else error.message
        assert "it has 3.0rc1, 2.0, 1.0" in message
    single = app.call("single@8").error
    assert single is not None
    assert "it has 7" in single.message


def test_default_and_versions_on_all_interfaces() -> None:
    assert_parity(make_app(), Case("add", {"numbers": [1, 2]}))


def test_documents_list_the_default_with_all_versions() -> None:
    app = make_app()
    visible = [tool.key for tool in app.catalog if not tool.hidden]
    assert visible == ["single", "add"]
    schema = invoke(app, "add", "--schema").envelope
    assert (schema["version"], schema["versions"]) == ("2.0", ["3.0rc1", "2.0", "1.0"])
    assert list(McpService(app).tools) == ["single", "add"]


# ------------------------------------------------------------------ servers


async def test_versions_over_http() -> None:
    api = make_app().asgi(mcp=False)
    newest = await post(api, "add", {"numbers": [1]})
    assert newest.json()["meta"]["version"] == "2.0"
    for path, query in (("add", b"version=1.0"), ("add@1.0", b"")):
        older = await post(api, path, {"a": 1, "b": 2}, query=query)
        assert older.json()["result"] == 3
        headers = older.headers
        assert headers["deprecation"] == "@0"
        assert headers["link"] == '</tools/add>; rel="successor-version"'
    unknown = await post(api, "add", {}, query=b"version=9")
    assert unknown.status == 404
    assert "it has 3.0rc1, 2.0, 1.0" in unknown.json()["error"]["message"]
    same = await post(api, "single", {}, query=b"version=7&yes=true")
    assert same.json()["result"] == 7
    twice = await post(api, "add", {"a": 1, "b": 2}, query=b"version=1.0&version=2.0")
    assert twice.json()["error"]["code"] == "E1007"
    repeated = await post(api, "add", {"a": 1, "b": 2}, query=b"version=1.0&version=1.0")
    assert repeated.json()["meta"]["version"] == "1.0"


@pytest.mark.parametrize("meta", [{"io.tooli/version": "1.0"}, {"fastmcp": {"version": "1.0"}}])
def test_versions_over_mcp(meta: dict[str, Any]) -> None:
    service = McpService(make_app())
    context = RequestContext(caller_from_client_info(None, {}), None, True)
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
    result = service.tool_call_request(params, context).run()
    assert '"version":"1.0"' in str(result) or result["structuredContent"] in (3, {"result": 3})
    with pytest.raises(RpcError, match=r"it has 3\.0rc1, 2\.0, 1\.0"):
        service.tool_call_request({"name": "add", "_meta": {"io.tooli/version": "9"}}, context)


@pytest.mark.parametrize("version", [1.0, 1, True, ["1.0"], {"a": 1}])
@pytest.mark.parametrize("key", ["io.tooli/version", "fastmcp"])
def test_version_over_mcp_that_is_no_text(key: str, version: object) -> None:
    """The default version ran, although the client asked for another one."""
    service = McpService(make_app())
    context = RequestContext(caller_from_client_info(None, {}), None, True)
    meta = {key: version if key != "fastmcp" else {"version": version}}
    with pytest.raises(RpcError, match="must be a text"):
        service.tool_call_request({"name": "add", "_meta": meta}, context)


async def test_command_without_a_version_has_that_of_the_app() -> None:
    app = Tooli("app", version="4.2")

    @app.command()
    def look() -> str:
        return "x"

    api = app.asgi(mcp=False)
    for path in ("look", "look@4.2"):
        query = b"version=4.2" if path == "look" else b""
        answer = await post(api, path, {}, query=query)
        assert answer.json()["meta"]["version"] == "4.2"
    unknown = await post(api, "look", {}, query=b"version=4.3")
    assert "'look' has no version '4.3': it has 4.2" in unknown.json()["error"]["message"]


# ------------------------------------------------------------------ registering


def register(app: Tooli, *versions: str | None) -> None:
    for version in versions:

        @app.command("work", **({} if version is None else {"version": version}))
        def work() -> int:
            return 1


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ((None, None), "'work' is registered twice, at .*test_command_versions.* and .*"),
        ((None, "1.0"), "give each its version="),
        (("1.0", "1.0"), "version 1.0 of the command 'work' is registered twice"),
        (("1.0", "2026-01-31"), "must be all numbers, or all dates"),
        (("1.0", "latest"), "must be numbers such as"),
    ],
)
def test_second_command_of_a_name_needs_a_version(
    versions: tuple[str | None, ...], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        register(Tooli("app"), *versions)


def test_group_of_versions_in_an_inner_app() -> None:
    app = Tooli("app")
    app.mount(make_app(), namespace="math")
    assert app.call("math.add@1.0", a=1, b=2).unwrap() == 3
    assert app.call("math.add", numbers=[1]).unwrap() == 1
    assert invoke(app, "math", "add@1.0", "1", "2", "--json").result == 3


# ------------------------------------------------------------------ transforms and providers


def test_default_is_chosen_after_the_filter() -> None:
    app = make_app()
    app.add_transform(VersionFilter(version_lt="2.0"))
    assert app.call("add", a=1, b=2).unwrap() == 3
    assert not app.call("add@2.0", numbers=[1]).ok


def test_transforms_apply_to_all_versions() -> None:
    app = make_app()
    app.with_transforms(ToolTransform("add", name="plus"), Namespace("x"))
    assert app.call("x.plus", numbers=[1]).unwrap() == 1
    assert app.call("x.plus@1.0", a=1, b=2).unwrap() == 3


def test_versions_of_a_provider() -> None:
    app = Tooli("app")
    newer = echo_tool("t", version="2", input_schema={"properties": {"b": {}}})
    older = echo_tool("t", version="1", input_schema={"properties": {"a": {}}})
    app.add_provider(ToolList(older, newer, echo_tool("t", version="2")), namespace="p")
    assert app.call("p.t", b=1).unwrap() == {"b": 1}
    assert app.call("p.t@1", a=1).unwrap() == {"a": 1}
    assert "two tools with the name 't'" in app.catalog.problems["p.t"].message
    assert list(input_schema(app.catalog["p.t"])["properties"]) == ["b"]
