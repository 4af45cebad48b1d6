"""The number of examples that generated tests run. `make test` runs fewer than `make test-full`."""

from __future__ import annotations

import os

FULL = os.environ.get("TOOLI_TEST_FULL") == "1"
DIVISOR = 4
"""`make test` runs this fraction of the examples: one in four."""


def example_count(count: int) -> int:
    """Return `count` in `make test-full`, and a quarter of it in `make test`."""
    return count if FULL else max(1, count // DIVISOR)
