"""Field paths and selections: parsing, formatting, values and schemas."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.sample_records import FIELDS, OPEN, RECORDS, Color, Model, Point

from tooli.records.fields import (
    ExpressionError,
    MultipleValues,
    RecordFields,
    allowed_values,
    build_getter,
    compile_selection,
    format_path,
    get_member,
    json_type_of,
    json_types,
    parse_path,
)


@given(st.lists(st.one_of(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.integers(0, 9))))
def test_path_round_trip(steps: list[str | int]) -> None:
    path = ("a", *steps)
    assert parse_path(format_path(path)) == path


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("size", 1),
        ("owner.name", "ada"),
        ("tags[1]", "y"),
        ("tags[-1]", "y"),
        ("tags[9]", None),
        ("nothing.at.all", None),
        ("kids.age", MultipleValues([1, 12])),
        (".", RECORDS[0]),
    ],
)
def test_getter_returns_the_value_at_a_path(path: str, value: object) -> None:
    assert build_getter(parse_path(path))(RECORDS[0]) == value


def test_values_are_json_types() -> None:
    point = Point(3, Color.RED, date(2024, 2, 29))
    assert [build_getter((name,))(point) for name in ("x", "color", "day")] == [
        3,
        "red",
        "2024-02-29",
    ]


def test_schemas_at_path_have_types_and_allowed_values() -> None:
    assert json_types(FIELDS.schemas_at(("size",))) == {"number"}
    assert json_types(FIELDS.schemas_at(("owner",))) == {"object", "null"}
    assert json_types(FIELDS.schemas_at(("more", "deep"))) is None
    assert allowed_values(FIELDS.schemas_at(("kind",))) == ["file", "folder"]
    assert allowed_values(FIELDS.schemas_at(("name",))) is None
    assert OPEN.schemas_at(("anything",)) is None
    with pytest.raises(ExpressionError) as raised:
        FIELDS.schemas_at(("owner", "nam"))
    assert str(raised.value).endswith("did you mean 'name'?")


# ------------------------------------------------------------------ select


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name", {"name": "a"}),
        ("size as bytes, name", {"bytes": 1, "name": "a"}),
        ("owner.name", {"owner": {"name": "ada"}}),
        ("owner.name, owner.age", {"owner": {"name": "ada", "age": 36}}),
        ("owner, owner.name", {"owner": {"name": "ada", "age": 36}}),
        ("owner.name as who", {"who": "ada"}),
        ("kids.age", {"kids": [{"age": 1}, {"age": 12}]}),
        ("kids.age as ages", {"ages": [1, 12]}),
        ("tags[0]", {"tags[0]": "x"}),
        ("tags[0] as first, tags[5] as sixth", {"first": "x", "sixth": None}),
        ("more.deep.er", {"more": {"deep": {"er": 1}}}),
    ],
)
def test_selection_returns_the_named_fields_in_order(text: str, expected: dict[str, Any]) -> None:
    selected = compile_selection(text, FIELDS)(RECORDS[0])
    assert selected == expected
    assert list(selected) == list(expected)


def test_missing_fields_are_left_out() -> None:
    assert compile_selection("name, kids, owner.name", FIELDS)(RECORDS[1]) == {
        "name": "b",
        "owner": None,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nme", "did you mean 'name'?"),
        ("owner.nme", "did you mean 'name'?"),
        ("name,", "A field is missing"),
        ("name size", "is not a field"),
        ("name as", "is not a field"),
        ("name as size, size", "'size' is selected twice"),
        ("size, name as size", "'size' is selected twice"),
        (".", "is not a field"),
        ("tags[x]", "is not a field"),
        (", ".join([f"name as n{i}" for i in range(101)]), "more than 100 renamed fields"),
    ],
)
def test_invalid_selections_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_selection(text, FIELDS)
    assert message in str(raised.value)


def test_fields_of_dataclasses_and_models_are_selected() -> None:
    point = Point(3, Color.RED, date(2024, 2, 29))
    assert compile_selection("x, color as c", OPEN)(point) == {"x": 3, "c": "red"}
    assert compile_selection("otherName", OPEN)(Model(x=3)) == {"otherName": "o"}
    assert compile_selection("x", OPEN)(3) == 3


ANYTHING: list[dict[str, Any]] = [
    {"type": "array", "prefixItems": [{"type": "string"}]},
    {"$ref": "#/$defs/Missing"},
    {"$ref": "#/$defs/Loop", "$defs": {"Loop": {"$ref": "#/$defs/Loop"}}},
    {"anyOf": [{"type": "object", "properties": {}}, True]},
    {"type": "array", "items": True},
]


@pytest.mark.parametrize("schema", ANYTHING, ids=repr)
def test_schema_that_allows_anything_allows_every_field(schema: dict[str, Any]) -> None:
    assert RecordFields(schema).schemas_at(("any", 0, "field")) is None
    nested = {"type": "object", "properties": {"a": schema}, "$defs": schema.get("$defs", {})}
    assert RecordFields(nested).schemas_at(("a", "any", "field")) is None


def test_item_of_a_value_that_is_no_list() -> None:
    assert get_member(frozenset(["x"]), 0) == "x"
    assert get_member("text", 0) is None


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((None, "null"), (True, "boolean"), (1.5, "number"), ("a", "string")),
        *(([], "array"), ((), "array"), ({}, "object")),
    ],
)
def test_json_types(value: object, name: str) -> None:
    assert json_type_of(value) == name


def test_selection_of_a_record_that_is_no_object() -> None:
    assert compile_selection("owner.name", OPEN)(3) == 3
