"""Descriptions of calls: every part is visible, and no value imitates a line."""

from __future__ import annotations

import os
from unittest.mock import Mock

import pytest

from tooli.policy.call_display import escape_value, format_lines


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
