"""Sanitizing removes everything unsafe, keeps the rest, and is idempotent."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tooli.text.sanitize import NOTHING_REMOVED, RemovedCounts, is_clean, sanitize

ALLOWED = "\t\n\r"
FORBIDDEN = frozenset(
    (
        *range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x180E, 0x200B, 0x200E, 0x200F,
        *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC),
        *range(0xE0000, 0xE1000),
    )
) - {9, 10, 13}  # fmt: skip
JOINED = frozenset((0x200C, 0x200D, *range(0xFE00, 0xFE10)))
REMOVABLE = "".join(map(chr, [*sorted(FORBIDDEN)[:90], *sorted(JOINED), 0xE0041, 0xE0100, 0xE007F]))
PIECES = st.lists(
    st.one_of(
        st.text(max_size=4),
        st.text(REMOVABLE, max_size=4),
        st.sampled_from(
            [
                "\x1b",
                "\x1b[",
                "\x1b]",
                "\x1bP",
                "\x1b\\",
                "\x9b",
                "\x9d",
                "\x9c",
                "\x07",
                "31m",
                ";;",
            ]
        ),
        st.text("\x1b[]PX^_\\;0m@ \x07\x18\x9b\x9c\x9d\x90\n", max_size=6),
        st.sampled_from(["\U0001f3f4", "\u200d", "\ufe0f", "\U000e0067\U000e0062", "\U000e007f"]),
    ),
    max_size=30,
).map("".join)
ENGLAND = "\U0001f3f4" + "".join([chr(0xE0000 + ord(letter)) for letter in "gbeng"]) + "\U000e007f"


def codes(text: str) -> set[int]:
    return set(map(ord, text))


@settings(max_examples=400, deadline=None)
@given(PIECES, st.booleans())
def test_sanitized_text_is_clean(text: str, strict: bool) -> None:
    clean, removed = sanitize(text, strict)
    left = codes(clean.replace(ENGLAND, "") if not strict else clean)
    assert not left & FORBIDDEN
    assert not (strict and left & JOINED)
    assert sanitize(clean, strict) == (clean, NOTHING_REMOVED)
    assert bool(removed) == (clean != text)
    rest = iter(text)
    assert all(char in rest for char in clean), "the order is kept"
    assert not is_clean(text, strict) or clean == text


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(blacklist_categories=["Cc", "Cf", "Cs"]), max_size=60))
def test_ordinary_text_is_not_changed(text: str) -> None:
    ordinary = "".join([char for char in text if ord(char) not in FORBIDDEN | JOINED])
    assert sanitize(ordinary) == sanitize(ordinary, True) == (ordinary, NOTHING_REMOVED)


def test_random_strings_are_sanitized_completely() -> None:
    """The strings are sanitized as one text. A sample of them is also sanitized one by one."""
    rng = random.Random(7)
    letters = [
        *map(chr, sorted(FORBIDDEN)[:130]), *"ab \n\t[]PX^_\\;31mé日", "\x1b", "\x9b",
        *map(chr, JOINED), *map(chr, rng.sample(sorted(FORBIDDEN), 200)),
        *map(chr, rng.sample(range(0xA0, 0xD800), 300)), "\U0001f468", "\U0001f3f4",
    ]  # fmt: skip
    for strict in (False, True):
        for _ in range(10):
            picked = rng.choices(letters, k=200_000)
            lines = ["".join(picked[at : at + 4]) for at in range(0, 200_000, 4)]
            whole = "\n".join(lines)
            clean, _ = sanitize(whole, strict)
            assert not codes(clean) & FORBIDDEN
            assert not strict or not codes(clean) & JOINED
            assert sanitize(clean, strict) == (clean, NOTHING_REMOVED)
            for line in rng.sample(lines, 500):
                assert not codes(sanitize(line, strict)[0]) & FORBIDDEN


@pytest.mark.parametrize(
    "text",
    [
        "👨‍👩‍👧‍👦 🏳️‍🌈 ❤️‍🔥 👩🏽‍🚀",
        "🇩🇪 🇯🇵 🇧🇷",
        "1️⃣ #️⃣ *️⃣",
        f"{ENGLAND} goal",
        "می‌خواهم کتاب‌ها را بخوانم",
        "क्‍ष श्री र्‍य হিন্দি ক্‌ষ",
        "naïve café – “quoted” … €5 \u00a0 日本語　テキスト",
        "a\tb\r\nc\n",
        "葛 ☃︎ ☃️",
        "",
    ],
)
def test_languages_and_emoji_are_kept(text: str) -> None:
    assert sanitize(text) == (text, NOTHING_REMOVED)


def test_strict_removes_joiners_and_selectors() -> None:
    assert sanitize("👨‍👩‍👧", True) == ("👨👩👧", RemovedCounts(invisible=2))
    assert sanitize("می‌خواهم", True)[0] == "میخواهم"
    assert sanitize(ENGLAND, True) == ("\U0001f3f4", RemovedCounts(invisible=6))


@pytest.mark.parametrize(
    ("text", "clean", "removed"),
    [
        ("\x1b[31mred\x1b[0m", "red", RemovedCounts(2)),
        ("\x9b31mred\x9b0m", "red", RemovedCounts(2)),
        ("\x1b]8;;https://x.example\x07link\x1b]8;;\x1b\\!", "link!", RemovedCounts(2)),
        ("\x1b]52;c;aGFjaw==\x07ok", "ok", RemovedCounts(1)),
        ("\x9d52;c;aGFjaw==\x9cok", "ok", RemovedCounts(1)),
        ("\x1bP1$r\nq\x07m\x1b\\ok", "ok", RemovedCounts(1)),
        ("\x90q\x9cok \x98x\x9cok \x9ex\x9cok \x9fx\x9cok", "ok ok ok ok", RemovedCounts(4)),
        ("\x1bXa\x1b\\b\x1b^c\x1b\\d\x1b_e\x1b\\f", "bdf", RemovedCounts(3)),
        ("\x1b(Bok\x1b#8\x1bc", "ok", RemovedCounts(3)),
        ("a\x1b", "a", RemovedCounts(1)),
        ("a\x1b[", "a", RemovedCounts(1)),
        ("a\x1b[12;", "a", RemovedCounts(1)),
        ("a\x1b]0;title without end\nb", "a\nb", RemovedCounts(1)),
        ("a\x1bPno end\nb", "a\nb", RemovedCounts(1)),
        ("a\x1b]0;cut short\x1b[1mb", "ab", RemovedCounts(2)),
        ("a\x1b]0;given up\x18b", "ab", RemovedCounts(1)),
        ("bell\x07 back\x08 del\x7f nel\x85", "bell back del nel", RemovedCounts(0, 4)),
        ("a\u00adb \u202eevil\u202c z\u200bw \u2066i\u2069", "ab evil zw i", RemovedCounts(0, 0, 6)),  # noqa: E501
        ("tags\U000e0041\U000e0042 vs\U000e0101", "tags vs", RemovedCounts(0, 0, 3)),
        ("\x1b\u200b[31m", "[31m", RemovedCounts(1, 0, 1)),
        ("rows a\u200d\u200c\u200db\ufe0f\ufe0e\u200d", "rows a\u200db\ufe0f", RemovedCounts(0, 0, 4)),  # noqa: E501
        ("a\u200d\u200b\u200db", "a\u200db", RemovedCounts(0, 0, 2)),
    ],
)  # fmt: skip
def test_removed_characters_are_counted_by_kind(
    text: str, clean: str, removed: RemovedCounts
) -> None:
    assert sanitize(text) == (clean, removed)


SANITIZE_PROGRAM = """
import sys
from tooli.text.sanitize import sanitize
from tooli.text.patterns import find_injection, redact_credentials

