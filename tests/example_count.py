"""The number of generated examples: fewer in `make test`, all of them in `make test-full`."""

from __future__ import annotations

import os

FULL = os.environ.get("TOOLI_TEST_FULL") == "1"
SHARE = 4
"""`make test` runs one example in this many."""


def example_count(count: int) -> int:
    """Return the number of examples to run, of `count` in `make test-full`."""
    return count if FULL else max(1, count // SHARE)
