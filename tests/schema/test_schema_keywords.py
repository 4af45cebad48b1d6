"""The keywords of a JSON Schema from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.schema.schema_keywords import find_invalid_keyword


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["string", "null"], "enum": [None, "a"], "examples": ["a"], "nullable": True},
        {"items": [{}, True], "additionalItems": False, "exclusiveMinimum": True},
        {"items": {"type": "integer", "minimum": 0, "exclusiveMaximum": 1.5, "multipleOf": 0.5}},
        {"minLength": 0, "maxLength": 5.0},
        {"properties": {"type": {"enum": [1]}, "enum": {}}, "required": ["enum"]},
        {"default": {"type": 5, "properties": []}, "const": {"enum": 1}, "x-more": {"type": 5}},
        {"$defs": {"a/b": {"prefixItems": [True]}}, "$ref": "#/$defs/a~1b"},
        {"allOf": [{"if": {}, "then": True}], "items": {"$ref": "#/allOf/0/if"}},
        {"$ref": "other.json#/x"},
        {"discriminator": {"propertyName": "kind", "mapping": {"a": "#/$defs/a"}}},
    ],
)
def test_valid_schema(schema: Any) -> None:
    assert find_invalid_keyword(schema) is None


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": []}, "`properties` must be an object of schemas"),
        ({"$defs": {"a": 1}}, "`$defs` must be an object of schemas"),
        ({"anyOf": {}}, "`anyOf` must be a list of schemas"),
        ({"oneOf": [1]}, "`oneOf` must be a list of schemas"),
        ({"items": 1}, "`items` must be a schema"),
        ({"not": "x"}, "`not` must be a schema"),
        ({"properties": {"a": {"enum": "x"}}}, "`enum` must be a list"),
        ({"required": True}, "`required` must be a list of names"),
        ({"type": 1}, "`type` must be the name of a JSON type"),
        ({"type": []}, "`type` must be the name of a JSON type"),
        ({"properties": {"a": {"type": "text"}}}, "`type` must be the name of a JSON type"),
        ({"type": ["string", "any"]}, "`type` must be the name of a JSON type"),
        ({"allOf": [{"pattern": 1}]}, "`pattern` must be text"),
        ({"description": {}}, "`description` must be text"),
        ({"minimum": "\n# Heading"}, "`minimum` must be a number"),
        ({"multipleOf": 0}, "`multipleOf` must be a number above 0"),
        ({"minItems": True}, "`minItems` must be an integer of at least 0"),
        ({"minLength": -1}, "`minLength` must be an integer of at least 0"),
        ({"maxLength": 1.5}, "`maxLength` must be an integer of at least 0"),
        ({"maxItems": float("inf")}, "`maxItems` must be an integer of at least 0"),
        ({"exclusiveMinimum": "1"}, "`exclusiveMinimum` must be a number"),
        ({"uniqueItems": 1}, "`uniqueItems` must be a boolean"),
        ({"discriminator": "kind"}, "`discriminator` must be an object"),
        ({"discriminator": {"propertyName": "k", "mapping": {"a": 1}}}, "`discriminator` must"),
        ({"$ref": "#/$defs/none"}, "the reference '#/$defs/none' names nothing"),
        ({"allOf": [{}], "$ref": "#/allOf/1"}, "names nothing"),
        ({"allOf": [{}], "$ref": "#/allOf/0/x/y"}, "names nothing"),
    ],
)
def test_invalid_schema(schema: Any, problem: str) -> None:
    found = find_invalid_keyword(schema)
    assert found is not None
    assert problem in found
