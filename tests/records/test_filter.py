"""The filter language: what it keeps, what it refuses, and that it cannot be led astray."""

from __future__ import annotations

import dataclasses
import enum
from datetime import date
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.records.field_paths import ExpressionError, RecordFields, format_path, parse_path
from tooli.records.filter import COMPARISONS, compile_filter
from tooli.records.select import compile_selection

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
PERSON = {"type": "object", "properties": {"name": TEXT, "age": NUMBER}}
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "size": NUMBER,
            "name": TEXT,
            "tags": {"type": "array", "items": TEXT},
            "owner": {"anyOf": [{"$ref": "#/$defs/Person"}, {"type": "null"}]},
            "kind": {"enum": ["file", "folder"]},
            "done": {"type": "boolean"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
            "more": {"type": "object", "additionalProperties": True},
            "counts": {"type": "object", "additionalProperties": NUMBER},
            "any": {},
        },
    },
    "$defs": {"Person": PERSON},
}
FIELDS, OPEN = RecordFields(SCHEMA), RecordFields(None)
RECORDS: list[dict[str, Any]] = [
    {
        "size": 1,
        "name": "a",
        "tags": ["x", "y"],
        "owner": {"name": "ada", "age": 36},
        "kind": "file",
        "done": True,
        "kids": [{"name": "k1", "age": 1}, {"name": "k2", "age": 12}],
        "more": {"deep": {"er": 1}},
        "counts": {"a": 1},
        "any": "1",
    },
    {"size": 20, "name": "b", "tags": [], "owner": None, "kind": "folder", "done": False},
    {"size": 3, "name": 'say "hi"', "tags": ["y"], "kids": [], "any": 1},
]


