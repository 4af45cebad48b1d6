"""Providers, and the tools that they make: of JSON Schemas and of functions."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.providers.provided import ECHO_SCHEMA, ToolList, echo, echo_tool

from tooli import Context, Tooli
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly
from tooli.core.tool import Behavior
from tooli.errors import DefinitionError, NotFoundError
from tooli.providers import (
    UNKNOWN_EFFECTS,
    LocalProvider,
    Provider,
    described_tool,
    function_tool,
    hinted_behavior,
)
from tooli.schema.json_schema import input_schema, output_schema


def app_of(*tools: Any) -> Tooli:
    app = Tooli("app", version="1")
    app.add_provider(ToolList(*tools))
    return app


# ------------------------------------------------------------------ described tools


def test_schemas_pass_through_unchanged() -> None:
    results = {"type": "array", "items": {"type": "string"}}
    tool = echo_tool(output_schema=results)
    assert input_schema(tool) == ECHO_SCHEMA
    assert output_schema(tool) == results


def test_absent_is_not_null() -> None:
    app = app_of(echo_tool())
    assert app.call("echo", kind="a").unwrap() == {"kind": "a"}
    assert app.call("echo", kind="a", note=None).unwrap() == {"kind": "a", "note": None}
    # null is no value of this property, so that it is not given
    assert app.call("echo", kind="a", deep=None).unwrap() == {"kind": "a"}


def test_whole_numbers_stay_whole() -> None:
    app = app_of(echo_tool())
    for given, passed in ((3, 3), (3.0, 3), (3.5, 3.5), (1e300, 1e300)):
        value = app.call("echo", kind="a", ratio=given).unwrap()["ratio"]
        assert (value, type(value)) == (passed, type(passed))


def test_all_problems_are_reported_at_once() -> None:
    arguments = {"kind": "c", "max_results": 99, "from": "x", "user": {"age": "y"}, "target": []}
    result = app_of(echo_tool()).call("echo", **arguments)
    assert result.error is not None
    assert result.error.details is not None
    assert {problem["field"] for problem in result.error.details["errors"]} == {
        *("kind", "max_results", "from", "user.age", "user.name", "target")
    }


def test_unknown_argument_is_refused_with_the_closest_name() -> None:
    result = app_of(echo_tool()).call("echo", kind="a", max_result=1)
    assert result.error is not None
    assert (result.error.code, result.error.field) == ("E1004", "max_result")
    assert "did you mean 'max_results'?" in result.error.message


def test_declared_additional_properties_are_passed() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "integer"},
    }
    app = app_of(echo_tool(input_schema=schema))
    assert app.call("echo", a=1, b=2).unwrap() == {"a": 1, "b": 2}
    assert not app.call("echo", a=1, b="x").ok


def test_tool_without_schema_takes_nothing() -> None:
    app = app_of(described_tool("now", lambda arguments: arguments, annotations=ReadOnly))
    assert app.call("now").unwrap() == {}
    assert not app.call("now", x=1).ok


async def _async(arguments: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return {**arguments, "tool": ctx.tool}


def _stream(arguments: dict[str, Any]) -> Any:
    yield from range(arguments["count"])


async def _astream(arguments: dict[str, Any]) -> Any:
    for i in range(arguments["count"]):
        yield i


class _Callable:
    def __call__(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    async def method(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments


@pytest.mark.parametrize(
    ("call", "is_streaming", "stops_itself", "result"),
    [
        (echo, False, False, {"count": 3}),
        (_async, False, True, {"count": 3, "tool": "app.work"}),
        (_stream, True, False, [0, 1, 2]),
        (_astream, True, True, [0, 1, 2]),
        (_Callable(), False, False, {"count": 3}),
        (_Callable().method, False, True, {"count": 3}),
        (functools.partial(lambda extra, arguments: {**extra, **arguments}, {"x": 1}), False, False,
         {"x": 1, "count": 3}),
        (dict, False, False, {"count": 3}),
    ],
)  # fmt: skip
def test_functions_of_every_kind(
    call: Any, is_streaming: bool, stops_itself: bool, result: object
) -> None:
    schema = {"properties": {"count": {"type": "integer"}}}
    tool = described_tool("work", call, input_schema=schema, annotations=ReadOnly)
    assert (tool.is_streaming, tool.limits.stops_itself) == (is_streaming, stops_itself)
    assert app_of(tool).call("work", count=3).unwrap() == result


def test_second_parameter_is_the_context_only_if_it_can_be() -> None:
    def with_default(arguments: dict[str, Any], retries: int = 3) -> int:
        return retries

    def with_context(arguments: dict[str, Any], context: Any = None) -> bool:
        return isinstance(context, Context)

    app = app_of(
        described_tool("a", with_default, annotations=ReadOnly),
        described_tool("b", with_context, annotations=ReadOnly),
    )
    assert app.call("a").unwrap() == 3
    assert app.call("b").unwrap() is True


def test_errors_of_the_function_keep_their_class() -> None:
    def fail(arguments: dict[str, Any]) -> None:
        raise NotFoundError("There is no such thing.")

    result = app_of(described_tool("get", fail, annotations=ReadOnly)).call("get")
    assert result.error is not None
    assert result.error.code == "E3010"


def test_keywords_of_commands_apply() -> None:
    tool = described_tool(
        ["users", "List All!"],
        echo,
        description="List\x1b[1m users.\n\nArgs:\n    are no section.",
        tags=["x"],
        timeout=5,
        auth=["read"],
        title="Users",
        deprecated="use ls",
        hidden=True,
    )
    assert (tool.key, tool.name) == ("users.List-All", "List-All")
    assert tool.doc.summary == "List users."
    assert tool.doc.description == "Args:\n    are no section."
    assert tool.behavior == UNKNOWN_EFFECTS
    assert (tool.guard.scopes, tool.limits.timeout) == (("read",), 5)
    assert (tool.guidance.tags, tool.hidden, tool.deprecated) == (("x",), True, "use ls")
    assert described_tool("a", echo, summary="Short.").doc.summary == "Short."


@pytest.mark.parametrize("name", ["", "...", "$$$", [], ["a", ""]])
def test_name_without_letters_is_refused(name: Any) -> None:
    with pytest.raises(DefinitionError, match="is not a name of a tool"):
        described_tool(name, echo)


def test_misspelled_keyword_is_refused() -> None:
    with pytest.raises(DefinitionError, match="did you mean 'timeout'"):
        described_tool("a", echo, timeot=3)  # type: ignore[call-arg]  # pyright: ignore


# ------------------------------------------------------------------ effects


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (None, Destructive | OpenWorld),
        ({}, Destructive | OpenWorld),
        ({"readOnlyHint": True}, ReadOnly | OpenWorld),
        ({"readOnlyHint": True, "openWorldHint": False}, ReadOnly),
        ({"destructiveHint": False, "idempotentHint": True}, Idempotent | OpenWorld),
    ],
)
def test_trusted_hints_decide(hints: Any, expected: Behavior) -> None:
    assert hinted_behavior(hints, trusted=True) == expected


@pytest.mark.parametrize(
    ("declared", "hints", "expected"),
    [
        (None, {"readOnlyHint": True, "openWorldHint": False}, Destructive | OpenWorld),
        (ReadOnly, {"readOnlyHint": True}, ReadOnly),
        (ReadOnly, {"destructiveHint": True}, Destructive),
        (ReadOnly, {"readOnlyHint": False}, Behavior()),
        (ReadOnly | Idempotent, {"idempotentHint": False}, ReadOnly),
        (ReadOnly, {"openWorldHint": True}, ReadOnly | OpenWorld),
        (ReadOnly, {"readOnlyHint": "yes", "destructiveHint": 1}, Destructive),
    ],
)
def test_other_hints_only_tighten(
    declared: Behavior | None, hints: Any, expected: Behavior
) -> None:
    assert hinted_behavior(hints, declared=declared) == expected


# ------------------------------------------------------------------ typed functions


def test_local_provider_registers_functions() -> None:
    math = LocalProvider("math")

    @math.tool(annotations=ReadOnly)
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    app = Tooli("app")
    app.add_provider(math, namespace="math")
    assert add(1) == 3
    assert app.call("math.add", a="1").unwrap() == 3
    assert app.catalog["math.add"].doc.summary == "Add two numbers."


def test_local_provider_reports_changes() -> None:
    math, changes = LocalProvider("math"), list[str]()
    math.watch(lambda: changes.append("changed"))

    def one_more() -> int:
        return 1

    math.tool("more")(one_more)
    assert changes == ["changed"]
    assert [tool.key for tool in math.tools()] == ["more"]


def test_function_tool_has_the_name_of_its_function() -> None:
    def list_all() -> list[str]:
        return []

    assert function_tool(list_all).key == "list-all"
    assert function_tool(list_all, "users.all", tags=["x"]).path == ("users", "all")


def test_base_class() -> None:
    provider = Provider()
    provider.watch(lambda: None)
    provider.close()
    with pytest.raises(NotImplementedError):
        provider.tools()
