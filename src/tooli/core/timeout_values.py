"""Read a time limit in seconds."""

from __future__ import annotations

MAX_TIMEOUT_SECONDS = 10_000_000.0


def parse_timeout(value: object) -> float | None:
    """Return a timeout in seconds from a number or its text; None if it is not a valid timeout."""
    if isinstance(value, str):
        digits = value.replace(".", "", 1)
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 15:
            return None
        seconds = float(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = value
    else:
        return None
    return float(seconds) if 0 < seconds <= MAX_TIMEOUT_SECONDS else None
