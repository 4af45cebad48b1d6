"""Texts that match a regular expression."""

from __future__ import annotations

import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.describe.pattern_samples import matches, matching_texts


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"^[A-Z]{3}-\d+$", ["AAA-0", "AAA-00"]),
        (r"^(a|b)c{2,3}$", ["acc", "accc"]),
        (r"^(?:x|y)?$", ["", "x"]),
        (r"^(\w)\1$", ["aa"]),
        (r"^[^a-z]$", ["A"]),
        (r"^[^\d\s]\D\S\W$", ["aaa!"]),
        (r"^[\x01-\x03]$", ["\x01"]),
        (r"^.[^a]$", ["ab"]),
        (r"^a+?(?=b)b$", ["ab", "aab"]),
        ("[", []),
        (r"^\p{L}+$", []),  # an expression of Rust
        (r"^(a{1000}){1000}$", []),  # too long
    ],
)
def test_shortest_texts(pattern: str, texts: list[str]) -> None:
    assert list(islice(matching_texts(pattern), 2)) == texts


def test_nested_repetition_is_limited() -> None:
    assert all(len(text) <= 4_000 for text in matching_texts("^((((a+)+)+)+)+$"))


def test_matches() -> None:
    assert matches("^a", "abc")
    assert not matches("^a", "b")
    assert not matches("[", "[")


PARTS = st.sampled_from(["a", r"\d", r"\w", "[x-z]", "[^a]", ".", "(?:ab|c)", r"\.", "é", r"\s"])
REPEATS = st.sampled_from(["", "?", "*", "+", "{2}", "{1,3}", "*?"])


@given(st.lists(st.tuples(PARTS, REPEATS), min_size=1, max_size=6))
def test_every_pattern_of_these_parts_has_a_text(parts: list[tuple[str, str]]) -> None:
    pattern = f"^{''.join(part + repeat for part, repeat in parts)}$"
    text = next(matching_texts(pattern))
    assert re.search(pattern, text)
