"""The rules of a resource or prompt are the strictest of its function's commands and apps."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

import pytest
import typer

from tooli import Tooli
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly
from tooli.core.call import Caller
from tooli.core.tool import Guard, Tool
from tooli.errors import DefinitionError
from tooli.mcp.service import McpService
from tooli.providers.resources import collect_prompts, iter_resources
from tooli.providers.served_rules import find_levels
from tooli.transforms import Namespace, Visibility


def secret() -> str:
    return "s"


def resource_tool(app: Tooli) -> Tool:
    (resource,) = iter_resources(app)
    return resource.tool(app._state)


GUARDS: list[tuple[dict[str, Any], dict[str, Any], Guard]] = [
    ({}, {"requires_approval": True}, Guard(approval=True)),
    ({"auth": ["a"]}, {"auth": ["b", "a"]}, Guard(scopes=("a", "b"))),
    ({"auth": []}, {"auth": ["b"]}, Guard(scopes=("b",))),
    ({"auth": []}, {}, Guard(scopes=())),
    ({"danger_level": "low"}, {"danger_level": "critical"}, Guard(danger="critical")),
    ({"callers": ["code"]}, {"callers": ["direct", "code"]}, Guard(callers=("code",))),
    ({"callers": ["code"]}, {"callers": ["direct"]}, Guard(callers=("nobody",))),
    ({"callers": ["code"]}, {}, Guard(callers=("code",))),
    ({}, {"human_in_the_loop": True}, Guard(human_in_the_loop=True)),
    ({}, {"isolation": "required"}, Guard(isolation="required")),
    (
        {"capabilities": ["fs:read"]},
        {"capabilities": ["fs:read:./data"]},
        Guard(capabilities=("fs:read",), app_permissions=(("fs:read:./data",),)),
    ),
]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("first", "second", "expected"), GUARDS)
def test_guards_of_two_commands(
    first: dict[str, Any], second: dict[str, Any], expected: Guard, reverse: bool
) -> None:
    """The order of the registrations does not matter."""
    app = Tooli("app")
    app.resource("n://x")(secret)
    for i, options in enumerate((second, first) if reverse else (first, second)):
        app.command(f"c{i}", **options)(secret)
    guard = resource_tool(app).guard
    if expected.app_permissions:
        found = {guard.capabilities, *guard.app_permissions}
        assert found == {("fs:read",), ("fs:read:./data",)}
        return
    assert set(guard.scopes or ()) == set(expected.scopes or ())
    assert guard.replace(scopes=expected.scopes) == expected


def test_command_registered_after_the_resource_was_read() -> None:
    app, admin = Tooli("app"), Tooli("admin")
    app.resource("n://x")(secret)
    assert not resource_tool(app).guard.approval
    admin.command("s", requires_approval=True)(secret)
    assert not resource_tool(app).guard.approval
    app.add_typer(admin)
    assert resource_tool(app).guard.approval


def test_scopes_of_the_resource_are_added() -> None:
    app = Tooli("app")
    app.command("s", auth=["admin"])(secret)
    app.resource("n://x", auth=[])(secret)
    app.prompt("p", auth=["reader"])(secret)
    assert resource_tool(app).guard.scopes == ("admin",)
    assert collect_prompts(app)["p"].tool(app._state).guard.scopes == ("admin", "reader")


def test_command_with_a_resource_uri_has_the_rules_of_its_other_registration() -> None:
    app, admin = Tooli("app"), Tooli("admin")
    app.command("note", annotations=ReadOnly, resource="n://x")(secret)
    admin.command("s", requires_approval=True)(secret)
    app.add_typer(admin)
    assert resource_tool(app).guard.approval


def test_command_below_a_plain_typer() -> None:
    app, plain, admin = Tooli("app"), typer.Typer(), Tooli("admin")
    admin.command("s", requires_approval=True)(secret)
    admin.resource("n://inner")(secret)
    plain.add_typer(admin, name="admin")
    app.add_typer(plain, name="plain")
    app.resource("n://x")(secret)
    tools = [resource.tool(app._state) for resource in iter_resources(app)]
    assert [tool.guard.approval for tool in tools] == [True, True]


def test_lazy_command_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("lazy_module")
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    exec("def secret() -> str: return 's'", vars(module))
    app = Tooli("app")
    app.lazy_command("lazy_module:secret", requires_approval=True)
    app.resource("n://x")(module.secret)
    assert resource_tool(app).guard.approval


def test_decorated_function_and_method() -> None:
    @functools.wraps(secret)
    def decorated() -> str:
        return secret()

    class Notes:
        def read(self) -> str:
            return "note"

    notes = Notes()
    for function, served in ((decorated, secret), (secret, decorated), (notes.read, notes.read)):
        app = Tooli("app")
        app.command("s", requires_approval=True)(function)
        app.resource("n://x")(served)
        assert resource_tool(app).guard.approval


def test_policy_and_permissions_of_the_apps() -> None:
    app, admin = Tooli("app"), Tooli("admin", security_policy="strict", permissions=["fs:read"])
    admin.resource("n://x")(secret)
    app.add_typer(admin)
    tool = resource_tool(app)
    assert (tool.guard.policy, tool.guard.app_permissions) == ("strict", (("fs:read",),))


def test_policy_of_the_app_of_a_command_applies_to_a_resource_of_another_app() -> None:
    app, admin = Tooli("app"), Tooli("admin", security_policy="strict")
    admin.command("s")(secret)
    app.add_typer(admin)
    app.resource("n://x")(secret)
    assert resource_tool(app).guard.policy == "strict"


def test_resource_of_an_app_at_two_places_has_the_strictest_rules() -> None:
    for strict_first in (True, False):
        app, leaf = Tooli("app"), Tooli("leaf")
        leaf.resource("n://x")(secret)
        groups = [Tooli("strict", security_policy="strict"), Tooli("open")]
        for group in groups if strict_first else groups[::-1]:
            group.add_typer(leaf)
            app.add_typer(group)
        assert resource_tool(app).guard.policy == "strict"


def test_strict_resource_is_rejected_over_mcp() -> None:
    app, vault = Tooli("app"), Tooli("vault", security_policy="strict")
    vault.resource("n://x")(secret)
    vault.prompt("p")(secret)
    app.add_typer(vault)
    for served in (next(iter_resources(app)), collect_prompts(app)["p"]):
        tool = served.tool(app._state)
        prepared = McpService(app).dispatcher.prepare(tool, {}, Caller("mcp"))
        error = prepared.result().error
        assert error is not None and error.code == "E2002"


def test_behavior_and_limits() -> None:
    app = Tooli("app")
    app.resource("n://x")(secret)
    assert resource_tool(app).behavior == ReadOnly
    app.command("a", annotations=ReadOnly | Idempotent, timeout=5, rate_limit="2/hour")(secret)
    app.command("b", timeout=3, rate_limit="1/minute", version="7")(secret)
    tool = resource_tool(app)
    assert tool.behavior == ReadOnly | Idempotent
    assert (tool.limits.timeout, tool.version) == (3, "7")
    assert [rate for rate, _ in tool.limits.rate_counters] == ["2/hour", "1/minute"]
    app.command("c", annotations=Destructive | OpenWorld)(secret)
    assert resource_tool(app).behavior == Destructive | OpenWorld


def test_capabilities_that_write_are_not_read_only() -> None:
    app = Tooli("app")
    app.command("a", capabilities=["fs:write"])(secret)
    app.resource("n://x")(secret)
    assert not resource_tool(app).behavior.read_only


def test_capabilities_beyond_the_permissions_are_rejected() -> None:
    app, group = Tooli("app", permissions=["fs:read"]), Tooli("group")
    group.command("a", capabilities=["net:read"])(secret)
    group.resource("n://x")(secret)
    app.add_typer(group)
    with pytest.raises(DefinitionError, match="net:read"):
        resource_tool(app)


def test_levels_of_an_app_that_is_not_below_the_root() -> None:
    app, other = Tooli("app"), Tooli("other")
    assert find_levels(app._state, other._state) == (other._state,)


def test_only_roles_that_see_every_command_see_the_resource() -> None:
    app = Tooli("app")
    app.command("a", tags=["a"])(secret)
    app.command("b", tags=["b"])(secret)
    app.resource("n://x")(secret)
    app.add_transform(Visibility(exclude_tags={"a"}, roles={"one", "both"}))
    assert set(resource_tool(app).guard.audience) == {"one", "both"}
    app.add_transform(Visibility(exclude_tags={"b"}, roles={"two", "both"}))
    assert resource_tool(app).guard.audience == ("both",)
    app.add_transform(Visibility(exclude_tags={"b"}, roles={"two"}))
    assert resource_tool(app).guard.audience == ("",)


def test_every_version_of_a_command_keeps_its_resource() -> None:
    app = Tooli("app")
    for number in ("1", "2", "3"):
        tags = ["x"] if number == "3" else []
        options: Any = {"version": f"{number}.0", "resource": f"n://{number}", "tags": tags}
        app.command("a", annotations=ReadOnly, **options)(lambda: "t")
    app.add_transform(Namespace("eu"))
    app.add_transform(Visibility(exclude_tags={"x"}))
    assert [resource.uri for resource in iter_resources(app)] == ["n://1", "n://2"]
