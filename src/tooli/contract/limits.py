"""What an author says about how long, how much and how dear: read and checked."""

from __future__ import annotations

from tooli.contract.tool import Limits
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PAGE = 100
"""How many records a page has where a tool is `paginated=True` and nobody says how many."""

LONGEST = 10_000_000.0
"""Seconds: nobody waits longer."""
_UNITS = ("second", "minute", "hour", "day")
_MOST = 10_000  # calls in a window: each of them is remembered


def read_seconds(value: Any) -> float | None:
    """How many seconds a number or its text says; None for what nobody can wait for."""
    if isinstance(value, str):
        digits = value.replace(".", "", 1)
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 15:
            return None
        value = float(value)
    elif type(value) not in (int, float):
        return None
    return float(value) if 0 < value <= LONGEST else None


def is_rate(text: Any) -> bool:
    """Whether a text says how often: "60/minute"."""
    count, _, unit = text.partition("/") if isinstance(text, str) else ("", "", "")
    plain = count.isascii() and count.isdigit() and len(count) <= 5 and count[0] != "0"
    return plain and int(count) <= _MOST and unit in _UNITS


RATE = f"how many times a {', '.join(_UNITS[:-1])} or {_UNITS[-1]}, as '60/minute', up to {_MOST}"


def read_limits(said: Mapping[str, Any], name: str, sourced: bool) -> Limits:
    """The limits of a tool; `sourced` is whether it may return a `Page`."""
    size, tokens = said.get("paginated"), said.get("max_tokens")
    if size is not None and (not isinstance(size, int) or size < 0):
        raise DefinitionError(f"{name}: paginated= is True, or how many records a page has")
    if tokens is not None and (type(tokens) is not int or tokens < 1):
        raise DefinitionError(f"{name}: max_tokens= is a whole number of tokens")
    seconds = said.get("timeout")
    if seconds is not None and (type(seconds) not in (int, float) or not seconds > 0):
        raise DefinitionError(f"{name}: timeout= is a number of seconds above 0")
    rate = said.get("rate_limit")
    if rate is not None and not is_rate(rate):
        raise DefinitionError(f"{name}: rate_limit= says {RATE}")
    return Limits(
        timeout=seconds,
        max_tokens=tokens,
        cost=said.get("cost_hint"),
        paginated=bool(size) or sourced,
        page=PAGE if size is True else size or None,
        sourced=sourced,
        rate=rate,
    )
