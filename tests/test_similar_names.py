"""The known name that is closest to a misspelled one."""

from __future__ import annotations

import pytest

from tooli.similar_names import closest_match


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("patern", "pattern"),
        ("pattren", "pattern"),
        ("PATTERN", "pattern"),
        ("pattern", "pattern"),
        ("roots", "root"),
        ("rot", "root"),
        ("qq", None),
        ("zzzzzz", None),
        ("", None),
        ("x" * 100, None),
    ],
)
def test_closest_match_corrects_a_misspelled_word(word: str, expected: str | None) -> None:
    assert closest_match(word, ["pattern", "root", "depth"]) == expected


def test_exact_match_is_the_closest() -> None:
    assert closest_match("cat", ["cart", "cat", "bat"]) == "cat"


def test_long_words_must_be_equal() -> None:
    assert closest_match("y" * 80, ["y" * 80]) == "y" * 80
    assert closest_match("y" * 80, ["y" * 79 + "z"]) is None


def test_no_match_without_candidates() -> None:
    assert closest_match("a", []) is None
