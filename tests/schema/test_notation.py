"""Types in short notation."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.schema.notation import format_input, format_type

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
NULL = {"type": "null"}
ORDER = {
    "type": "object",
    "properties": {
        "sku": TEXT,
        "count": {**WHOLE, "minimum": 1, "maximum": 99},
        "gift": {"anyOf": [{"type": "boolean"}, NULL]},
    },
    "required": ["sku", "count"],
}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (TEXT, "str"),
        ({}, "any"),
        (True, "any"),
        ({"type": ["string", "null"]}, "str | null"),
        ({"anyOf": [WHOLE, NULL]}, "int | null"),
        ({"enum": ["a", 2]}, '"a"|2'),
        ({"enum": [*range(9)]}, "0|1|2|3|4|5|6|7|…"),
        ({"const": None}, "null"),
        ({"type": "array", "items": TEXT}, "[str]"),
        ({"type": "array"}, "list"),
        ({"type": "array", "prefixItems": [WHOLE, TEXT]}, "[int, str]"),
        (
            {"type": "object", "properties": {"a": TEXT, "b": WHOLE}, "required": ["a"]},
            "{a: str, b?: int}",
        ),
        ({"type": "object", "additionalProperties": WHOLE}, "{str: int}"),
        ({"type": "object"}, "object"),
        ({"$ref": "#/$defs/Node"}, "Node"),
        ({"type": "string", "format": "date-time"}, "datetime"),
    ],
)
def test_types_of_results(schema: Any, text: str) -> None:
    assert format_type(schema) == text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (ORDER, "{sku:str,count:int(1..99),gift?:bool}"),
        ({"type": "array", "items": ORDER}, "[{sku:str,count:int(1..99),gift?:bool}]"),
        ({"anyOf": [WHOLE, TEXT]}, "int|str"),
        ({"type": "array", "prefixItems": [TEXT, WHOLE]}, "[str,int]"),
        ({"type": "object", "additionalProperties": WHOLE}, "{str:int}"),
        ({**WHOLE, "minimum": 0}, "int(0..)"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 2.5}, "float(..2.5,>0)"),
        ({**TEXT, "format": "date"}, "date(YYYY-MM-DD)"),
        ({**TEXT, "format": "date-time"}, "datetime(YYYY-MM-DDTHH:MM:SS)"),
        ({**TEXT, "format": "duration"}, "duration(PT1H30M)"),
        ({**TEXT, "format": "path"}, "path"),
        ({"enum": ["", "a"]}, '""|"a"'),
        ({"type": "object", "properties": {"a": True}}, "{a?:any}"),
    ],
)
def test_types_of_arguments(schema: Any, text: str) -> None:
    assert format_input(schema) == text


def test_a_recursive_type_is_described_once() -> None:
    node = {
        "type": "object",
        "properties": {"name": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
        "required": ["name"],
    }
    assert format_input({"$ref": "#/$defs/N", "$defs": {"N": node}}) == "{name:str,children?:[N]}"


def test_a_long_notation_has_fewer_levels() -> None:
    inner = {"type": "object", "properties": {f"field_{i}": TEXT for i in range(30)}}
    outer = {"type": "object", "properties": {"a": inner, "b": WHOLE}, "required": ["a"]}
    assert format_input(outer) == "{a:{…},b?:int}"
