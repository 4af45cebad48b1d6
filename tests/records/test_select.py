"""The selection language: selected fields, new names, errors."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.records.sample_records import FIELDS, OPEN, RECORDS, Color, Model, Point

from tooli.records.field_paths import ExpressionError
from tooli.records.select import compile_selection


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
def test_selected_fields(text: str, expected: dict[str, Any]) -> None:
    shown = compile_selection(text, FIELDS)(RECORDS[0])
    assert shown == expected
    assert list(shown) == list(expected)


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
    ],
)
def test_invalid_selections(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_selection(text, FIELDS)
    assert message in raised.value.message


def test_selections_take_any_class() -> None:
    point = Point(3, Color.RED, date(2024, 2, 29))
    assert compile_selection("x, color as c", OPEN)(point) == {"x": 3, "c": "red"}
    assert compile_selection("otherName", OPEN)(Model(x=3)) == {"otherName": "o"}
    assert compile_selection("x", OPEN)(3) == 3
