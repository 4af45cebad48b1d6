"""Long texts are encoded and searched with pydantic-core."""

from __future__ import annotations

import json
import subprocess
import sys

import pydantic_core
import pytest

from tooli.core._hot_tables import INJECTION_MARKERS
from tooli.text.long_texts import CONTROL_ESCAPES, contains_any, encode_long_text, load_core

WORDS = (*INJECTION_MARKERS, "a.b", "x|y", "ü", "\\", "^$", "[z")


@pytest.mark.parametrize("word", WORDS, ids=ascii)
def test_each_word_is_found_and_nothing_else(word: str) -> None:
    for text in (f"some {word} text", f"ü {word}", f"\ud800{word}", word):
        assert contains_any(text, (word,), pydantic_core)
        assert contains_any(text, ("%%", word), pydantic_core)
    assert not contains_any("q0 ß\ud800", (word,), pydantic_core)
    assert contains_any(f"ß {word}".encode(), (word,), pydantic_core)


@pytest.mark.parametrize("escape", CONTROL_ESCAPES)
def test_escapes_are_found(escape: str) -> None:
    assert contains_any(f"x{escape}", CONTROL_ESCAPES, pydantic_core)
    assert not contains_any('x\\n\\t\\r\\"', CONTROL_ESCAPES, pydantic_core)


@pytest.mark.parametrize("text", ["", "plain", 'a"b\\c\n\x00\x7f', "ü ☃ 𝄞"], ids=ascii)
def test_text_is_encoded(text: str) -> None:
    data = encode_long_text(text, pydantic_core)
    assert data is not None
    assert json.loads(data) == text


def test_lone_surrogate_is_left_to_the_converter() -> None:
    assert encode_long_text("\ud800", pydantic_core) is None


def test_module_is_imported_only_if_allowed() -> None:
    code = (
        "import sys; from tooli.text.long_texts import load_core;"
        "print(load_core(False) is None, 'pydantic_core' in sys.modules, bool(load_core(True)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "True"]
    assert load_core(may_import=False) is pydantic_core
