"""Descriptions of calls: every part is visible, and no value imitates a line."""

from __future__ import annotations

import collections
import datetime
import enum
import os
from typing import Any
from unittest.mock import Mock

import pydantic
import pytest

from tooli.policy.call_display import _Describer, escape_value, format_lines, shorten_value


class TestFormatLines:
    def test_long_values_are_truncated(self) -> None:
        lines = format_lines({"paths": [str(n) for n in range(100)], "text": "x" * 500}, {"a": []})
        assert len(lines) == 32
        assert any(" more lines; SHA-256 " in line for line in lines)
        assert lines[-1] == "    a: []"

    def test_nested_values_are_indented(self) -> None:
        assert format_lines({"a": {"b": [1, {"c": None}], "\x1b": "\x07"}}, "just so") == [
            "  a:",
            "    b:",
            "      - 1",
            "      -",
            "        c: null",
            '    "\\u001b": "\\u0007"',
            "  plan:",
            '    "just so"',
        ]

    def test_files_are_listed_before_the_plan(self) -> None:
        files = [{"path": "/a\x1b", "bytes": 3}]
        assert format_lines({}, {"b": 1}, folder="/w\u202e", files=files) == [
            "  in the folder /w\\u202e",
            "  files:",
            "    -",
            '      path: "/a\\u001b"',
            "      bytes: 3",
            "  plan:",
            "    b: 1",
        ]

    def test_plan_does_not_repeat_the_call(self) -> None:
        plan = {
            "tool": "shop.clear",
            "arguments": {"a": 1},
            "effects": ["destructive"],
            "basis": "dry_run",
            "state": "exact",
            "actions": [{"action": "remove", "target": "b", "state": "1f"}],
        }
        assert format_lines({"a": 1}, plan) == [
            "  a: 1",
            "  plan:",
            "    actions:",
            "      -",
            '        action: "remove"',
            '        target: "b"',
        ]

    def test_brief_plan_has_a_line_for_each_action_and_no_digests(self) -> None:
        actions = [
            {"action": "remove", "target": "b\x1b", "details": {"size": 3}},
            {"action": "x y", "target": 3},
            {"kind": "move", "target": "c"},
        ]
        assert format_lines({}, {"actions": actions}, is_brief=True) == [
            "  plan:",
            '    - remove "b\\u001b", details: {"size":3}',
            '    - "x y" 3',
            '    - kind: "move", target: "c"',
        ]
        many = [{"action": "remove", "target": f"f{i}"} for i in range(100)]
        lines = format_lines({}, {"actions": many}, is_brief=True)
        assert lines[-1].endswith("more lines; --dry-run shows the whole plan")

    def test_plan_of_the_function_is_shown_whole(self) -> None:
        assert "    tool: 1" in format_lines({}, {"tool": 1})


@pytest.mark.parametrize("columns", [20, 80])
def test_value_cannot_begin_a_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(os, "get_terminal_size", Mock(return_value=size))
    hostile = "prod" + " " * 60 + 'target: "test"' + "語" * 200
    lines = format_lines({"target": hostile, "o": {hostile: 1}}, hostile, 400, folder=hostile)
    width = max(columns, 41)
    for line in lines:
        assert sum(1 if char.isascii() else 2 for char in line) < width
        assert not line.lstrip().startswith('target: "test"')
    starts = [line.split()[0] for line in lines if not line.lstrip().startswith("┆")]
    assert starts == ["in", "target:", "o:", '"prod', "plan:", '"prod']


def test_unusual_keys_are_quoted() -> None:
    assert format_lines({"a-b": 1, "x: 1": 2, "": 3, "a\nb": 4}, None) == [
        "  a-b: 1",
        '  "x: 1": 2',
        '  "": 3',
        '  "a\\nb": 4',
    ]


def test_escaped_keys_stay_separate() -> None:
    value = {"bob\u200b": 1, "bob\\u200b": 2}
    assert escape_value(value) == {"bob\\u200b": 1, "bob\\u200b_": 2}


class _Named(enum.Enum):
    ONE = "first"


class _Count(int):
    """A number with an attribute."""


class _Slotted:
    __slots__ = ("size",)


class _Failing(dict[str, int]):
    def __iter__(self) -> Any:
        raise ValueError

    def __getattribute__(self, name: str) -> Any:
        raise ValueError


class _Folder(os.PathLike[str]):
    def __fspath__(self) -> str:
        return "/data"


class _Plain:
    """An object without attributes."""


def _make_count() -> _Count:
    count = _Count(3)
    count.unit = "m"  # type: ignore[attr-defined]
    return count


def _make_cycle() -> list[Any]:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    return cycle


def _make_slotted() -> _Slotted:
    slotted = _Slotted()
    slotted.size = 2
    return slotted


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("inf"), "inf"),
        (b"\x00a", r"bytes b'\x00a'"),
        (1 + 2j, "(1+2j)"),
        (_Named.ONE, "first"),
        (_make_count(), {"content": 3, "attributes": {"unit": "m"}}),
        (_make_cycle(), [1, "<contains itself>"]),
        (_make_slotted(), {"size": 2}),
        ({3, 1, 2}, [1, 2, 3]),
        (collections.deque([1, 2]), [1, 2]),
        (datetime.datetime(2024, 10, 27, 2, fold=1), "2024-10-27T02:00:00 (the second time)"),
        (int, "<int>"),
        (iter([1]), "<list_iterator>"),
        (pydantic.SecretStr("hidden"), "***"),
        (pydantic.RootModel[list[int]]([1]), [1]),
        (_Folder(), {"attributes": {}, "path": "/data"}),
        (_Plain(), "<_Plain>"),
        (_Failing(), "<_Failing, not shown>"),
        ({1: "a", "1": "b"}, [{"key": 1, "value": "a"}, {"key": "1", "value": "b"}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_description_of_a_value(value: Any, shown: Any) -> None:
    assert _Describer().describe(value) == shown


def test_extra_fields_of_a_model_are_described() -> None:
    class Order(pydantic.BaseModel, extra="allow"):
        amount: int = pydantic.Field(exclude=True)

    assert _Describer().describe(Order.model_validate({"amount": 5, "note": "x"})) == {
        "attributes": {"amount": 5},
        "extra fields": {"note": "x"},
    }


def test_long_parts_are_cut_one_by_one() -> None:
    value = {"a" * 2000: 1, "b": list(range(300)), **{str(n): n for n in range(300)}}
    short = shorten_value(value)
    assert len(short) == 201
    assert "100 more" in short["b"][-1]
    assert "102 more" in short["…"]
    assert "2000 characters" in next(iter(short))
