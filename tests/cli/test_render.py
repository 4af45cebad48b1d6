"""The exact output for a person, in narrow and in wide terminals."""

from __future__ import annotations

import io
import subprocess
import sys
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tooli.cli.render import print_error, print_result

FILES: list[dict[str, object]] = [
    {"path": "src/main.py", "size": 1204, "modified": "2026-01-03", "binary": False, "owner": None},
    {
        "path": "src/a b.py",
        "size": 98,
        "modified": "2025-12-30",
        "binary": True,
        "tags": ["a", "b"],
    },
]
PROJECT: dict[str, object] = {
    "name": "tooli",
    "private": False,
    "license": None,
    "owner": {"name": "Ada", "teams": ["core", "docs"], "at": {"city": "London", "zip": "N1"}},
    "summary": "One typed Python function becomes a fast command line.",
    "depends": [{"on": "typer", "from": 0.27}, {"on": "rich", "from": 13.8}],
    "notes": "first\nsecond",
    "extra": {},
}
MISSING: dict[str, object] = {
    "code": "E3001",
    "category": "state",
    "message": "No files matched '*.rs' in ./src",
    "field": "pattern",
    "suggestion": {
        "action": "retry_with_modified_input",
        "fix": "The directory contains .py files.",
        "example": "file-tools find-files '*.py' --root ./src",
    },
    "is_retryable": True,
    "details": {"pattern": "*.rs", "seen": [".py", ".md"]},
}
INVALID: dict[str, object] = {
    "code": "E1002",
    "message": "2 problems with the input",
    "field": "limit",
    "suggestion": {"fix": "Correct both.", "argv": ["ft", "find", "*.py", "--limit", "10"]},
    "details": {
        "errors": [
            {"field": "--limit", "message": "must be at least 1, not -3"},
            {"field": "--pattern", "message": "is required"},
        ]
    },
}


def render(value: object, width: int = 80, color: bool | None = False) -> str:
    file = io.StringIO()
    print_result(value, file=file, width=width, color=color)
    return file.getvalue()


def render_error(error: dict[str, object], width: int = 80, verbose: bool = False) -> str:
    file = io.StringIO()
    print_error(error, file=file, width=width, color=False, verbose=verbose)
    return file.getvalue()


def unindent(block: str) -> str:
    return dedent(block).removeprefix("\n")


# ── lists of records ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [80, 300])
def test_records_are_a_table(width: int) -> None:
    assert render(FILES, width) == unindent(
        """
        path         size  modified    binary  owner  tags
        ──────────────────────────────────────────────────
        src/main.py  1204  2026-01-03  no      –
        src/a b.py     98  2025-12-30  yes            a, b
        """
    )


def test_narrow_table_becomes_cards() -> None:
    assert render(FILES, 40) == unindent(
        """
        ── 1 ───────────────────────────────────
        path      src/main.py
        size      1204
        modified  2026-01-03
        binary    no
        owner     –
        ── 2 ───────────────────────────────────
        path      src/a b.py
        size      98
        modified  2025-12-30
        binary    yes
        tags      a, b
        """
    )


def test_long_text_is_wrapped_within_its_column() -> None:
    records = [{"id": 7, "title": "Crash when the terminal is resized"}, {"id": 12, "title": "Hi"}]
    assert render(records, 30) == unindent(
        """
        id  title
        ──────────────────────────────
         7  Crash when the terminal is
            resized
        12  Hi
        """
    )


def test_long_text_becomes_cards() -> None:
    records = [{"file": "a.md", "line": 3, "text": "word " * 60}]
    assert render(records, 60).splitlines()[:4] == [
        "── 1 ───────────────────────────────────",
        "file  a.md",
        "line  3",
        "text  " + "word " * 10 + "word",
    ]


def test_identifier_is_not_broken() -> None:
    uuid = "0b0cf7f2-7a4e-4e0a-9b1e-2b6c3f1f6a55"
    assert uuid in render([{"id": uuid, "name": "a name of some length"}], 50)


def test_nested_cells_are_summarized() -> None:
    records = [
        {"at": {"x": 1, "y": 2}, "files": [{"a": 1}, {"a": 2}], "tags": list("abcdefghijklmnopq")}
    ]
    assert render(records, 120) == unindent(
        """
        at          files    tags
        ──────────────────────────────────────────────────────────────────────
        x: 1, y: 2  2 items  a, b, c, d, e, f, g, h, i, j, k, l, m, n, +3 more
        """
    )


