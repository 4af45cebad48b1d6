"""Estimate the number of tokens in a text."""

from __future__ import annotations

BYTES_PER_TOKEN = 3
"""Assumed bytes per token. Real tokenizers average more, so estimates tend to be too high."""


def estimate_tokens(text: str) -> int:
    """Return an estimate of the number of tokens in a text. It tends to be too high."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
