"""The check of arguments by a JSON Schema, as a part of binding."""

from __future__ import annotations

import pickle
from typing import Any

from tests.providers.provided import ToolList, echo_tool

from tooli import Context, Tooli
from tooli.annotations import ReadOnly
from tooli.core.call import PYTHON_CALLER, Call
from tooli.pipeline.schema_checks import check_by_schema
from tooli.providers import described_tool
from tooli.transforms import Arg, ToolTransform


def make_call(schema: dict[str, Any], arguments: dict[str, Any]) -> Call:
    def run(arguments: dict[str, Any], ctx: Context) -> None: ...

    app = Tooli("app")
    app.add_provider(
        ToolList(described_tool("run", run, input_schema=schema, annotations=ReadOnly), echo_tool())
    )
    return Call(app.catalog["run"], arguments, PYTHON_CALLER, [])


def test_injected_values_are_no_arguments() -> None:
    call = make_call({"properties": {"a": {"minimum": 2}}, "additionalProperties": False}, {"a": 1})
    bound = {"a": 1, "tooli_context": object()}
    assert [p.field for p in check_by_schema(call, bound, ())] == ["a"]
    assert list(check_by_schema(call, bound, ["a"])) == []


def test_additional_arguments_replace_nothing() -> None:
    """A schema that allows any argument does not give callers the context and hidden arguments."""
    schema = {"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": True}
    call = make_call(schema, {"n": 1, "tooli_context": 2, "b": 3, "c": 4, "a": 5, "x": 6})
    hide = ToolTransform("run", args={"a": Arg(name="n"), "b": Arg(hide=True)})
    hidden = ToolTransform("run", args={"c": Arg(hide=True, value=1)})
    tool = hidden(hide(call.tool))
    assert pickle.loads(pickle.dumps(tool.argument_check)).hidden == {"a", "b", "c"}
    bound: dict[str, Any] = {}
    problems = {(p.code, p.field) for p in check_by_schema(call.replace(tool=tool), bound, ())}
    assert problems == {("E1004", name) for name in ("tooli_context", "a", "b", "c")}
    assert bound == {"x": 6}


def test_property_with_the_name_of_the_context() -> None:
    seen: list[Any] = []
    schema = {"properties": {"tooli_context": {"type": "string"}}}

    def run(arguments: dict[str, Any], ctx: Context) -> None:
        seen.append((arguments, type(ctx)))

    app = Tooli("app")
    app.add_provider(ToolList(described_tool("run", run, input_schema=schema)))
    assert app.call("run", tooli_context="x", yes=True).ok
    assert seen == [({"tooli_context": "x"}, Context)]


def test_arguments_that_the_schema_allows_are_passed_on() -> None:
    schema = {"properties": {}, "patternProperties": {"^x-": {"type": "string"}}}
    schema = {**schema, "additionalProperties": False}
    call = make_call(schema, {"x-a": "b", "x-c": 1, "d": 2})
    bound: dict[str, Any] = {}
    problems = [(p.code, p.field) for p in check_by_schema(call, bound, ())]
    assert sorted(problems) == [("E1003", "x-c"), ("E1004", "d")]
    assert bound == {"x-a": "b", "x-c": 1, "d": 2}
