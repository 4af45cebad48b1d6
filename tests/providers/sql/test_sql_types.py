from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tooli.providers.sql.sql_types import (
    TYPE_NAMES,
    TYPES,
    Parameter,
    ParameterCheck,
    database_value,
)

UUID = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("kind", "value", "in_sqlite", "in_postgres"),
    [
        ("text", "ü'", "ü'", "ü'"),
        ("int", 5, 5, "5"),
        ("int", 5.0, 5, "5"),
        ("int", -(2**63), -(2**63), str(-(2**63))),
        ("float", 5, 5.0, "5.0"),
        ("bool", True, 1, "true"),
        ("bool", False, 0, "false"),
        ("date", "2026-01-31", "2026-01-31", "2026-01-31"),
        ("datetime", "2026-01-31T10:00+02:00", "2026-01-31 08:00:00", "2026-01-31T10:00:00+02:00"),
        ("datetime", "2026-01-31T10:00:00Z", "2026-01-31 10:00:00", "2026-01-31T10:00:00+00:00"),
        ("timestamp", "2026-01-31 10:00:00", "2026-01-31 10:00:00", "2026-01-31T10:00:00"),
        ("time", "10:00:00", "10:00:00", "10:00:00"),
        ("uuid", UUID.upper(), UUID, UUID),
        ("decimal", "1.50", 1.5, "1.50"),
        ("decimal", "3.00", 3, "3.00"),
        ("bytes", "/wA=", b"\xff\x00", "\\xff00"),
        ("json", {"a": [1, None]}, '{"a": [1, null]}', '{"a": [1, null]}'),
        ("json", None, None, None),
        ("any", None, None, None),
        ("any", 1.5, 1.5, "1.5"),
        ("any", True, 1, "true"),
        ("any", 7, 7, "7"),
        ("any", "x", "x", "x"),
    ],
)  # fmt: skip
def test_values(kind: str, value: Any, in_sqlite: Any, in_postgres: Any) -> None:
    parameter = Parameter("p", kind)
    assert database_value(parameter, value, is_postgres=False) == in_sqlite
    assert database_value(parameter, value, is_postgres=True) == in_postgres


@pytest.mark.parametrize(
    ("kind", "values", "in_sqlite", "in_postgres"),
    [
        ("int", [1, 2], "[1, 2]", ["1", "2"]),
        ("text", ["a", "ü"], '["a", "ü"]', ["a", "ü"]),
        ("date", ["2026-01-31"], '["2026-01-31"]', ["2026-01-31"]),
        ("json", [{"a": 1}, None], '[{"a": 1},null]', ['{"a": 1}', "null"]),
        ("text", [], "[]", []),
    ],
)
def test_lists(kind: str, values: Any, in_sqlite: Any, in_postgres: Any) -> None:
    parameter = Parameter("p", kind, is_list=True)
    assert database_value(parameter, values, is_postgres=False) == in_sqlite
    assert database_value(parameter, values, is_postgres=True) == in_postgres


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *[(kind, None) for kind in TYPES if kind not in ("any", "json")],
        *(("text", 5), ("text", "a\0b"), ("text", "\ud800"), ("int", "5"), ("int", 2**63)),
        *(("int", True), ("int", 1.5), ("int", 1e300), ("float", "1"), ("float", True)),
        *(("float", float("nan")), ("float", float("inf")), ("float", 10**400), ("bool", 1)),
        *(("bool", "true"), ("date", "2026-02-30"), ("date", "x"), ("date", 5), ("datetime", "")),
        *(("timestamp", "2026-01-31T10:00:00+02:00"), ("time", "25:00"), ("uuid", "x")),
        *(("decimal", "x"), ("decimal", "NaN"), ("decimal", "Infinity"), ("decimal", "")),
        *(("bytes", "x"), ("bytes", "ü"), ("json", "a\0b"), ("any", [1]), ("any", "a\0")),
        *(("any", 2**64), ("any", float("inf"))),
    ],
)
def test_wrong_values(kind: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        Parameter("p", kind).convert(value)


def test_wrong_lists_and_choices() -> None:
    numbers = Parameter("p", "int", is_list=True)
    for value in (5, "5", ["x"], [None], None):
        with pytest.raises(ValueError, match=r"^must "):
            numbers.convert(value)
    choice = Parameter("p", "text", choices=("a", "b"))
    assert choice.convert("a") == "a"
    with pytest.raises(ValueError, match="one of a, b"):
        choice.convert("c")


def test_schemas() -> None:
    assert Parameter("p", "int").schema() == {"type": "integer"}
    assert Parameter("p", "int", is_list=True).schema() == {
        "type": "array",
        "items": {"type": "integer"},
    }
    optional = Parameter("p", "date", nullable=True, description="A day.")
    assert optional.schema() == {
        "type": ["string", "null"],
        "format": "date",
        "description": "A day.",
    }
    choice = Parameter("p", "text", choices=("a", "b"), default="a", is_list=True)
    assert choice.schema()["items"]["enum"] == ["a", "b"]
    assert not optional.required and not choice.required and Parameter("p", "int").required
    assert Parameter("p", "json", nullable=True).schema() == {}
    assert set(TYPE_NAMES.values()) == set(TYPES)


def test_the_check_knows_the_names_of_a_transform() -> None:
    parameters = (Parameter("from_day", "date"), Parameter("n", "int"))
    schema = {"properties": {"from_day": {}, "n": {}}}
    plain = ParameterCheck(parameters, schema, "tool")
    check = plain.with_names({"day": "from_day"}, {"n": "x"}, ("n",))
    for copied in (check, pickle.loads(pickle.dumps(check)), copy.deepcopy(check)):
        problems = list(copied.find_problems({"day": "x"}, ()))
        assert [(code, field) for code, field, _ in problems] == [("E1003", "day"), ("E1003", "n")]
        assert problems[0][2].startswith("'day' must be a date")
        assert copied.hidden == {"n", "from_day"}
    assert list(check.find_problems({"day": "x"}, ("day", "n"))) == []