for piece in eval(sys.argv[1]):
    text = piece * (600_000 // len(piece))
    for strict in (False, True):
        sanitize(text, strict)
        sanitize(text + "\\x07", strict)
    redact_credentials(text)
    find_injection(text)
print("done")
"""
REPEATED_TEXTS = [
    "\x1b", "\x1b[", "\x1b[0;", "\x1b]", "\x1b]a\n", "\x1bP", "\x1bPa\n", "\x9d", "\x9b", "\x90x",
    "\x1b ", "\u200d", "\ufe0f\u200d", "\U0001f3f4\U000e0067", "a\u200b", "\x1b]8;;\x07", "\n", "-",
    "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJaaaaaaaaa.", "://a:", "sk-", "ghp_a", "ignore all ",
    "![", "![a](http://x?", "<|", "Bearer a", "AccountKey=a", "SG.aaaaaaaaaaaaaaaaaaaa.",
    "0123456789", "instruction", "_call</", "from now on ", "\x9d\n", "\x90\n", "\x98a\n", "\x9f\r",
]  # fmt: skip


def test_time_is_linear() -> None:
    """The texts would take days with a backtracking pattern."""
    done = subprocess.run(
        [sys.executable, "-c", SANITIZE_PROGRAM, repr(REPEATED_TEXTS)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
