"""The estimate of tokens, compared with the tokenizer o200k."""

from __future__ import annotations

import base64
import inspect
import json
import random
import string
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rs_bpe import openai

from tooli.text import token_estimate
from tooli.text.token_estimate import estimate_tokens

TOKENIZER = openai.o200k_base()
DOCS = Path(__file__).parents[2] / "docs"

Make = Callable[[random.Random], str]


def letters(alphabet: str, count: int = 3000) -> Make:
    return lambda rng: "".join(rng.choices(alphabet, k=count))


def characters(first: int, last: int, count: int = 1000) -> Make:
    return lambda rng: "".join([chr(rng.randint(first, last)) for _ in range(count)])


def rows(make: Callable[[random.Random], object], count: int = 200) -> Make:
    """Return a maker of compact JSON: a list of random values."""
    return lambda rng: json.dumps([make(rng) for _ in range(count)], separators=(",", ":"))


def words(alphabet: str) -> Make:
    return lambda rng: " ".join(
        ["".join(rng.choices(alphabet, k=rng.randint(1, 12))) for _ in range(500)]
    )


def syllables(rng: random.Random) -> str:
    return " ".join(
        [
            "".join([rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(size)])
            for size in rng.choices((1, 2, 3, 4), k=500)
        ]
    )


def code(rng: random.Random) -> str:
    sources = [inspect.getsource(module) for module in (inspect, random, json, base64, uuid)]
    lines = "".join(sources).splitlines(keepends=True)
    start = rng.randrange(len(lines) - 200)
    return "".join(lines[start : start + 200])


def timestamp(rng: random.Random) -> str:
    return f"20{rng.randrange(99):02}-11-{rng.randint(10, 30)}T09:{rng.random()}Z"


KINDS: dict[str, Make] = {
    "floats": rows(lambda rng: rng.random()),
    "short floats": rows(lambda rng: round(rng.uniform(-1e3, 1e3), rng.randrange(8))),
    "exponents": rows(lambda rng: rng.random() * 10.0 ** rng.randint(-40, 40)),
    "integers": rows(lambda rng: rng.randrange(10 ** rng.randint(1, 18))),
    "uuids": rows(lambda rng: str(uuid.UUID(int=rng.getrandbits(128)))),
    "addresses": rows(lambda rng: ".".join([str(rng.randrange(256)) for _ in range(4)])),
    "times": rows(timestamp),
    "base64": lambda rng: base64.b64encode(rng.randbytes(2000)).decode(),
    "base64url": lambda rng: base64.urlsafe_b64encode(rng.randbytes(2000)).decode(),
    "base32": lambda rng: base64.b32encode(rng.randbytes(2000)).decode(),
    "base85": lambda rng: base64.b85encode(rng.randbytes(2000)).decode(),
    "hex": lambda rng: rng.randbytes(1500).hex(),
    "capital hex": lambda rng: rng.randbytes(1500).hex().upper(),
    "lower case": letters(string.ascii_lowercase),
    "upper case": letters(string.ascii_uppercase),
    "letters and digits": letters(string.ascii_letters + string.digits),
    "ids": rows(lambda rng: "".join(rng.choices("bcdfghjkmnpqrstvwxz23456789", k=20))),
    "punctuation": letters(string.punctuation),
    "printable": letters(string.printable),
    "space": letters(" \n\t\r"),
    "words of random letters": words(string.ascii_lowercase),
    "words of syllables": syllables,
    "code": code,
    "code in JSON": lambda rng: json.dumps(code(rng)),
    "escapes": lambda rng: json.dumps(characters(0x20, 0x2FFF, 300)(rng)),
    "Chinese, Japanese": characters(0x4E00, 0x9FFF),
    "rare CJK": characters(0x3400, 0x4DBF),
    "rarer CJK": characters(0x20000, 0x2A6DF),
    "Hangul": characters(0xAC00, 0xD7A3),
    "kana": characters(0x3041, 0x30FE),
    "Thai": characters(0xE01, 0xE3A),
    "Hindi": characters(0x905, 0x939),
    "Cyrillic": characters(0x430, 0x44F),
    "Greek": characters(0x3B1, 0x3C9),
    "Arabic": characters(0x621, 0x64A),
    "Hebrew": characters(0x5D0, 0x5EA),
    "Latin": characters(0xC0, 0x24F),
    "emoji": characters(0x1F300, 0x1F9FF),
    "symbols": characters(0x2190, 0x2BFF),
    "any character": characters(0x80, 0xD7FF),
    "unassigned characters": characters(0x10000, 0x10FFFF),
}


@settings(max_examples=8, deadline=None)
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
def test_estimate_is_not_below_the_real_number(kind: str, seed: int) -> None:
    text = KINDS[kind](random.Random(seed))
    assert TOKENIZER.count(text) <= estimate_tokens(text) <= len(text.encode())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=5), st.integers(0, 2**32))
def test_estimate_of_mixed_text_is_not_below_the_real_number(kinds: list[str], seed: int) -> None:
    rng = random.Random(seed)
    text = " ".join([KINDS[kind](rng)[: rng.randint(200, 900)] for kind in kinds])
    assert TOKENIZER.count(text) <= estimate_tokens(text)


def prose_of(page: Path) -> str:
    lines = [line for line in page.read_text("utf-8").splitlines() if line[:1].isalpha()]
    return "\n".join([line for line in lines if "`" not in line])


PAGES = [page for page in sorted(DOCS.glob("*.md")) if len(prose_of(page)) > 2000]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_estimate_of_english_prose_is_near_the_real_number(page: Path) -> None:
    prose = prose_of(page)
    real, estimate = TOKENIZER.count(prose), estimate_tokens(prose)
    assert 0.6 * estimate <= real <= estimate


def test_many_pages_are_compared() -> None:
    assert len(PAGES) > 10


def test_listed_words_and_punctuation_are_single_tokens() -> None:
    assert [w for w in token_estimate._WORDS if TOKENIZER.count(f" {w}") != 1] == []
    assert [p for p in token_estimate._PUNCTUATION_TOKENS if TOKENIZER.count(p) != 1] == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("1234", 2), (" 1", 2), ("the text", 2), ("\udc80", 3), ("--------", 1)],
)
def test_estimate_of_small_texts(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_costs_are_not_kept_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_estimate, "_MAX_COSTS", 10)
    for i in range(30):
        estimate_tokens(f"w{'x' * i}")
    assert len(token_estimate._costs) <= 11
