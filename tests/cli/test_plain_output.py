"""Plain output for grep, awk and xargs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tooli
from tooli.cli.plain_output import MAX_COLUMNS, plain_lines, summarize, write_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(["\x1b[31m", "a\nb", "\0", "\ud800"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUES: st.SearchStrategy[object] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)

SHAPES: list[tuple[object, str]] = [
    (None, ""),
    ([], ""),
    ({}, ""),
    (3, "3\n"),
    (1.5, "1.5\n"),
    (True, "true\n"),
    ("", "\n"),
    ("[red]a\n\tb\x1b", "[red]a\n\tb\x1b\n"),
    ("a file's content\n", "a file's content\n"),
    (["a", 1, None, False], "a\n1\n\nfalse\n"),
    (["two\nlines", "a\tb"], "two\\nlines\na\\tb\n"),
    ([[1, "a"], [2, "b"]], "1\ta\n2\tb\n"),
    ([[], {}], "\n\n"),
    ({"name": "tooli", "tags": ["x", "y"]}, 'name\ttooli\ntags\t["x","y"]\n'),
    ({"a\tb": {"c": None}}, 'a\\tb\t{"c":null}\n'),
]


def format_plain(value: object, end: str = "\n") -> str:
    pieces: list[str] = []
    write_plain(value, pieces.append, end=end)
    return "".join(pieces)


@pytest.mark.parametrize(("value", "expected"), SHAPES)
def test_plain_lines(value: object, expected: str) -> None:
    assert format_plain(value) == expected


def test_later_keys_get_new_columns() -> None:
    records = [{"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 5}, "bare"]
    assert format_plain(records) == "1\t2\n\t3\t4\n5\t\t\nbare\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\r\n", "\\r\\n"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x00\x07\x7f\x85", "\\x00\\x07\\x7f\\x85"),
        ("\u2028", "\\u2028"),
        ("not-utf8-\udcff", "not-utf8-\\xff"),
        ("\ud800", "\\ud800"),
        ("C:\\new", "C:\\new"),
        ("日本 שלום 👨‍👩‍👧", "日本 שלום 👨‍👩‍👧"),
    ],
)
def test_line_breaks_are_escaped(text: str, shown: str) -> None:
    assert format_plain([{"a": text}]) == shown + "\n"


def test_nested_cells_are_json_even_with_control_characters() -> None:
    inner = {"text": "a\n\x1b\x7f\x85\u2028é"}
    line = format_plain([{"cell": inner}])
    assert line.count("\n") == 1
    assert line.rstrip("\n").isprintable()
    assert json.loads(line) == inner


def test_print0_escapes_separators_only() -> None:
    assert format_plain(["two\nlines\t\x1b", "a\0b"], end="\0") == "two\nlines\t\x1b\0a\\x00b\0"
    assert format_plain([{"a": "x\ty\nz", "b": 1}], end="\0") == "x\\ty\nz\t1\0"
    assert format_plain("text\n", end="\0") == "text\n\0"


def test_records_are_streamed() -> None:
    events: list[str] = []

    def records() -> Iterator[dict[str, int]]:
        for number in range(3):
            events.append(f"made {number}")
            yield {"n": number}

    write_plain(records(), lambda line: events.append(f"wrote {line.strip()}"))
    assert events == ["made 0", "wrote 0", "made 1", "wrote 1", "made 2", "wrote 2"]


@given(st.lists(VALUES, max_size=6))
def test_one_record_is_one_line(records: list[object]) -> None:
    output = format_plain(records)
    assert output.count("\n") == len(output.splitlines()) == len(records)
    assert "\x1b" not in output
    output.encode()


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_one_field_is_one_line_with_one_tab(record: dict[str, object]) -> None:
    lines = list(plain_lines(record))
    assert len(lines) == len(record)
    assert all(line.count("\t") == 1 for line in lines)


@given(st.lists(VALUES, max_size=6))
def test_one_record_is_one_nul(records: list[object]) -> None:
    assert format_plain(records, end="\0").count("\0") == len(records)


@given(st.text())
def test_text_is_not_changed(text: str) -> None:
    assert format_plain(text).removesuffix("\n") == text.removesuffix("\n")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, 2], "1, 2"),
        ([True, None, ""], 'yes, –, ""'),
        ({"x": 1, "y": {"z": 1}, "l": [1, 2]}, "x: 1, y: 1 field, l: 2 items"),
        ([{"a": 1}], "1 item"),
        (["a" * 30, "b" * 30, "c"], "a" * 30 + ", +2 more"),
        (["a" * 50], "a" * 39 + "…"),
        ([], "none"),
    ],
)
def test_summarize_shortens_lists_and_records(value: object, expected: str) -> None:
    assert summarize(value) == expected


def test_plain_output_loads_no_heavy_module() -> None:
    code = (
        "import sys; from tooli.cli.plain_output import write_plain\n"
        "write_plain([{'a': 1, 'b': 'x'}], sys.stdout.write)\n"
        "sys.exit(any(name in sys.modules for name in ('rich', 'json', 're', 'typing')))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(str(tooli.__file__)).parents[1])},
    )
    assert (done.returncode, done.stdout) == (0, "1\tx\n"), done.stderr


def test_number_of_columns_is_limited() -> None:
    """No value is dropped: those without a column are in one cell."""
    lines = list(plain_lines([{f"k{i}": i} for i in range(MAX_COLUMNS + 5)]))
    assert [line.count("\t") for line in lines[-6:]] == [MAX_COLUMNS - 1] + [MAX_COLUMNS] * 5
    assert lines[-1].endswith('\t{"k1004":1004}')
    wide = {f"k{i}": i for i in range(MAX_COLUMNS + 2)}
    (line,) = plain_lines([wide])
    assert line.endswith('\t999\t{"k1000":1000,"k1001":1001}')
