"""What an author says about how long, how much and how dear: read and checked."""

from __future__ import annotations

from tooli.core.tool import Limits
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DEFAULT_PAGE_SIZE = 100
"""How many records a page has where a tool is `paginated=True` and nobody says how many."""

MAX_TIMEOUT_SECONDS = 10_000_000.0
"""Seconds: nobody waits longer."""
_RATE_UNITS = ("second", "minute", "hour", "day")
_MAX_RATE_CALLS = 10_000  # calls in a window: each of them is remembered


def parse_timeout(value: Any) -> float | None:
    """How many seconds a number or its text says; None for what nobody can wait for."""
    if isinstance(value, str):
        digits = value.replace(".", "", 1)
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 15:
            return None
        value = float(value)
    elif type(value) not in (int, float):
        return None
    return float(value) if 0 < value <= MAX_TIMEOUT_SECONDS else None


def is_rate_limit(text: Any) -> bool:
    """Whether a text says how often: "60/minute"."""
    count, _, unit = text.partition("/") if isinstance(text, str) else ("", "", "")
    is_valid_count = count.isascii() and count.isdigit() and len(count) <= 5 and count[0] != "0"
    return is_valid_count and int(count) <= _MAX_RATE_CALLS and unit in _RATE_UNITS


RATE_LIMIT_FORMAT = (
    f"a number of calls per {', '.join(_RATE_UNITS[:-1])} or {_RATE_UNITS[-1]}, "
    f"such as '60/minute', at most {_MAX_RATE_CALLS}"
)


def read_limits(kwargs: Mapping[str, Any], name: str, returns_page: bool) -> Limits:
    """The limits of a tool; `sourced` is whether it may return a `Page`."""
    size, tokens = kwargs.get("paginated"), kwargs.get("max_tokens")
    if size is not None and (not isinstance(size, int) or size < 0):
        raise DefinitionError(f"{name}: paginated= is True, or how many records a page has")
    if tokens is not None and (type(tokens) is not int or tokens < 1):
        raise DefinitionError(f"{name}: max_tokens= is a whole number of tokens")
    seconds = kwargs.get("timeout")
    if seconds is not None and (type(seconds) not in (int, float) or not seconds > 0):
        raise DefinitionError(f"{name}: timeout= is a number of seconds above 0")
    rate = kwargs.get("rate_limit")
    if rate is not None and not is_rate_limit(rate):
        raise DefinitionError(f"{name}: rate_limit= must be {RATE_LIMIT_FORMAT}")
    return Limits(
        timeout=seconds,
        max_tokens=tokens,
        cost_hint=kwargs.get("cost_hint"),
        paginated=bool(size) or returns_page,
        page_size=DEFAULT_PAGE_SIZE if size is True else size or None,
        returns_page=returns_page,
        rate_limit=rate,
    )
