"""Wishes about how a call is run: until when, only once, as planned. Read for every door.

The words of `records/result_options.py` stand here as well, so that a door knows them without reading it.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.call import Problem

RUN_OPTIONS = ("timeout", "idempotency_key", "apply")
RESULT_OPTION_TYPES: dict[str, tuple[type, ...]] = {
    "limit": (int,),
    **dict.fromkeys(("cursor", "filter"), (str,)),
    **dict.fromkeys(("fields", "select"), (str, list)),
    **dict.fromkeys(("max_items", "max_bytes", "max_tokens"), (int,)),
}
"""What says how much of the result is wanted, and which part; and what it is in JSON."""
_MAX_KEY_CHARS, _MAX_TOKEN_CHARS = 255, 4096


def read_run_option(name: str, value: Any) -> tuple[Any, str | None]:
    """A wish as the framework takes it, and what is wrong with it."""
    if name == "timeout":
        from tooli.core.limits import parse_timeout

        seconds = parse_timeout(value)
        return seconds, None if seconds else "a number of seconds above 0"
    max_chars = _MAX_KEY_CHARS if name == "idempotency_key" else _MAX_TOKEN_CHARS
    is_valid_length = isinstance(value, str) and 0 < len(value) <= max_chars
    if is_valid_length and value.isascii() and value.isprintable() and " " not in value:
        return value, None
    return None, f"one word of at most {max_chars} ASCII letters"


def read_run_options(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """All wishes among some words, and what is wrong with them."""
    from tooli.core.call import Problem

    options: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in RUN_OPTIONS:
        if values.get(name) is not None:
            options[name], expected = read_run_option(name, values[name])
            if expected is not None:
                problems.append(Problem("E1007", name, f"{name} is {expected}"))
    return options, tuple(problems)
