"""Transforms of an app: every interface has the changed tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer
from tests.http.asgi_client import post, send
from tests.providers.provided import ToolList, echo_tool

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.errors import DefinitionError
from tooli.mcp.service import McpService
from tooli.testing import Case, assert_parity, invoke
from tooli.transforms import Arg, Namespace, ToolTransform, Visibility

if TYPE_CHECKING:
    from tooli.core.tool import Tool


def make_app() -> Tooli:
    app, users = Tooli("app", version="1"), Tooli("users")

    @app.command(annotations=ReadOnly, tags=["math"])
    def add(a: int, b: int = 2) -> int:
        """Add numbers."""
        return a + b

    @app.command(tags=["admin"])
    def drop(name: str) -> str:
        """Drop it."""
        return name

    @users.command(annotations=ReadOnly)
    def create(name: str) -> str:
        """Create a user."""
        return name

    app.add_typer(users, name="users", help="All about users.")
    return app


def keys(app: Tooli) -> list[str]:
    return [tool.key for tool in app.catalog]


# ------------------------------------------------------------------ the tree


def test_all_interfaces_see_the_changed_names() -> None:
    app = make_app()
    plus = ToolTransform("add", name="plus", args={"b": Arg(name="second", default=40)})
    app.with_transforms(Visibility(exclude_tags={"admin"}), plus, Namespace("x"))
    assert keys(app) == ["x.plus", "x.users.create"]
    for case in (
        Case("x.plus", {"a": 1}),
        Case("x.plus", {"a": 1, "second": 2}),
        Case("x.plus", {"a": "one"}),
        Case("x.users.create", {"name": "Ada"}),
    ):
        assert_parity(app, case)
    assert list(McpService(app).tools) == ["x_plus", "x_users_create"]
    assert app.commands.x.plus(2).unwrap() == 42
    for name in ("add", "drop", "x.drop", "users.create"):
        refused = app.call(name)
        assert refused.error is not None
        assert refused.error.code == "E1001"
    shown = invoke(app, "x", "--help", env={"TOOLI_OUTPUT": "text"}).stdout
    assert "plus" in shown
    assert "All about users." in shown
    assert "drop" not in shown
    command = invoke(app, "x", "plus", "--help", env={"TOOLI_OUTPUT": "text"}).stdout
    assert "--second" in command
    assert "default: 40" in command
    found = invoke(app, "search-tools", "add numbers", "--json").envelope
    assert "x.plus" in str(found)


def test_typer_runs_transformed_commands() -> None:
    app = make_app()
    app.add_transform(ToolTransform("add", name="plus"))
    assert invoke(app, "plus", "1_0", "--json").result == 12  # only Typer converts it
    assert invoke(app, "plus", "1", env={"TOOLI_OUTPUT": "text"}).exit_code == 0
    assert invoke(app, "users", "create", "Ada", env={"TOOLI_OUTPUT": "text"}).exit_code == 0


def test_own_function_as_a_transform() -> None:
    app = make_app()

    @app.add_transform
    def shorten(tool: Tool) -> Tool | None:
        return tool.replace(path=tool.path[-1:]) if tool.name != "drop" else None

    assert keys(app) == ["add", "create"]
    assert app.call("create", name="Ada").unwrap() == "Ada"


@pytest.mark.parametrize("transform", [3, Namespace, None])
def test_what_is_no_function_is_refused(transform: Any) -> None:
    with pytest.raises(DefinitionError, match="a transform is a function"):
        Tooli("app").add_transform(transform)
    with pytest.raises(DefinitionError, match="a transform is a function"):
        Tooli("app").add_provider(ToolList(), transforms=[transform])


def test_two_commands_with_one_name_are_refused() -> None:
    app = make_app()
    app.add_transform(ToolTransform("drop", name="add"))
    with pytest.raises(DefinitionError, match="two commands the name 'add'"):
        app.tree()


def test_invalid_command_is_reported_in_its_place() -> None:
    app = make_app()

    @app.command()
    def broken(x: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore
        ...

    app.add_transform(Namespace("x"))
    assert "x.add" in keys(app)
    assert "x.broken" in app.catalog.problems


def test_rules_and_counters_of_a_command_stay() -> None:
    app = Tooli("app", security_policy="strict")

    @app.command(auth=["read"], rate_limit="5/minute")
    def get() -> int:
        return 1

    before = app.catalog["get"].limits.rate_counters
    app.add_transform(ToolTransform("get", name="fetch", help="Fetch."))
    tool = app.catalog["fetch"]
    assert tool.guard.scopes == ("read",)
    assert tool.limits.rate_counters == before
    refused = app.call("fetch")
    assert refused.error is not None
    assert refused.error.code == "E2001"


def test_stages_of_inner_apps_stay() -> None:
    app, inner = Tooli("app"), Tooli("inner")
    seen: list[str] = []

    @inner.command()
    def work() -> int:
        return 1

    @inner.use
    def log(call: Any) -> Any:
        seen.append(call.tool.key)
        return (yield call)

    app.mount(inner, namespace="inner")
    app.add_transform(Namespace("x"))
    assert app.call("x.inner.work").ok
    assert seen == ["x.inner.work"]


def test_plain_typer_below_a_transformed_app() -> None:
    app, plain = Tooli("app"), typer.Typer()

    @plain.command()
    def hello(name: str) -> str:
        return name

    @plain.command()
    def bye() -> None: ...

    app.add_typer(plain, name="plain")
    app.add_transform(Namespace("x"))
    assert app.call("x.plain.hello", name="Ada").unwrap() == "Ada"
    assert invoke(app, "x", "plain", "hello", "Ada", "--json").result == "Ada"


# ------------------------------------------------------------------ providers


def test_provider_stays_lazy_below_transforms() -> None:
    provider = ToolList(echo_tool(tags=["admin"]), echo_tool("users.get"))
    app = make_app()
    app.add_provider(provider, "r", transforms=[ToolTransform("users.get", name="read")])
    app.with_transforms(Visibility(exclude_tags={"admin"}), Namespace("x"))
    assert app.call("x.add", a=1).ok
    assert provider.asked == 0
    assert keys(app) == ["x.add", "x.users.create", "x.r.users.read"]
    assert app.call("x.r.users.read", kind="a").ok
    app.add_transform(
        ToolTransform("x.r.users.read", name="look")
    )  # the provider is not asked again
    assert keys(app) == ["x.add", "x.users.create", "x.r.users.look"]
    assert provider.asked == 1


def test_transform_that_leaves_the_namespace_is_reported() -> None:
    app = make_app()
    app.add_provider(ToolList(echo_tool()), "r")
    app.add_transform(lambda tool: tool.replace(path=tool.path[-1:]) if "r" in tool.path else tool)
    assert "r.echo" not in keys(app)
    assert "moves echo out of 'r'" in app.catalog.problems["r.echo"].message


def test_failing_transform_is_reported() -> None:
    app = make_app()
    app.add_provider(ToolList(echo_tool(), echo_tool("b")), "r")

    def fail(tool: Tool) -> Tool:
        if tool.key == "r.b":
            raise ValueError("no b")
        return tool.replace(path=()) if tool.key == "r.echo" else tool

    app.add_transform(fail)
    assert keys(app) == ["add", "drop", "users.create"]
    assert "no b" in app.catalog.problems["r.b"].message
    assert "removes its name" in app.catalog.problems["r.echo"].message


# ------------------------------------------------------------------ roles


def role_app() -> Tooli:
    app = make_app()
    app.add_transform(Visibility(exclude_tags={"admin"}, roles={"ops"}))
    return app


async def test_roles_over_http() -> None:
    api = role_app().asgi(
        mcp=False, tokens={"o" * 40: ["ops"], "n" * 40: ["other"], "a" * 40: None}
    )
    for token, sees in (("o", True), ("n", False), ("a", True)):
        header = (b"authorization", b"Bearer " + token.encode() * 40)
        listed = (await send(api, "GET", "/tools", None, header)).json()["commands"]
        assert ("drop" in [c["name"] for c in listed]) is sees
        paths = (await send(api, "GET", "/openapi.json", None, header)).json()["paths"]
        assert ("/tools/drop" in paths) is sees
        answer = await post(api, "drop", {"name": "x"}, header)
        assert answer.status == (200 if sees else 404)


def test_roles_over_mcp() -> None:
    service = McpService(role_app())
    for scopes, sees in (((), False), (("ops",), True), (("other",), False), (None, True)):
        view = service.dispatcher.view(None if scopes is None else frozenset(scopes))
        tools = service.list_tools(None, stateless=True, view=view)["tools"]
        assert ("drop" in [tool["name"] for tool in tools]) is sees


def test_roles_on_the_command_line_and_in_python() -> None:
    app = role_app()
    refused = invoke(app, "drop", "x", "--json")
    assert refused.error is not None
    assert refused.error["code"] == "E1001"
    assert "drop" not in invoke(app, "--help").stdout
    assert app.call("drop", name="x").unwrap() == "x"  # Python code is trusted
