"""Corrected filters and selections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.records.expression_repair import repair_filter, repair_selection
from tooli.records.fields import ExpressionError, RecordFields
from tooli.records.filter import compile_filter

FIELDS = RecordFields(
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "name": {"type": "string"},
                "day": {"type": "string"},
                "big": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "owner": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
        },
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = Ada L", 'name = "Ada L"'),
        ("name == n1", 'name == "n1"'),
        ("day >= 2026-01-02 and id > 3", 'day >= "2026-01-02" and id > 3'),
        ("nme == 'x' && big", "name == 'x' and big"),
        ("owner.nam == 'x' || not big", "owner.name == 'x' or not big"),
        ("name == 'x' AND big", "name == 'x' and big"),
        ('name == "n1', 'name == "n1"'),
        ("tags contains new", 'tags contains "new"'),
        ('name = Ada "L', None),
        ("(name = a) or (name = b c)", '(name = "a") or (name = "b c")'),
        ("name = it\\s", 'name = "it\\\\s"'),
        ("size >", None),
        ("id > 2 big", None),
        ("id = x", None),
        ("<filter>", None),
        ("", None),
        ("id > 3", None),
    ],
)
def test_filter_is_repaired(text: str, expected: str | None) -> None:
    assert repair_filter(text, FIELDS) == expected


@given(st.text("abidnme.=<>!()[]&|'\"\\\\ 0-", max_size=30))
def test_repaired_filter_is_valid(text: str) -> None:
    repaired = repair_filter(text, FIELDS)
    if repaired is not None:
        compile_filter(repaired, FIELDS)
        assert repaired != text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,nme", "id,name"),
        ("zzz,id", "id"),
        ("zzz", None),
        ("owner.nam as who,id", "owner.name as who,id"),
        ("id,,name", "id,name"),
        ("id as x,name as x", "id as x"),
    ],
)
def test_selection_is_repaired(text: str, expected: str | None) -> None:
    assert repair_selection(text, FIELDS) == expected


def test_unknown_field_has_the_closest_path() -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_filter("owner.nam == 'x'", FIELDS)
    assert caught.value.suggested_path == "owner.name"
