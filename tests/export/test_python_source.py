"""Literals, docstrings and calls evaluate to the values that they were written from."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tooli.export.python_source import (
    MAX_LINE_LENGTH,
    call_source,
    class_name,
    docstring,
    identifier,
    string_literal,
    value_literal,
)

DIFFICULT_TEXTS = (
    "",
    "plain",
    'say "it"',
    "it's",
    "both ' and \"",
    '"""',
    "'''",
    'ends in "',
    "ends in \\",
    "back\\slash",
    "{braces} %s $dollar",
    "new\nline\r\ttab",
    "\0\x07\x7f\x9f",
    "\u2028 \u202e turned",
    "half \ud800",
    "ünïcode 😀 שלום",
    "word " * 60,
    "unbreakable" * 20,
    "\n\n\n",
    " leading and trailing ",
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("value", DIFFICULT_TEXTS)
def test_string_round_trip(value: str) -> None:
    assert ast.literal_eval(string_literal(value)) == value
    assert "\n" not in string_literal(value)
    assert (
        ast.literal_eval(value_literal(value, depth=3, columns_before=20).replace("\n", " "))
        == value
    )


@pytest.mark.parametrize("value", DIFFICULT_TEXTS)
def test_docstring_round_trip(value: str) -> None:
    space: dict[str, Any] = {}
    source = f"def f():\n{docstring(value, '    ')}\n\n\nclass C:\n{docstring(value, '    ')}\n"
    exec(compile(source, "module.py", "exec"), space)
    expected = [line.rstrip().expandtabs() for line in value.strip().split("\n")]
    expected = [line.replace("\ud800", "?") for line in expected]
    for definition in (space["f"], space["C"]):
        assert inspect.cleandoc(definition.__doc__).split("\n") == expected


@settings(max_examples=300)
@given(JSON)
def test_value_round_trip(value: Any) -> None:
    source = value_literal(value, depth=2, columns_before=30)
    assert ast.literal_eval(source.strip()) == value


@settings(max_examples=100)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_long_strings_are_broken_into_lines(value: str) -> None:
    words = value.replace("\n", " ").split(" ")
    if max(map(len, map(string_literal, words)), default=0) < 60:
        assert all(
            len(line) <= MAX_LINE_LENGTH
            for line in value_literal(value, depth=2, columns_before=30).splitlines()
        )


def test_names_become_valid_identifiers() -> None:
    assert identifier("class") == "class_"
    assert identifier("match") == "match_"
    assert identifier("2fa") == "_2fa"
    assert identifier("a-b.c") == "a_b_c"
    assert identifier("list", {"list"}) == "list_"
    assert identifier("") == "__"
    assert class_name("find_files", "result") == "FindFilesResult"
    assert class_name("", "") == "Value"


def test_output_is_formatted(tmp_path: Path) -> None:
    values: list[Any] = [
        *DIFFICULT_TEXTS,
        list(DIFFICULT_TEXTS),
        dict(zip(DIFFICULT_TEXTS, DIFFICULT_TEXTS, strict=True)),
        [[], {}, [[1]]],
    ]
    values += [{"a": {"b": [{"c": value}]}} for value in DIFFICULT_TEXTS]
    printable = [value for value in values if "\\ud800" not in json.dumps(value)]
    lines = [
        f"x{i} = {value_literal(value, columns_before=6)}" for i, value in enumerate(printable)
    ]
    lines += [
        f"y{i} = {call_source('f', value, key=value, columns_before=6)}"
        for i, value in enumerate(printable)
    ]
    functions = [
        f"def f{i}():\n{docstring(v, '    ')}" for i, v in enumerate(DIFFICULT_TEXTS) if v.strip()
    ]
    file = tmp_path / "module.py"
    source = "\n".join(lines) + "\n\n\n" + "\n\n\n".join(functions) + "\n"
    file.write_text(source, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache"]
    done = subprocess.run(
        [*ruff, "--line-length", "100", "--diff", file], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
