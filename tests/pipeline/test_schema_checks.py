"""The check of arguments by a JSON Schema, as a part of binding."""

from __future__ import annotations

from typing import Any

from tests.providers.provided import ToolList, echo_tool

from tooli import Context, Tooli
from tooli.annotations import ReadOnly
from tooli.core.call import PYTHON_CALLER, Call
from tooli.pipeline.schema_checks import check_by_schema
from tooli.providers import described_tool


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


def test_arguments_that_the_schema_allows_are_passed_on() -> None:
    schema = {"properties": {}, "patternProperties": {"^x-": {"type": "string"}}}
    schema = {**schema, "additionalProperties": False}
    call = make_call(schema, {"x-a": "b", "x-c": 1, "d": 2})
    bound: dict[str, Any] = {}
    problems = [(p.code, p.field) for p in check_by_schema(call, bound, ())]
    assert sorted(problems) == [("E1003", "x-c"), ("E1004", "d")]
    assert bound == {"x-a": "b", "x-c": 1, "d": 2}
