"""Test ids that are the same in every process: no addresses, no order of sets."""

from __future__ import annotations

import re


def shown(value: object) -> str:
    """A value as a test id."""
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", ascii(value))[:100]
