"""The filter language: matching records, and errors of invalid filters."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.sample_records import FIELDS, NUMBER, OPEN, RECORDS, Color, Model, Point

from tooli.records.fields import ExpressionError, RecordFields
from tooli.records.filter import COMPARISONS, compile_filter


def matching_indices(text: str, fields: RecordFields = FIELDS) -> list[int]:
    matches = compile_filter(text, fields)
    return [i for i, record in enumerate(RECORDS) if matches(record)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size > 1", [1, 2]),
        ("size >= 3 and size <= 20", [1, 2]),
        ("1 < size", [1, 2]),
        ("size == 1.0", [0]),
        ("size=1", [0]),
        ("size != 1", [1, 2]),
        ("size in [1, 3]", [0, 2]),
        ("size not in (1, 3)", [1]),
        ("size in []", []),
        ("name == 'a' or name == \"b\"", [0, 1]),
        ("name == 'say \"hi\"'", [2]),
        ('name == "say \\"hi\\""', [2]),
        ("name contains 'hi'", [2]),
        ("name not contains 'hi'", [0, 1]),
        ("name startswith 'say' and name endswith '\"'", [2]),
        ("name < 'b'", [0]),
        ("done", [0]),
        ("not done", [1, 2]),
        ("not not done", [0]),
        ("done == false", [1]),
        ("owner == null", [1, 2]),
        ("owner.name == 'ada'", [0]),
        ("owner.age > 30 and not (kind == 'folder')", [0]),
        ("owner.name == null", [1, 2]),
        ("tags contains 'y'", [0, 2]),
        ("'x' in tags", [0]),
        ("tags[0] == 'y'", [2]),
        ("tags[-1] == 'y'", [0, 2]),
        ("kids.age > 10", [0]),
        ("kids[1].name == 'k2'", [0]),
        ("name in tags", []),
        ("kids.age == counts.a", [0, 1]),
        ("more.deep.er == 1", [0]),
        ("counts.a >= 1", [0]),
        ("any == 1", [2]),
        ("any == '1'", [0]),
        ("size > 1 or size > 0 and done", [0, 1, 2]),
        ("(size > 1 or size > 0) and done", [0]),
        ("size<5 and done", [0]),
        ("size > -1e3", [0, 1, 2]),
    ],
)
def test_filter_matches_the_expected_records(text: str, expected: list[int]) -> None:
    assert matching_indices(text) == expected
    assert matching_indices(text, OPEN) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sze > 1", "Unknown field 'sze'; did you mean 'size'?"),
        ("owner.nam == 'x'", "Unknown field 'owner.nam'; did you mean 'name'?"),
        ("name.x == 'x'", "Unknown field 'name.x': it has no fields"),
        ("kids[0].nme == 'x'", "Unknown field 'kids[0].nme'; did you mean 'name'?"),
        ("size[0] == 1", "Unknown field 'size[0]'"),
        ("size == 'x'", "'size' is a number: it can never be 'x'"),
        ("size > 'x'", "'size' is a number: it can never be > 'x'"),
        ("size == true", "'size' is a number: it can never be true"),
        ("name in ['a', 1]", "'name' is a string: it can never be 1"),
        ("kind == 'fil'", "'kind' can never be 'fil'; did you mean 'file'?"),
        ("kind == 'zebra'", "it is one of file, folder"),
        ("size contains 'x'", "'size' is a number: contains can never be true"),
        ("name contains 3", "'name' contains needs text, not 3"),
        ("name startswith 3", "'name' startswith needs text, not 3"),
        ("owner.age == 'x'", "'owner.age' is a number"),
        ("counts.a == 'x'", "'counts.a' is a number"),
        ("done > true", "only numbers and text can be ordered"),
        ("name", "'name' is not a boolean"),
        ("name contain 'a'", "did you mean 'contains'?"),
        ("", "needs a field or a value instead of the end"),
        ("size >", "needs a field or a value instead of the end"),
        ("(size > 1", "needs a closing parenthesis"),
        ("size > 1)", "instead of ')'"),
        ("size > 1 done", "needs and, or, or a comparison"),
        ("size ! 3", "Unexpected '!' in the filter"),
        ("name == 'a", "an unclosed quote"),
        ("size == 3x", "'3x' in the filter is not a number"),
        ("size in 3", "needs a list"),
        ("size in [1", "needs a comma or ]"),
        ("size in [name]", "needs a value"),
        ("3", "has 3 without a field"),
        ("3 == 4", "with another value: use a field"),
        ("'a' contains name", "needs its field on the left"),
        ("size not == 3", "write 'not' before"),
        ("name..x == 1", "is not a field"),
        ("(" * 60 + "done" + ")" * 60, "nested more than"),
        (" or ".join(["size > 1"] * 101), "more than 100 comparisons"),
    ],
)
def test_invalid_filters_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_filter(text, FIELDS)
    assert message in str(raised.value)


def test_objects_are_compared_as_json() -> None:
    point = Point(3, Color.RED, date(2024, 2, 29))
    for text in ("x == 3", "color == 'red'", "day > '2024-01-01'", "x in [1, 3]"):
        assert compile_filter(text, OPEN)(point), text
    model = Model(x=3)
    assert compile_filter("otherName == 'o' and x == 3", OPEN)(model)
    assert not compile_filter("other == 'o'", OPEN)(model)


def test_dot_in_a_filter_means_the_whole_record() -> None:
    numbers = RecordFields({"type": "array", "items": NUMBER})
    assert [n for n in range(5) if compile_filter(". > 2", numbers)(n)] == [3, 4]
    with pytest.raises(ExpressionError):
        compile_filter("x > 2", numbers)


@given(st.text(max_size=60))
def test_any_text_compiles_or_raises(text: str) -> None:
    try:
        matches = compile_filter(text, OPEN)
    except ExpressionError:
        return
    for record in (*RECORDS, None, 3, "x", [1], {"a": {"b": [1]}}):
        assert matches(record) in (True, False)


NAMES = st.sampled_from(["size", "name", "done", "tags", "owner.age", "nothing", "."])
VALUES = st.one_of(st.integers(-5, 30), st.booleans(), st.none(), st.sampled_from(["a", "b", "y"]))


@given(NAMES, st.sampled_from(COMPARISONS), VALUES)
def test_comparison_never_raises(name: str, operator: str, value: Any) -> None:
    literal = {None: "null", True: "true", False: "false"}.get(value, repr(value))
    literal = f"[{literal}]" if operator == "in" else literal
    try:
        matches = compile_filter(f"{name} {operator} {literal}", OPEN)
    except ExpressionError:
        return
    for record in (*RECORDS, None, 3, "x", [], {"size": {}}, {"name": float("nan")}):
        matches(record)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size > 0 and size < 30 and size != 1", [1, 2]),
        ("size == 1 or size == 3 or name == 'b'", [0, 1, 2]),
        ("size < owner", []),
        ("size >= done", []),
    ],
)
def test_more_comparisons(text: str, expected: list[int]) -> None:
    assert matching_indices(text, OPEN) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size == 1_000", "1_000"),
        (f"size == {'9' * 401}", "999"),
        ("size not", "in, contains, startswith or endswith"),
        (f"size == '{'x' * 100_000}'", "characters"),
    ],
    ids=["underscore", "digits", "not", "length"],
)
def test_more_invalid_filters(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        compile_filter(text, OPEN)


def test_text_without_quotes_is_explained() -> None:
    with pytest.raises(ExpressionError, match=r"text needs quotes: name == 'a\.txt'"):
        compile_filter("name == a.txt", FIELDS)
