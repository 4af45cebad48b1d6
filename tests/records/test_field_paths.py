"""Field paths: text and back, values at a path, schemas at a path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.sample_records import FIELDS, OPEN, RECORDS, Color, Point

from tooli.records.field_paths import (
    ExpressionError,
    MultipleValues,
    allowed_values,
    build_getter,
    format_path,
    json_types,
    parse_path,
)


@given(st.lists(st.one_of(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.integers(0, 9))))
def test_a_path_survives_formatting(steps: list[str | int]) -> None:
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
def test_the_value_at_a_path(path: str, value: object) -> None:
    assert build_getter(parse_path(path))(RECORDS[0]) == value


def test_values_are_json_types() -> None:
    from datetime import date

    point = Point(3, Color.RED, date(2024, 2, 29))
    assert [build_getter((name,))(point) for name in ("x", "color", "day")] == [
        3,
        "red",
        "2024-02-29",
    ]


def test_schemas_at_a_path() -> None:
    assert json_types(FIELDS.schemas_at(("size",))) == {"number"}
    assert json_types(FIELDS.schemas_at(("owner",))) == {"object", "null"}
    assert json_types(FIELDS.schemas_at(("more", "deep"))) is None
    assert allowed_values(FIELDS.schemas_at(("kind",))) == ["file", "folder"]
    assert allowed_values(FIELDS.schemas_at(("name",))) is None
    assert OPEN.schemas_at(("anything",)) is None
    with pytest.raises(ExpressionError) as raised:
        FIELDS.schemas_at(("owner", "nam"))
    assert raised.value.suggested_value == "name"
