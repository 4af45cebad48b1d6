"""Control and invisible characters in a text of one line."""

from __future__ import annotations

import pytest

from tooli.text.escapes import escape_invisible, escape_text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("/home/me/a b", "/home/me/a b"),
        ("/home/zoë/日本", "/home/zoë/日本"),
        ("a\nb\r\t", "a\\nb\\r\\t"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202e\u200b", "\\u202e\\u200b"),
        ("a\ufe0f\u3164\U000e0100", "a\\ufe0f\\u3164\\U000e0100"),
        ("\udcff", "\\udcff"),
    ],
)
def test_invisible_characters(text: str, escaped: str) -> None:
    assert escape_text(text) == escaped


def test_only_invisible_characters_outside_of_ascii_are_escaped() -> None:
    assert escape_invisible("a\n\x1b") == "a\n\x1b"
    assert escape_invisible("é\u202e\u200b\x9b") == "é\\u202e\\u200b\\x9b"
    assert escape_invisible("👩\u200d💻") == "👩\u200d💻"
