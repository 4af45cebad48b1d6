"""Wishes about how a call is run: until when, only once, as planned. Read for every door.

The words of `call/shaping.py` stand here as well, so that a door knows them without reading it.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.model import Problem

WISHES = ("timeout", "idempotency_key", "apply")
SHAPING: dict[str, tuple[type, ...]] = {
    "limit": (int,),
    **dict.fromkeys(("cursor", "filter"), (str,)),
    **dict.fromkeys(("fields", "select"), (str, list)),
    **dict.fromkeys(("max_items", "max_bytes", "max_tokens"), (int,)),
}
"""What says how much of the result is wanted, and which part; and what it is in JSON."""
_LONGEST_KEY, _LONGEST_TOKEN = 255, 4096


def read_wish(name: str, value: Any) -> tuple[Any, str | None]:
    """A wish as the framework takes it, and what is wrong with it."""
    if name == "timeout":
        from tooli.contract.limits import read_seconds

        seconds = read_seconds(value)
        return seconds, None if seconds else "a number of seconds above 0"
    longest = _LONGEST_KEY if name == "idempotency_key" else _LONGEST_TOKEN
    plain = isinstance(value, str) and 0 < len(value) <= longest
    if plain and value.isascii() and value.isprintable() and " " not in value:
        return value, None
    return None, f"one word of at most {longest} ASCII letters"


def read_wishes(said: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """All wishes among some words, and what is wrong with them."""
    from tooli.call.model import Problem

    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in WISHES:
        if said.get(name) is not None:
            found[name], wrong = read_wish(name, said[name])
            if wrong is not None:
                problems.append(Problem("E1007", name, f"{name} is {wrong}"))
    return found, tuple(problems)
