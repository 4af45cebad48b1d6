"""Test ids that are the same in every process, as pytest-xdist requires."""

from __future__ import annotations

import re


def stable_id(value: object) -> str:
    """Return a test id for a value, without memory addresses. The items of a set are sorted."""
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", ascii(value))[:100]
