"""Schemas of all versions become JSON Schema without references."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli.providers.openapi import json_schemas as module
from tooli.providers.openapi.document import Document
from tooli.providers.openapi.json_schemas import SchemaConverter

SCHEMAS: dict[str, Any] = {
    "Name": {"type": "string", "description": "A name."},
    "Node": {
        "type": "object",
        "properties": {
            "value": {"type": "integer"},
            "next": {"$ref": "#/components/schemas/Node"},
            "all": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        },
    },
    "Base": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    "Cat": {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "claws": {"type": "integer"}},
    },
    "Dog": {"type": "object", "properties": {"kind": {"enum": ["x"]}}},
    "Read": {"type": "string", "readOnly": True},
}
DOCUMENT = Document(json.dumps({"components": {"schemas": SCHEMAS}}).encode(), "api.json")


def convert(schema: Any, **options: Any) -> dict[str, Any]:
    return SchemaConverter(DOCUMENT, **options).convert(schema)


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "x-nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        (
            {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
            {"type": "integer", "maximum": 9},
        ),
        ({"type": "integer", "exclusiveMaximum": 9}, {"type": "integer", "exclusiveMaximum": 9}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "file"}, {"type": "string"}),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": "any"}, {}),
        ({"type": ["string", 7]}, {}),
        ({"type": "string", "pattern": "(", "minLength": -1, "format": 3}, {"type": "string"}),
        (
            {"type": "string", "pattern": "^a$", "x-y": 1, "example": 2},
            {"type": "string", "pattern": "^a$"},
        ),
        ({"type": "string", "pattern": "a" * 2000}, {"type": "string"}),
        ({"enum": [], "multipleOf": 0, "uniqueItems": "yes", "required": "a"}, {}),
        (ref("Name"), {"type": "string", "description": "A name."}),
        ({**ref("Name"), "description": "Mine."}, {"type": "string", "description": "Mine."}),
        (True, {}),
        (None, {}),
        (
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": {"type": "string"}},
        ),
        (
            {"type": "array", "prefixItems": [{"const": 1}]},
            {"type": "array", "prefixItems": [{"const": 1}]},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        (
            {"anyOf": [{"type": "string"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"not": {"type": "string"}, "if": {}}, {}),
        ({"nullable": True, "description": "x"}, {"description": "x"}),
    ],
)
def test_keywords(schema: Any, expected: dict[str, Any]) -> None:
    assert convert(schema) == expected


def test_all_of_is_merged_if_its_parts_are_plain_objects() -> None:
    parts = [ref("Base"), {"properties": {"name": ref("Name")}, "required": ["name"]}]
    merged = convert({"allOf": parts, "description": "Both.", "properties": {"own": {}}})
    assert set(merged["properties"]) == {"id", "name", "own"}
    assert merged["required"] == ["id", "name"]
    assert merged["description"] == "Both."
    assert convert({"allOf": [ref("Name")], "nullable": True, "description": "M"}) == {
        "type": ["string", "null"],
        "description": "M",
    }
    kept = convert(
        {"allOf": [ref("Base"), {"anyOf": [{"required": ["id"]}, {"maxProperties": 1}]}]}
    )
    assert len(kept["allOf"]) == 2
    assert convert({"allOf": [{"description": "x"}, {"minLength": 1}, {}]})["allOf"] == [
        {"minLength": 1}
    ]
    closed = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    assert "additionalProperties" not in convert({"allOf": [closed, ref("Base")]})
    assert convert({"allOf": [{}, {}]}) == {"type": "object", "properties": {}}
    nullable = convert(
        {"allOf": [{"minLength": 1}, {"maxLength": 2}], "nullable": True, "description": "d"}
    )
    assert nullable["anyOf"][1] == {"type": "null"}
    assert nullable["description"] == "d"


def test_recursion_is_cut_to_the_type() -> None:
    found = convert(ref("Node"))
    assert found["properties"]["next"] == {"type": "object"}
    assert found["properties"]["all"] == {"type": "array", "items": {"type": "object"}}


def test_deep_schemas_are_cut() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(10):
        deep = {
            "type": "object",
            "properties": {"a": deep, "l": {"type": "array", "items": ref("Name")}},
        }
    found = convert(deep)
    for _ in range(4):
        found = found["properties"]["a"]
    assert found == {"type": "object"}
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(8):
        nested = {"type": "array", "items": nested}
    assert json.dumps(convert(nested)).count("array") == 8


def test_large_schemas_are_converted_less_deeply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_INPUT_VALUES", 30)
    leaf = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(9)}}
    wide = {"type": "object", "properties": {f"q{i}": leaf for i in range(9)}}
    assert convert(wide)["properties"]["q1"] == {"type": "object"}
    huge = {"type": "object", "properties": {f"q{i}": {"type": "string"} for i in range(999)}}
    found = convert(huge)
    assert found["properties"]["q1"] == {"type": "string"}
    assert found["properties"]["q998"] == {}


def test_properties_of_the_other_direction_are_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "key": {"type": "string", "writeOnly": True},
            "read": ref("Read"),
            "all": {"allOf": [ref("Read")]},
            "bad": {"$ref": "#/components/schemas/Base/nothing"},
            "plain": True,
        },
        "required": ["id", "key", "key", 7],
    }
    del schema["properties"]["bad"]  # type: ignore[attr-defined]
    sent = convert(schema)
    assert set(sent["properties"]) == {"key", "all", "plain"}
    assert sent["required"] == ["key"]
    received = convert(schema, for_output=True)
    assert set(received["properties"]) == {"id", "read", "all", "plain"}
    assert "required" not in received


def test_results_keep_types_and_short_descriptions() -> None:
    found = convert(
        {
            "type": "object",
            "description": "x" * 500 + "\nmore",
            "properties": {"a": {"type": "string", "enum": ["b"], "format": "date"}},
            "additionalProperties": False,
        },
        for_output=True,
    )
    assert found == {
        "type": "object",
        "description": "x" * 120,
        "properties": {"a": {"type": "string"}},
    }


def test_discriminators_become_values() -> None:
    union = {
        "oneOf": [ref("Cat"), ref("Dog"), ref("Base"), {"type": "object"}],
        "discriminator": {"propertyName": "kind", "mapping": {"meow": "#/components/schemas/Cat"}},
    }
    cat, dog, base, other = convert(union)["anyOf"]
    assert cat["properties"]["kind"] == {"type": "string", "enum": ["meow"]}
    assert cat["required"] == ["kind"]
    assert dog["properties"]["kind"] == {"enum": ["x"]}
    assert "kind" not in base["properties"]
    assert other == {"type": "object"}
    implied = convert({**union, "discriminator": {"propertyName": "kind"}})["anyOf"][0]
    assert implied["properties"]["kind"]["enum"] == ["Cat"]
    assert convert({**union, "discriminator": 7})["anyOf"][0]["properties"]["kind"] == {
        "type": "string"
    }