def test_numbers_are_not_formatted() -> None:
    output = render(
        [{"id": 1234567, "year": 2026, "share": 0.1}, {"id": 7, "year": None, "share": 12.5}]
    )
    assert output == unindent(
        """
             id  year  share
        ────────────────────
        1234567  2026    0.1
              7     –   12.5
        """
    )


def test_every_row_of_a_long_table_is_printed() -> None:
    assert render([{"n": n, "name": f"row {n}"} for n in range(5000)]).count("\n") == 5002


# ── other values ────────────────────────────────────────────────────────────────────────────


def test_record_with_nested_values() -> None:
    assert render(PROJECT, 40) == unindent(
        """
        name     tooli
        private  no
        license  –
        owner
        ├─ name   Ada
        ├─ teams  core, docs
        └─ at     city: London, zip: N1
        summary  One typed Python function
                 becomes a fast command line.
        depends
          on     from
          ───────────
          typer  0.27
          rich   13.8
        notes    first
                 second
        extra    none
        """
    )


def test_deep_tree_is_summarized() -> None:
    value = {"a": {"b": {"c": {"d": [1, [2]]}}, "e": 1}}
    assert render(value) == unindent(
        """
        a
        ├─ b
        │  └─ c
        │     └─ d
        │          1
        │          2
        └─ e  1
        """
    )


def test_long_name_is_above_its_value() -> None:
    assert render({"a_rather_long_name_for_this": "value", "b": 1}, 30) == unindent(
        """
        a_rather_long_name_for_this
          value
        b             1
        """
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        ([], "No results.\n"),
        ({}, "No results.\n"),
        (True, "yes\n"),
        (False, "no\n"),
        (1234567, "1234567\n"),
        (0.5, "0.5\n"),
        ("", "\n"),
        (["a.py", "b.py", 3], "a.py\nb.py\n3\n"),
        ([[1, 2], [3, 4]], "1, 2\n3, 4\n"),
        (["one\ntwo", "three"], "• one\n  two\n• three\n"),
        ([1, {"a": 1, "b": 2}], "• 1\n• a  1\n  b  2\n"),
    ],
)
def test_scalars_and_short_lists(value: object, expected: str) -> None:
    assert render(value) == expected


def test_long_item_has_a_bullet() -> None:
    assert render(["word " * 6 + "end", "b"], 24) == "• word word word word\n  word word end\n• b\n"


@pytest.mark.parametrize(
    "value", ["[red]x[/red]", ":smile:", "a  b \n\tc 12 'q' http://x.y", "x" * 500, "日本 שלום é"]
)
def test_text_is_not_changed(value: str) -> None:
    assert render(value, 40, color=True) == value + "\n"
    assert render(value + "\n", 40) == value + "\n"


def test_markup_in_cells_is_literal() -> None:
    assert "[red]x[/red] :smile:" in render([{"a": "[red]x[/red] :smile:", "b": 1}])


def test_control_characters_are_escaped() -> None:
    evil = "\x1b[31mred\x1b]0;title\x07\r\x9b\u202eabc"
    safe = "\\x1b[31mred\\x1b]0;title\\x07\\r\\x9b\\u202eabc"
    assert render(evil) == safe + "\n"
    assert safe in render([{"a": evil}], 100)
    assert safe in render({evil: [evil]}, 200)
    assert safe in render_error({"message": evil, "suggestion": {"example": evil}}, 200)


def test_wide_characters_keep_columns_aligned() -> None:
    assert render([{"name": "日本語", "n": 1}, {"name": "été", "n": 22}]) == unindent(
        """
        name     n
        ──────────
        日本語   1
        été     22
        """
    )


# ── errors ──────────────────────────────────────────────────────────────────────────────────


def test_error_with_fix_and_command() -> None:
    assert render_error({**MISSING, "field": None}) == unindent(
        """
        Error: No files matched '*.rs' in ./src  E3001
        → The directory contains .py files.
        Try: file-tools find-files '*.py' --root ./src
        """
    )


