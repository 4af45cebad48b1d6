"""Transforms: what they do to one tool."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.provided import ToolList, echo, echo_tool

from tooli import Tooli, transforms
from tooli.annotations import ReadOnly
from tooli.core.tool import Tool
from tooli.errors import DefinitionError
from tooli.providers import described_tool, function_tool
from tooli.schema.json_schema import input_schema
from tooli.transforms import Arg, Namespace, ToolTransform, VersionFilter, Visibility


def app_of(tool: Tool, *changes: transforms.Transform) -> Tooli:
    app = Tooli("app")
    app.add_provider(ToolList(tool), transforms=changes)
    return app


def add(a: int, b: int = 2, *, loud: bool = False) -> list[object]:
    """Add numbers.

    Args:
        a: The first one.
        b: The second one.
    """
    return [a, b, loud]


# ------------------------------------------------------------------ names and visibility


def test_namespace() -> None:
    assert Namespace("a.b")(echo_tool()).path == ("a", "b", "echo")
    with pytest.raises(DefinitionError, match="must consist of letters"):
        Namespace("a b")


@pytest.mark.parametrize(
    ("visibility", "shown"),
    [
        (Visibility(), True),
        (Visibility(include_tags={"x", "z"}), True),
        (Visibility(include_tags={"z"}), False),
        (Visibility(exclude_tags=["y"]), False),
        (Visibility({"x"}, {"z"}), True),
        (Visibility(include_tags=()), False),
    ],
)
def test_visibility_by_tags(visibility: Visibility, shown: bool) -> None:
    tool = echo_tool(tags=["x", "y"])
    assert visibility(tool) is (tool if shown else None)


def test_hidden_tools_can_be_left_out() -> None:
    assert Visibility(include_hidden=False)(echo_tool(hidden=True)) is None
    assert Visibility()(echo_tool(hidden=True)) is not None


def test_roles_see_what_others_do_not() -> None:
    tool = echo_tool(tags=["admin"])
    seen = Visibility(exclude_tags={"admin"}, roles={"ops", "root"})(tool)
    assert seen is not None
    assert (seen.hidden, seen.guard.audience) == (True, ("ops", "root"))
    fewer = Visibility(exclude_tags={"admin"}, roles={"root", "other"})(seen)
    assert fewer is not None
    assert fewer.guard.audience == ("root",)
    assert Visibility(exclude_tags={"admin"}, roles={"other"})(seen) is None


def test_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(DefinitionError, match="must be a set or a list"):
        Visibility(exclude_tags="admin")


@pytest.mark.parametrize(
    ("version", "bounds", "kept"),
    [
        (None, {"version_gte": "1"}, True),
        ("1.0", {"version_gte": "1"}, True),
        ("0.9", {"version_gte": "1"}, False),
        ("1.9", {"version_lt": "2.0"}, True),
        ("2.0", {"version_lt": "2.0"}, False),
        ("2.0rc1", {"version_lt": "2.0"}, False),
        ("2.0rc1", {"version_lt": "2.0", "include_prereleases": True}, True),
        ("2026-01-31", {"version_gte": "1"}, False),
        ("2026-01-31", {"version_gte": "2025-01-01", "version_lt": "2027-01-01"}, True),
    ],
)
def test_version_filter(version: str | None, bounds: dict[str, Any], kept: bool) -> None:
    tool = echo_tool(version=version)
    assert VersionFilter(**bounds)(tool) is (tool if kept else None)


# ------------------------------------------------------------------ arguments


def test_arguments_of_a_function() -> None:
    change = ToolTransform(
        "add",
        name="plus",
        help="Return a sum.",
        args={"a": Arg(name="first"), "b": Arg(value=40, hide=True), "loud": Arg(help="Shout.")},
    )
    app = app_of(function_tool(add, annotations=ReadOnly), change)
    assert app.call("plus", first="1").unwrap() == [1, 40, False]
    tool = app.catalog["plus"]
    assert tool.doc.summary == "Return a sum."
    schema = input_schema(tool)
    assert list(schema["properties"]) == ["first", "loud"]
    assert schema["properties"]["first"]["description"] == "The first one."
    assert schema["properties"]["loud"]["description"] == "Shout."
    assert schema["required"] == ["first"]
    assert tool.params[0].flags == ()
    for name in ("a", "b"):
        refused = app.call("plus", first=1, **{name: 1})
        assert refused.error is not None
        assert refused.error.code == "E1004"


def test_default_makes_an_argument_optional() -> None:
    app = app_of(function_tool(add), ToolTransform("add", args={"a": Arg(default=7)}))
    assert app.call("add").unwrap() == [7, 2, False]
    assert input_schema(app.catalog["add"])["properties"]["a"]["default"] == 7
    assert "required" not in input_schema(app.catalog["add"])


def test_hidden_argument_keeps_the_default_of_the_function() -> None:
    app = app_of(function_tool(add), ToolTransform("add", args={"b": Arg(hide=True)}))
    assert app.call("add", a=1).unwrap() == [1, 2, False]


def test_arguments_of_a_described_tool() -> None:
    schema = {
        "properties": {
            "owner": {"type": "string", "minLength": 2},
            "per_page": {"type": "integer", "maximum": 9, "description": "old"},
            "page": {"type": "integer"},
        },
        "required": ["owner", "per_page"],
    }
    tool = described_tool("list", echo, input_schema=schema, annotations=ReadOnly)
    args = {
        "owner": Arg(value="me", hide=True),
        "per_page": Arg(name="count", default=5, help="How many."),
    }
    app = app_of(tool, ToolTransform("list", args=args))
    assert app.call("list").unwrap() == {"owner": "me", "per_page": 5}
    assert app.call("list", count=3, page=1).unwrap() == {"owner": "me", "per_page": 3, "page": 1}
    assert input_schema(app.catalog["list"]) == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "maximum": 9, "description": "How many.", "default": 5},
            "page": {"type": "integer"},
        },
    }
    refused = app.call("list", count=99)
    assert refused.error is not None
    assert refused.error.field == "count"
    assert "'count': 99 is greater than" in refused.error.message


def test_transforms_of_arguments_can_follow_each_other() -> None:
    schema = {"properties": {"a": {"type": "integer", "maximum": 5}}}
    app = app_of(
        described_tool("t", echo, input_schema=schema, annotations=ReadOnly),
        ToolTransform("t", args={"a": Arg(name="b")}),
        ToolTransform("t", args={"b": Arg(name="c")}),
    )
    assert app.call("t", c=5).unwrap() == {"a": 5}
    refused = app.call("t", c=6)
    assert refused.error is not None
    assert refused.error.field == "c"


async def _acall(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def _stream(arguments: dict[str, Any]) -> Any:
    yield arguments


async def _astream(arguments: dict[str, Any]) -> Any:
    yield arguments


@pytest.mark.parametrize("call", [_acall, _stream, _astream])
def test_functions_of_every_kind(call: Any) -> None:
    tool = described_tool("t", call, input_schema={"properties": {"a": {}}}, annotations=ReadOnly)
    app = app_of(tool, ToolTransform("t", args={"a": Arg(name="b")}))
    expected: object = {"a": 1}
    assert app.call("t", b=1).unwrap() == (expected if call is _acall else [expected])


def test_other_tools_are_unchanged() -> None:
    tool = echo_tool("users.get_all")
    assert ToolTransform("users.get")(tool) is tool
    assert ToolTransform("users/get-all", name="x")(tool).path == ("users", "x")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"c": Arg(help="x")}, "there is no argument 'c' to change"),
        ({"a": Arg(hide=True)}, "'a' is required"),
        ({"a": Arg(name="b")}, "there is an argument 'b' already"),
    ],
)
def test_impossible_changes_are_reported(args: dict[str, Arg], message: str) -> None:
    app = app_of(function_tool(add), ToolTransform("add", args=args))
    assert not list(app.catalog)
    assert message in app.catalog.problems["add"].message


@pytest.mark.parametrize("options", [{"name": "a.b"}, {"name": ""}, {"args": {"a": Arg(value=1)}}])
def test_invalid_transform_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        ToolTransform("add", **options)


def test_names_of_tooli_6() -> None:
    assert transforms.NamespaceTransform is Namespace
    assert transforms.VisibilityTransform is Visibility
