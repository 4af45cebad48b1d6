"""Portable schemas accept what the full schemas accept, without refused constructs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import jsonschema
import pydantic
import pytest

from tooli import Option, SecretInput, Tooli
from tooli.describe.mcp_tools import arguments_schema, describe_mcp_tool
from tooli.describe.portable_schemas import (
    RECURSION_DEPTH,
    portable_arguments,
    portable_schema,
)
from tooli.describe.schema_formats import describe_tool
from tooli.schema.json_schema import input_schema


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    format: str = "binary"


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    discriminator: int = 0


class Tree(pydantic.BaseModel):
    label: str
    below: list[Tree] = []


class Left(pydantic.BaseModel):
    rights: list[Right] = []
    word: str = ""


class Right(pydantic.BaseModel):
    left: Left | None = None


def make_app() -> Tooli:
    app = Tooli("t")

    @app.command()
    def f(
        pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
        tree: Annotated[Tree, Option()],
        left: Annotated[Left, Option()],
        raw: bytes,
        secret: Annotated[pydantic.SecretStr, Option()],
        text: Annotated[pydantic.Base64Bytes, Option(help="The data.")],
        token: SecretInput[str] | None = None,
        größe: Annotated[int, Option(help="How big.")] = 1,
    ) -> Tree:
        raise NotImplementedError

    return app


(TOOL,) = make_app().catalog
FULL = input_schema(TOOL)
PORTABLE = portable_arguments(TOOL, FULL)


def keywords(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of a schema and of all schemas in it, without names of properties."""
    if isinstance(node, list):
        for item in node:
            yield from keywords(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield key, value
            if key == "properties":
                for part in value.values():
                    yield from keywords(part)
            elif key not in ("default", "const", "enum"):
                yield from keywords(value)


def nested_tree(depth: int) -> dict[str, Any]:
    return {"label": "x", "below": [nested_tree(depth - 1)] if depth else []}


ARGUMENTS = {
    "pet": {"kind": "dog", "discriminator": 3},
    "tree": nested_tree(9),
    "left": {"rights": [{"left": {"rights": [{}], "word": "w"}}]},
    "raw": "x",
    "secret": "x",
    "text": "eA==",
}


def test_refused_constructs_are_left_out() -> None:
    found = dict(keywords(PORTABLE))
    assert {"discriminator", "$ref", "$defs"}.isdisjoint(found)
    formats = {value for key, value in keywords(PORTABLE) if key == "format"}
    assert formats == set()
    assert {"discriminator", "$ref", "$defs"} <= {key for key, _ in keywords(FULL)}


def test_both_schemas_are_valid_and_accept_the_same_arguments() -> None:
    for schema, name in ((FULL, "größe"), (PORTABLE, "grosse")):
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate({**ARGUMENTS, name: 2}, schema)
        for wrong in ({**ARGUMENTS, "raw": 1}, {**ARGUMENTS, "pet": {"kind": "cow"}}):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(wrong, schema)


def test_properties_that_are_named_like_keywords_stay() -> None:
    cat, dog = PORTABLE["properties"]["pet"]["oneOf"]
    assert cat["properties"]["format"] == {"default": "binary", "type": "string"}
    assert dog["properties"]["discriminator"] == {"default": 0, "type": "integer"}


def test_recursive_model_is_cut_at_the_depth() -> None:
    node, depth = PORTABLE["properties"]["tree"], -1
    while "properties" in node:
        node, depth = node["properties"]["below"]["items"], depth + 1
    assert depth == RECURSION_DEPTH
    assert node == {"type": "object", "description": "Tree, as above."}


def test_model_with_many_recursive_fields_stays_small() -> None:
    names = [f"M{i}" for i in range(20)]
    fields = {name.lower(): {"$ref": f"#/$defs/{name}"} for name in names}
    definitions = {name: {"type": "object", "properties": fields} for name in names}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/M0"}}, "$defs": definitions}
    converted = portable_schema(schema)
    assert len(json.dumps(converted)) < 100_000
    jsonschema.validate({"x": {"m1": {"m2": {"m3": {}}}}}, converted)


def test_tuples_have_items_for_hosts_that_do_not_know_prefix_items() -> None:
    parts = [{"type": "integer"}, {"type": "string"}, {"type": "integer"}]
    mixed = {"type": "array", "prefixItems": parts, "minItems": 3, "maxItems": 3}
    schema = portable_schema({"type": "object", "properties": {"x": mixed}})
    assert schema["properties"]["x"] == {**mixed, "items": {"anyOf": parts[:2]}}
    jsonschema.validate({"x": [1, "a", 2]}, schema)
    for wrong in ([1, 2, 3], [1, "a"], [1, "a", 2, 3]):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"x": wrong}, schema)
    same = {"type": "array", "prefixItems": parts[:1], "maxItems": 1}
    assert portable_schema(same) == {**same, "items": {"type": "integer"}}


def test_other_references_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a/properties/b"}},
        "$defs": {"a": {"properties": {"b": {"type": "integer"}}}},
    }
    assert portable_schema(schema) == schema


def test_description_has_the_name_and_the_encoding() -> None:
    properties = PORTABLE["properties"]
    assert properties["grosse"] == {
        "type": "integer",
        "description": "größe. How big.",
        "default": 1,
    }
    assert properties["text"]["description"] == "The data. (base64)"


def test_formats_for_models_are_portable_and_the_schema_for_people_is_full() -> None:
    assert describe_tool(TOOL, "json")["input_schema"] == FULL
    assert describe_tool(TOOL, "anthropic")["input_schema"] == PORTABLE
    assert describe_tool(TOOL, "openai")["function"]["parameters"] == PORTABLE
    served = describe_mcp_tool("f", TOOL)["inputSchema"]
    assert served == arguments_schema(TOOL)
    assert PORTABLE["properties"].items() <= served["properties"].items()
