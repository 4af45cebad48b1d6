"""Expressions are checked against the records that were seen."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.records.fields import compile_selection
from tooli.records.filter import compile_filter
from tooli.records.observed_fields import ExpressionObserver

ROWS: list[Any] = [
    {"name": "n1", "price": 1, "tags": ["a"], "owner": {"id": 7}, "gone": None, "mixed": 1},
    {"name": "n2", "price": 2.5, "tags": [], "owner": None, "big": True, "mixed": "x"},
]


def find_error(text: str, rows: list[Any] = ROWS, compile_text: Any = compile_filter) -> str:
    observer = ExpressionObserver(lambda fields: compile_text(text, fields))
    for row in rows:
        observer.observe(row)
    found = observer.find_error()
    return "" if found is None else str(found[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name == n1", "text needs quotes: name == 'n1'"),
        ("price > ten", "'price' is a number: compare it with a value"),
        ("nme == 'n1'", "Unknown field 'nme'; did you mean 'name'?"),
        ("nme != 'n1'", "Unknown field 'nme'; did you mean 'name'?"),
        ("price > 'ten'", "'price' is a number: it can never be > 'ten'"),
        ("name > 3", "'name' is a string: it can never be > 3"),
        ("name", "'name' is not a boolean: compare it with a value"),
        ("owner.idd == 7", "Unknown field 'owner.idd'; did you mean 'id'?"),
    ],
)
def test_expression_that_does_not_fit_the_records(text: str, expected: str) -> None:
    assert expected in find_error(text)


@pytest.mark.parametrize(
    "text",
    [
        *("name == 'n1'", "price > 2", "big", "tags contains 'a'", "owner.id == 7"),
        *("gone == 'x'", "gone > 3", "other == null", "other != null", "mixed == 1"),
        *("mixed == 'x'", "price == price"),
    ],
)
def test_expression_that_fits_the_records(text: str) -> None:
    assert find_error(text) == ""


def test_selection_of_fields() -> None:
    assert "did you mean 'name'?" in find_error("nme", compile_text=compile_selection)
    assert find_error("name, owner.id", compile_text=compile_selection) == ""


def test_nothing_is_known_without_records() -> None:
    assert find_error("nme == 'x'", []) == ""
    assert find_error("nme == 'x'", [{}, {}]) == ""


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_field_of_a_later_record_is_found(count: int) -> None:
    assert find_error("late == 1", [*[{"name": "a"}] * count, {"late": 1}]) == ""


def test_records_are_not_examined_once_the_expression_fits() -> None:
    observer = ExpressionObserver(lambda fields: compile_filter("a == 1", fields))
    observer.observe({"a": 1})
    assert observer.is_done
    observer.observe(object())
    assert observer.find_error() is None


def test_large_and_deep_records_may_have_any_field() -> None:
    nested: Any = {}
    for _ in range(50):
        nested = {"a": nested}
    assert find_error("a.a.a.a.a.a.a.a.a.x == 1", [nested]) == ""
    assert find_error("x == 1", [{f"k{i}": i for i in range(10_000)}]) == ""
    assert find_error("x == 1", [{f"k{i}_{j}": i for i in range(90)} for j in range(90)]) == ""
    assert find_error("tags contains 'z'", [{"tags": list(range(1000))}]) == ""


def test_records_that_are_no_objects() -> None:
    assert "can never be" in find_error(". > 3", ["a", "b"])
    assert find_error(". > 3", [1, 2]) == ""
