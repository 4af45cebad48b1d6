"""Estimate the number of tokens in a text."""

from __future__ import annotations

BYTES_PER_TOKEN = 3
"""Real tokenizers average more bytes per token, so that estimates are rather too high."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has; rather too many than too few."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
