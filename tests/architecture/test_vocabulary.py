"""The repository uses common technical terms; vocabulary.txt lists words to avoid."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
VOCABULARY = Path(__file__).parent / "vocabulary.txt"
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".html", ".mjs", ".yaml", ".json"}
SEARCHED = ("src", "tests", "docs", "examples", "benchmarks")
UNCHECKED = (
    "tests/detect/dumps.json",
    "tests/detect/callers.json",
    "tests/integration/conformance/conformance_app.py",
    "CHANGELOG.md",
)
"""Files that are not checked: data of other programs, and names of the conformance suite."""
PRODUCT_NAMES = ("OpenHands", "CrewAI", "CREWAI")


def banned_words() -> list[str]:
    """Return the words of vocabulary.txt."""
    lines = VOCABULARY.read_text(encoding="utf-8").splitlines()
    return [line.partition(":")[0] for line in lines if line and not line.startswith("#")]


def searched_files() -> list[Path]:
    """Return tracked text files, or all text files without git."""
    listed = subprocess.run(
        ["git", "ls-files", *SEARCHED, "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listed.stdout.split() if listed.returncode == 0 else []
    found = [ROOT / name for name in names] or [
        path for folder in SEARCHED for path in (ROOT / folder).rglob("*")
    ]
    return [
        path
        for path in found
        if path.suffix in TEXT_SUFFIXES
        and path.is_file()
        and path not in (VOCABULARY, Path(__file__))
        and path.relative_to(ROOT).as_posix() not in UNCHECKED
    ]


def find_words(text: str, words: list[str]) -> set[str]:
    """Return the banned words in a text, as words or as parts of identifiers."""
    for name in PRODUCT_NAMES:
        text = text.replace(name, "")
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)
    return {part.lower() for part in parts} & set(words)


def test_no_banned_word_is_used() -> None:
    words = banned_words()
    found = {
        path.relative_to(ROOT).as_posix(): sorted(hits)
        for path in searched_files()
        if (hits := find_words(path.read_text(encoding="utf-8"), words))
    }
    assert not found


def test_parts_of_identifiers_are_found() -> None:
    words = ["house", "door"]
    assert find_words("self._house = HttpDoor()", words) == {"house", "door"}
    assert find_words("warehouse, outdoors, DOORBELL", words) == set()
