"""Patterns of JSON Schemas, searched in a limited time."""

from __future__ import annotations

import re
import sys
from math import inf

import pytest

from tooli.schema import pattern_search
from tooli.schema.pattern_search import MAX_STEPS, PatternTimeout, count_steps, has_match

PASSWORD = r"^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)[A-Za-z\d]{8,}$"
HOST = r"^(?!-)(?:[a-z0-9-]{1,63}\.)+[a-z]{2,}$"
HOSTILE = r"^(a+)+$(?!x)"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^[A-Z]{3}-\d+$", "ABC-12", True),
        (r"^[A-Z]{3}-\d+$", "ABC-12\n", False),
        (r"b", "abc", True),
        (r"^\p{Lu}", "Éa", True),
        (r"^a", "\ud800", False),
        (r"[[a]b", "[b", True),  # pydantic's engine reads this as one class
        (r"(a)\1", "xaa", True),
        (r"(a)\1", "xa", False),
        (PASSWORD, "Abcdefg1", True),
        (PASSWORD, "abcdefg1", False),
        (HOST, "www.example.com", True),
        (HOST, "-www.example.com", False),
        (r"(a|b|cd)*+(?!x)e" if sys.version_info >= (3, 11) else r"(?!x)e", "abe", True),
        (r"(?>a+)b(?!c)" if sys.version_info >= (3, 11) else r"a+b(?!c)", "aab", True),
        (r"(a)?(?(1)b|c)(?!d)", "ab", True),
        (r"(?=\d{2})\d{2}", "a12", True),
    ],
)
def test_search(pattern: str, text: str, expected: bool) -> None:
    assert has_match(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*", r"\p{Nope}"])
def test_invalid_pattern(pattern: str) -> None:
    with pytest.raises(re.error):
        has_match(pattern, "a")


def test_long_search_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_search, "MAX_SECONDS", 0.2)
    with pytest.raises(PatternTimeout):
        has_match(HOSTILE, "a" * 60 + "b")
    assert has_match("^(a+)+$", "a" * 100_000 + "b") is False


def test_search_that_cannot_wait() -> None:
    with pytest.raises(PatternTimeout):
        has_match(HOST, "www.example.com", can_wait=False)
    assert has_match(PASSWORD, "Abcdefg1", can_wait=False)


def test_without_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(PatternTimeout):
        has_match(HOST, "www.example.com")


def test_failure_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_search, "_SEARCH", "raise SystemExit(9)")
    with pytest.raises(PatternTimeout):
        has_match(HOST, "www.example.com")


@pytest.mark.parametrize(
    "pattern",
    [
        HOSTILE,
        r"(?=x)(a|ab|b)*c",
        r"(?=x)(a*)*",
        r"(?=x)((a|b)c|(a|b)d)*",
        r"(?=x)(a?){30}a{30}",
        r"(?=x)x*x*x*x*x*y",
        r"(\w+)\1+(?!y)",
    ],
)
def test_steps_of_a_slow_pattern(pattern: str) -> None:
    assert count_steps(pattern, 1000) > MAX_STEPS


@pytest.mark.parametrize("pattern", [PASSWORD, r"^(?!\.\.).+$", r"(?:ab)+(?!c)", r"(?=a)b|c"])
def test_steps_of_a_fast_pattern(pattern: str) -> None:
    assert count_steps(pattern, 100) < MAX_STEPS


def test_steps_are_never_a_number_that_is_too_large() -> None:
    assert count_steps("(?=x)" + "(" * 40 + "a" + "{0,9})" * 40, 10_000) == inf