def kept(text: str, fields: RecordFields = FIELDS) -> list[int]:
    test = compile_filter(text, fields)
    return [i for i, record in enumerate(RECORDS) if test(record)]


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
def test_it_keeps(text: str, expected: list[int]) -> None:
    assert kept(text) == expected
    assert kept(text, OPEN) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sze > 1", "There is no field 'sze'; did you mean 'size'?"),
        ("owner.nam == 'x'", "There is no field 'owner.nam'; did you mean 'name'?"),
        ("name.x == 'x'", "There is no field 'name.x': there are no fields below it"),
        ("kids[0].nme == 'x'", "There is no field 'kids[0].nme'; did you mean 'name'?"),
        ("size[0] == 1", "There is no field 'size[0]'"),
        ("size == 'x'", "'size' is a number: it can never be 'x'"),
        ("size > 'x'", "'size' is a number: it can never be > 'x'"),
        ("size == true", "'size' is a number: it can never be true"),
        ("name in ['a', 1]", "'name' is a string: it can never be 1"),
        ("kind == 'fil'", "'kind' can never be 'fil'; did you mean 'file'?"),
        ("kind == 'zebra'", "it is one of file, folder"),
        ("size contains 'x'", "'size' is a number: contains can never hold"),
        ("name contains 3", "'name' contains takes text, not 3"),
        ("name startswith 3", "'name' startswith takes text, not 3"),
        ("owner.age == 'x'", "'owner.age' is a number"),
        ("counts.a == 'x'", "'counts.a' is a number"),
        ("done > true", "only numbers and text have an order"),
        ("name", "'name' is no boolean"),
        ("name contain 'a'", "did you mean 'contains'?"),
        ("", "needs a field or a value where it ends"),
        ("size >", "needs a field or a value where it ends"),
        ("(size > 1", "needs a closing parenthesis"),
        ("size > 1)", "where there is ')'"),
        ("size > 1 done", "needs and, or, or a comparison"),
        ("size ! 3", "has '!' where it cannot stand"),
        ("name == 'a", "a quote that is never closed"),
        ("size == 3x", "'3x', which is no number"),
        ("size in 3", "needs a list"),
        ("size in [1", "needs a comma or ]"),
        ("size in [name]", "needs a value"),
        ("3", "3 alone"),
        ("3 == 4", "name a field"),
        ("'a' contains name", "has its field on the left"),
        ("size not == 3", "write not in front"),
        ("name..x == 1", "is no field"),
        ("(" * 60 + "done" + ")" * 60, "nested deeper"),
    ],
)
def test_it_refuses(text: str, says: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        compile_filter(text, FIELDS)
    assert says in refused.value.message


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    color: Color
    day: date


class Model(pydantic.BaseModel):
    x: int
    other: str = pydantic.Field("o", alias="otherName")


def test_records_of_any_class_are_compared_as_json_has_them() -> None:
    point = Point(3, Color.RED, date(2024, 2, 29))
    for text in ("x == 3", "color == 'red'", "day > '2024-01-01'", "x in [1, 3]"):
        assert compile_filter(text, OPEN)(point), text
    model = Model(x=3)
    assert compile_filter("otherName == 'o' and x == 3", OPEN)(model)
    assert not compile_filter("other == 'o'", OPEN)(model)


def test_plain_values_are_named_by_a_dot() -> None:
    numbers = RecordFields({"type": "array", "items": NUMBER})
    assert [n for n in range(5) if compile_filter(". > 2", numbers)(n)] == [3, 4]
    with pytest.raises(ExpressionError):
        compile_filter("x > 2", numbers)


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_is_refused(text: str) -> None:
    try:
        test = compile_filter(text, OPEN)
    except ExpressionError:
        return
    for record in (*RECORDS, None, 3, "x", [1], {"a": {"b": [1]}}):
        assert test(record) in (True, False)


NAMES = st.sampled_from(["size", "name", "done", "tags", "owner.age", "nothing", "."])
VALUES = st.one_of(st.integers(-5, 30), st.booleans(), st.none(), st.sampled_from(["a", "b", "y"]))


@given(NAMES, st.sampled_from(COMPARISONS), VALUES)
def test_no_comparison_breaks_on_any_record(name: str, word: str, value: Any) -> None:
    said = {None: "null", True: "true", False: "false"}.get(value, repr(value))
    said = f"[{said}]" if word == "in" else said
    try:
        test = compile_filter(f"{name} {word} {said}", OPEN)
    except ExpressionError:
        return
    for record in (*RECORDS, None, 3, "x", [], {"size": {}}, {"name": float("nan")}):
        test(record)


@given(st.lists(st.one_of(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.integers(0, 9))))
def test_a_path_is_read_as_it_is_written(steps: list[str | int]) -> None:
    path = ("a", *steps)
    assert parse_path(format_path(path)) == path


# ------------------------------------------------------------------ selections


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
def test_it_selects(text: str, expected: dict[str, Any]) -> None:
    shown = compile_selection(text, FIELDS)(RECORDS[0])
    assert shown == expected
    assert list(shown) == list(expected)


def test_what_a_record_does_not_have_is_left_out() -> None:
    assert compile_selection("name, kids, owner.name", FIELDS)(RECORDS[1]) == {
        "name": "b",
        "owner": None,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nme", "did you mean 'name'?"),
        ("owner.nme", "did you mean 'name'?"),
        ("name,", "A field is missing"),
        ("name size", "is no field"),
        ("name as", "is no field"),
        ("name as size, size", "'size' is selected twice"),
        ("size, name as size", "'size' is selected twice"),
        (".", "is no field"),
        ("tags[x]", "is no field"),
    ],
)
def test_a_selection_that_does_not_fit_is_refused(text: str, says: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        compile_selection(text, FIELDS)
    assert says in refused.value.message


def test_selections_take_any_class() -> None:
    point = Point(3, Color.RED, date(2024, 2, 29))
    assert compile_selection("x, color as c", OPEN)(point) == {"x": 3, "c": "red"}
    assert compile_selection("otherName", OPEN)(Model(x=3)) == {"otherName": "o"}
    assert compile_selection("x", OPEN)(3) == 3