def test_command_is_never_wrapped() -> None:
    assert render_error({**MISSING, "field": None}, 34) == unindent(
        """
        Error: No files matched '*.rs' in
               ./src  E3001
        → The directory contains .py
          files.
        Try: file-tools find-files '*.py' --root ./src
        """
    )


def test_every_problem_is_listed() -> None:
    assert render_error(INVALID) == unindent(
        """
        Error: 2 problems with the input  E1002
          --limit    must be at least 1, not -3
          --pattern  is required
        → Correct both.
        Try: ft find '*.py' --limit 10
        """
    )


def test_verbose_adds_the_details() -> None:
    assert render_error(MISSING, verbose=True) == unindent(
        """
        Error: pattern: No files matched '*.rs' in ./src  E3001
        → The directory contains .py files.
        Try: file-tools find-files '*.py' --root ./src

        category      state
        field         pattern
        is_retryable  yes
        details
        ├─ pattern  *.rs
        └─ seen     .py, .md
        """
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({}, "Error: Something went wrong.\n"),
        ({"message": "Oh"}, "Error: Oh\n"),
        ({"message": "is required", "field": "limit"}, "Error: limit: is required\n"),
        ({"message": "--max-items is odd", "field": "max_items"}, "Error: --max-items is odd\n"),
        ({"message": "Oh", "suggestion": "odd", "details": [1]}, "Error: Oh\n"),
    ],
)
def test_error_without_optional_fields(error: dict[str, object], expected: str) -> None:
    assert render_error(error) == expected


# ── terminals ───────────────────────────────────────────────────────────────────────────────


def test_color_option_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert render([], color=True) == "\x1b[2mNo results.\x1b[0m\n"
    assert render([], color=None) == "No results.\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[32m" in render(True, color=None)
    assert render(True, color=False) == "yes\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert render(True, color=None) == "yes\n"
    assert render([{"a": 1}, {"a": 2}], color=None) == "a\n─\n1\n2\n"  # nothing bold or dim


def test_output_is_ascii_on_a_terminal_without_unicode() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_result({"a": {"b": None}, "c": "é→"}, file=file, width=40)
    print_error(MISSING, file=file, width=60)
    file.flush()
    assert raw.getvalue().decode().splitlines()[:4] == [
        "a",
        "`- b  -",
        "c  \\xe9>",
        "Error: patt" + ("ern: No files matched '*.rs' in ./src  E3001"),
    ]


def test_closed_pipe_raises() -> None:
    class Closed(io.StringIO):
        def write(self, s: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        print_result([1], file=Closed())


def test_rich_is_loaded_lazily() -> None:
    code = "import sys, tooli.cli.render; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ── generated values ────────────────────────────────────────────────────────────────────────

WORDS = st.sampled_from(
    [
        "",
        "a",
        "name",
        "two words",
        "x" * 70,
        "日本語" * 9,
        "\x1b[31m",
        "a\nb",
        "👨‍👩‍👧❤️",
        "שלום",
        "a\tb",
        "–" * 30,
    ]
)
TEXT = WORDS | st.text(st.characters(), max_size=60)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES: st.SearchStrategy[object] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=25,
)
RECORDS = st.lists(st.dictionaries(WORDS, VALUES, max_size=6), max_size=5)


def check_fits(output: str, width: int) -> None:
    assert "\x1b" not in output
    output.encode()
    for line in output.split("\n"):
        assert cell_len(line) <= width, line


@given(VALUES.filter(lambda value: not isinstance(value, str)) | RECORDS, st.integers(20, 300))
def test_any_value_fits_any_width(value: object, width: int) -> None:
    check_fits(render(value, width), width)


@given(st.text(st.characters()))
def test_any_text_is_safe(value: str) -> None:
    output = render(value)
    assert "\x1b" not in output
    assert all(char in "\n\t" or ord(char) >= 32 for char in output)
    output.encode()


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "code": TEXT,
            "message": TEXT,
            "field": TEXT,
            "suggestion": VALUES | st.fixed_dictionaries({"fix": TEXT}),
            "details": VALUES | st.fixed_dictionaries({"errors": RECORDS}),
        },
    ),
    st.integers(20, 300),
    st.booleans(),
)
def test_any_error_fits_any_width(error: dict[str, object], width: int, verbose: bool) -> None:
    lines = render_error(error, width, verbose).split("\n")
    check_fits("\n".join(line for line in lines if not line.startswith("Try: ")), width)
