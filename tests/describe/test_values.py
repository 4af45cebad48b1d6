"""JSON Schema in words."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.describe import schema_prose

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
NULL = {"type": "null"}
NODE = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"a": TEXT}}}}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (TEXT, "text"),
        (WHOLE, "integer"),
        ({"type": "string", "format": "path"}, "path"),
        ({"type": "string", "format": "unheard-of"}, "text"),
        ({"type": "boolean"}, "true or false"),
        ({"anyOf": [WHOLE, NULL]}, "integer"),
        ({"anyOf": [WHOLE, TEXT, TEXT]}, "integer or text"),
        ({"enum": ["a", "b"]}, "a or b"),
        ({"enum": ["a", 2, None]}, "one of a, 2, null"),
        ({"const": "a"}, "a"),
        ({"enum": [*map(str, range(20))], "type": "string"}, "text"),
        ({"type": "array", "items": WHOLE}, "list of integers"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "array", "items": {"type": "array", "items": TEXT}}, "list of lists of texts"),
        ({"type": "array", "prefixItems": [WHOLE, TEXT]}, "list of 2: integer, text"),
        ({"type": "object", "additionalProperties": WHOLE}, "object of integers by name"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"type": "array", "items": {"$ref": "#/$defs/A"}}, "list of objects"),
        (NODE, "object"),
        ({"$ref": "#/$defs/A"}, "object"),
        ({}, "value"),
    ],
)
def test_kinds(schema: dict[str, Any], kind: str) -> None:
    assert schema_prose.describe_type(schema) == kind


@pytest.mark.parametrize(
    ("schema", "limits"),
    [
        ({**WHOLE, "minimum": 1, "maximum": 9}, "From 1 to 9."),
        ({**WHOLE, "minimum": 1}, "At least 1."),
        ({"anyOf": [{**WHOLE, "maximum": 1}, NULL]}, "At most 1."),
        ({"type": "array", "items": {**WHOLE, "exclusiveMinimum": 0}}, "More than 0."),
        ({**TEXT, "pattern": "^a"}, "Matching ^a."),
        (TEXT, ""),
    ],
)
def test_limits(schema: dict[str, Any], limits: str) -> None:
    assert schema_prose.describe_limits(schema) == limits


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (WHOLE, "An integer"),
        (TEXT, "A text"),
        ({"anyOf": [WHOLE, NULL]}, "An integer, or nothing"),
        ({"type": "boolean"}, "True or false"),
        ({"enum": ["a", "b", "c"]}, "One of a, b, c"),
    ],
)
def test_results(schema: dict[str, Any], text: str) -> None:
    assert schema_prose.describe_result(schema) == text


def test_parts() -> None:
    whole = {"type": "object", "properties": {"a": TEXT, "b": True}, "required": ["a"]}
    assert schema_prose.object_properties(whole) == {"a": TEXT}
    assert schema_prose.required_properties({"type": "array", "items": whole}) == ["a"]
    assert schema_prose.object_properties(NODE) == {"a": TEXT}
    assert schema_prose.object_properties(WHOLE) == {}


def test_defaults() -> None:
    told = [
        schema_prose.describe_default({"default": default})
        for default in (None, "", [], 0, "x", [1])
    ]
    assert told == ["", "", "", "0", "x", "[1]"]
