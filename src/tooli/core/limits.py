"""Timeouts and rate limits as text: parse and check them."""

from __future__ import annotations

MAX_TIMEOUT_SECONDS = 10_000_000.0
_RATE_UNITS = ("second", "minute", "hour", "day")
_MAX_RATE_CALLS = 10_000  # in one window; the limiter stores each call

RATE_LIMIT_FORMAT = (
    f"a number of calls per {', '.join(_RATE_UNITS[:-1])} or {_RATE_UNITS[-1]}, "
    f"such as '60/minute', at most {_MAX_RATE_CALLS}"
)
"""Description of a valid rate limit, for messages with "must be"."""


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


def is_rate_limit(value: object) -> bool:
    """True if the value is a rate limit such as "60/minute"."""
    count, _, unit = value.partition("/") if isinstance(value, str) else ("", "", "")
    is_valid_count = count.isascii() and count.isdigit() and len(count) <= 5 and count[0] != "0"
    return is_valid_count and int(count) <= _MAX_RATE_CALLS and unit in _RATE_UNITS
