"""roff for man pages: every character is shown as it is written."""

from __future__ import annotations

import pytest

from tooli.describe import roff


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a-b", r"a\-b"),
        ("\\n", r"\(rsn"),
        ("'a' \"b\"", r"\(aqa\(aq \(dqb\(dq"),
        ("`^~", r"\(ga\(ha\(ti"),
        ("é日😀", r"\[u00E9]\[u65E5]\[u1F600]"),
        (" a\n\tb\x00\x1b ", "a b"),
        ("\ud800", r"\[uFFFD]"),
        ("a\u00a0b", "a b"),
    ],
)
def test_special_characters_are_escaped(text: str, written: str) -> None:
    assert roff.escape(text) == written


def test_long_words_may_be_broken() -> None:
    assert roff.escape("x" * 30) == "x" * 24 + "\\:" + "x" * 6
    assert "\\:" not in roff.name_line("n" * 70, "y" * 60)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (".TH", r"\&.TH"),
        ("say `--x` or ``y``", r"say \fB\-\-x\fR or \fBy\fR"),
        ("`x`", r"\fBx\fR"),
        ("one ` alone", r"one \(ga alone"),
        ("a `` b", r"a \(ga\(ga b"),
        ("", ""),
    ],
)
def test_prose_is_escaped_and_code_is_bold(text: str, written: str) -> None:
    assert roff.prose(text).split() == written.split()


def test_code_blocks_lists_and_headings() -> None:
    text = (
        "One\ntwo.\n\n    .code\n      deep\n\n- a\n  b\n* c\n\n"
        "```py\nx = '-'\n\n```\n# Head\n\n```\n```"
    )
    assert roff.render_text(text) == [
        "One two.",
        *('.IP "" 4', ".EX", "\\&.code", "\\&  deep", ".EE"),
        *(".IP \\[u2022] 2", "a b", ".IP \\[u2022] 2", "c"),
        *('.IP "" 4', ".EX", "x = \\(aq\\-\\(aq", "\\&", ".EE"),
        *(".PP", "Head"),
    ]
    assert roff.render_text("") == []
    assert roff.render_text("* \x00\n\n-") == ["\\-"]


def test_tagged_items_examples_and_headings() -> None:
    assert roff.tagged_item(roff.bold("--x"), "", "text") == [".TP", "\\fB\\-\\-x\\fR", "text"]
    assert roff.tagged_item("x") == [".TP", "x", "\\&"]
    assert roff.example_block([" a", ""]) == ['.IP "" 4', ".EX", "\\& a", "\\&", ".EE"]
    assert roff.heading("see also") == '.SH "SEE ALSO"'
