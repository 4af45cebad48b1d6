"""The estimate of tokens: by bytes, rounded up."""

from __future__ import annotations

import pytest

from tooli.text.tokens import BYTES_PER_TOKEN, estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("äöü", 2), ("\udc80", 1)]
)
def test_estimate(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_estimate_is_linear() -> None:
    assert estimate_tokens("x" * BYTES_PER_TOKEN * 1000) == 1000
