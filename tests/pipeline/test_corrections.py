"""Corrections of one part of an argument."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.pipeline.corrections import correct_part, describe_option_advice
from tooli.schema import RawText
from tooli.schema.pydantic_messages import UnknownField


def correct(value: Any, path: str, suggested: object = None, is_missing: bool = False) -> Any:
    found = correct_part("order", value, path.split("."), suggested, is_missing)
    return (list(found.texts), found.dotted) if isinstance(found, RawText) else found


@pytest.mark.parametrize(
    ("value", "path", "suggested", "expected"),
    [
        ({"sku": "a", "count": 100}, "count", 99, {"sku": "a", "count": 99}),
        ({"sku": "a", "count": "x"}, "count", None, {"sku": "a", "count": "<count>"}),
        ({"items": [{"n": "x"}]}, "items.0.n", 3, {"items": [{"n": 3}]}),
        (["a", 5], "1", None, ["a", "<order>"]),
        ({"a": 1, "gfit": True}, "gfit", UnknownField("gift"), {"a": 1, "gift": True}),
        ({"a": 1, "zzz": True}, "zzz", UnknownField(None), {"a": 1}),
        ({"a": 1, "gfit": 1, "gift": 2}, "gfit", UnknownField("gift"), {"a": 1, "gift": 2}),
    ],
)
def test_other_parts_of_a_json_value_are_kept(value, path, suggested, expected) -> None:
    before = str(value)
    assert correct(value, path, suggested) == expected
    assert str(value) == before


@pytest.mark.parametrize("path", ["int", "sku.x", "items.7", "items.x", "Circle.radius"])
def test_part_that_does_not_exist_is_not_corrected(path: str) -> None:
    """The location of an error in a union contains the name of a type."""
    assert correct({"sku": "a", "items": [1]}, path) is None


def test_missing_field_is_added() -> None:
    assert correct({"sku": "a"}, "count", is_missing=True) == {"sku": "a", "count": "<count>"}


@pytest.mark.parametrize(
    ("raw", "path", "suggested", "expected"),
    [
        (RawText(['{"sku":"ä"}']), "sku", 5, (['{"sku":5}'], None)),
        (RawText(["{}"]), "sku", None, None),
        (RawText(["{"]), "sku", None, None),
        (RawText(['{"n":1}', '{"n":2}']), "1.n", 5, (['{"n":1}', '{"n":5}'], None)),
        (RawText(['[{"n":1}]']), "0.n", 5, (['[{"n":5}]'], None)),
        (RawText(['{"n":1}']), "3.n", 5, None),
        (RawText(["@order.json"]), "count", 9, (["@order.json"], {"count": ["9"]})),
        (RawText(["sku=a"]), "count", None, (["sku=a"], {"count": ["<count>"]})),
        (RawText(["@order.json"]), "gfit", UnknownField("gift"), None),
        (RawText(["@order.json"]), "items.0", None, None),
        (
            RawText([], None, {"count": ["x"], "sku": ["a"]}),
            "count",
            None,
            ([], {"sku": ["a"], "count": ["<count>"]}),
        ),
        (
            RawText([], None, {"gfit": ["yes"]}),
            "gfit",
            UnknownField("gift"),
            ([], {"gift": ["yes"]}),
        ),
        (RawText([], None, {"zzz": ["yes"]}), "zzz", UnknownField(None), ([], {})),
        (
            RawText([], None, {"a": ["1"], "my-adr.street.no": ["2"], "my-adr.zip": ["3"]}),
            "my_adr",
            UnknownField("address"),
            ([], {"a": ["1"], "address.street.no": ["2"], "address.zip": ["3"]}),
        ),
        (
            RawText([], None, {"a": ["1"], "adr.street": ["2"]}),
            "adr",
            UnknownField(None),
            ([], {"a": ["1"]}),
        ),
        (RawText([], None, {"a-b": ["x"]}), "a_b", None, ([], {"a_b": ["<a_b>"]})),
        (RawText(["a=1", "gft=yes"]), "gft", UnknownField("gift"), (["a=1", "gift=yes"], None)),
        (RawText(["a=1", "zzz=yes"]), "zzz", UnknownField(None), (["a=1"], None)),
        (RawText(["a=1", "count=x"]), "count", None, (["a=1", "count=<count>"], None)),
    ],
)
def test_text_of_a_command_line_is_corrected(raw, path, suggested, expected) -> None:
    assert correct(raw, path, suggested) == expected


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("There is no option -h; use --help", "Use --help."),
        ("There is no option --jsn; did you mean --json?", "Use --json."),
        ("There is no option --zzz", "There is no option --zzz."),
    ],
)
def test_advice_does_not_repeat_the_problem(message: str, advice: str) -> None:
    assert describe_option_advice(message) == advice
