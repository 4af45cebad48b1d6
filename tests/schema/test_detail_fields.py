"""Detail fields: their marks in a schema, and values without them."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import Detail
from tooli.schema.detail_fields import drop_details, has_details, is_detail, make_details_optional

TEXT = {"type": "string"}
MARKED = {"type": "string", "detail": True}
NULL = {"type": "null"}


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


LEAF = record(a=TEXT, b=MARKED)
VALUE = {"a": "x", "b": "y"}


def test_repr_of_detail() -> None:
    assert repr(Detail) == "Detail"


@pytest.mark.parametrize(
    ("schema", "marked"),
    [
        (MARKED, True),
        ({"anyOf": [MARKED, NULL]}, True),
        ({"anyOf": [TEXT, NULL], "detail": True}, True),
        ({"$ref": "#/$defs/X", "detail": True}, True),
        (TEXT, False),
        ({"anyOf": [MARKED, TEXT]}, False),
        ({"anyOf": [NULL]}, False),
        ({**TEXT, "detail": "not a mark of tooli"}, False),
        (True, False),
    ],
)
def test_is_detail(schema: Any, marked: bool) -> None:
    assert is_detail(schema) is marked


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (LEAF, True),
        ({"type": "array", "items": LEAF}, True),
        ({"anyOf": [NULL, LEAF]}, True),
        ({"$ref": "#/$defs/X", "$defs": {"X": LEAF}}, True),
        (record(detail=TEXT), False),
        ({**TEXT, "default": LEAF, "examples": [LEAF], "enum": [LEAF], "const": LEAF}, False),
        (record(properties=TEXT, required=TEXT), False),
        ({"properties": True}, False),
    ],
)
def test_has_details_finds_marked_fields_in_any_schema(schema: Any, found: bool) -> None:
    assert has_details(schema) is found


def test_make_details_optional() -> None:
    made = make_details_optional({"type": "array", "items": record(a=TEXT, b=MARKED)})
    assert made["items"]["required"] == ["a"]
    assert "required" not in make_details_optional(record(b=MARKED))
    assert "required" not in make_details_optional({"type": "object", "properties": {"b": MARKED}})
    assert make_details_optional({**TEXT, "required": True})["required"] is True


CAT = {**record(kind={"const": "cat"}, name=MARKED), "required": ["kind"]}
DOG = record(kind={"enum": ["dog", "wolf"]}, name=TEXT)
DROP_CASES: list[tuple[Any, Any, Any]] = [
    (VALUE, LEAF, {"a": "x"}),
    ([VALUE], {"type": "array", "items": LEAF}, [{"a": "x"}]),
    ([VALUE, VALUE], {"type": "array", "prefixItems": [LEAF]}, [{"a": "x"}, VALUE]),
    (VALUE, {"allOf": [LEAF]}, {"a": "x"}),
    (VALUE, {"allOf": [LEAF, LEAF]}, VALUE),
    (VALUE, {"oneOf": [LEAF, NULL]}, {"a": "x"}),
    ({"k": VALUE}, {"type": "object", "additionalProperties": LEAF}, {"k": {"a": "x"}}),
    ({"k": VALUE}, {"type": "object", "additionalProperties": True}, {"k": VALUE}),
    (VALUE, True, VALUE),
    (VALUE, {}, VALUE),
    (VALUE, {"$ref": "#/$defs/Nobody"}, VALUE),
    (VALUE, {"$ref": "#/$defs/Self"}, VALUE),
    ("text", LEAF, "text"),
    ({**VALUE, "more": 1}, LEAF, {"a": "x", "more": 1}),
    # unions: by the kind, the keys and the tags of the value
    ({"kind": "cat", "name": "Tom"}, {"anyOf": [CAT, DOG]}, {"kind": "cat"}),
    ({"kind": "wolf", "name": "Rex"}, {"anyOf": [CAT, DOG]}, {"kind": "wolf", "name": "Rex"}),
    ({"kind": "cow", "name": "X"}, {"anyOf": [CAT, DOG]}, {"kind": "cow", "name": "X"}),
    (VALUE, {"anyOf": [LEAF, {"type": "array", "items": LEAF}]}, {"a": "x"}),
    ([VALUE], {"anyOf": [LEAF, {"type": "array", "items": LEAF}]}, [{"a": "x"}]),
    (VALUE, {"anyOf": [LEAF, record(a=TEXT, b=TEXT)]}, VALUE),
    (VALUE, {"anyOf": [LEAF, record(a=TEXT, b=TEXT, c=TEXT)]}, {"a": "x"}),
    ({"b": "y", "z": 1}, {"anyOf": [{**LEAF, "required": []}, record(b=TEXT, z=TEXT)]}, None),
    (VALUE, {"anyOf": [LEAF, {}]}, VALUE),
    (VALUE, {"anyOf": [LEAF, {"properties": {"a": True, "b": MARKED}}]}, {"a": "x"}),
]


@pytest.mark.parametrize(("value", "schema", "expected"), DROP_CASES)
def test_drop_details_removes_marked_fields(value: Any, schema: Any, expected: Any) -> None:
    root = {"$defs": {"Self": {"$ref": "#/$defs/Self"}}}
    assert drop_details(value, schema, root) == (value if expected is None else expected)


def test_drop_details_removes_marked_fields_of_a_recursive_schema() -> None:
    root: dict[str, Any] = {
        "$ref": "#/$defs/Tree",
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {
                    "raw": MARKED,
                    "inside": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                },
            }
        },
    }
    tree = {"raw": "1", "inside": [{"raw": "2", "inside": []}]}
    assert drop_details(tree, root, root) == {"inside": [{"inside": []}]}
