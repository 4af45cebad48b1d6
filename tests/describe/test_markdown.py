"""Markdown that a parser reads as intended, whatever the text contains."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from tooli.describe import markdown


@pytest.mark.parametrize("text", ["a", "`a`", "a``b", "`", "a | b", "<b>"])
def test_code_round_trip(text: str) -> None:
    (span,) = MarkdownIt().parseInline(markdown.code(text))[0].children or ()
    assert (span.type, span.content) == ("code_inline", text)


@pytest.mark.parametrize("lines", [["a"], ["```", "b"], ["````", "~~~"], [""]])
def test_fence_round_trip(lines: list[str]) -> None:
    (block,) = MarkdownIt().parse(markdown.fence(lines, "sh"))
    assert (block.info, block.content) == ("sh", "\n".join(lines) + "\n")


@pytest.mark.parametrize("block", ["```\nopen", "~~~sh\nopen", "a\n````\n```", "```\nclosed\n```"])
def test_open_fences_are_closed(block: str) -> None:
    tokens = MarkdownIt().parse(markdown.join_blocks(block, "# Next"))
    assert tokens[-3].type == "heading_open"


def test_empty_blocks_are_left_out() -> None:
    assert markdown.join_blocks("a", "", ["b", " "], "\nc\n") == "a\n\nb\n\nc\n"


def test_sentence_is_one_line_and_ends_with_a_full_stop() -> None:
    assert markdown.sentence("one\n  two") == "one two."
    assert markdown.sentence("done!") == "done!"
    assert markdown.sentence("") == ""


def test_table_escapes_bars() -> None:
    table = markdown.table(["a", "b"], [["x|y", "z"]])
    assert table == "| a | b |\n| --- | --- |\n| x\\|y | z |"
