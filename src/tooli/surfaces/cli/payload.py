"""`--input`: the whole payload of a call as one JSON object: text, `@file`, or `-` for stdin."""

from __future__ import annotations

import sys

from tooli.call.model import Problem

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def read_payload(source: str) -> tuple[dict[str, Any], list[Problem]]:
    """The arguments in a payload, and what is wrong with it."""
    import json

    try:
        if source == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                return _wrong("cannot be read: stdin is closed")
            text = sys.stdin.read()
        elif source[:1] == "@":
            with open(source[1:], encoding="utf-8") as file:
                text = file.read()
        else:
            text = source
        payload = json.loads(text)
    except OSError as failure:
        return _wrong(f"cannot be read: {failure.strerror}")
    except (ValueError, RecursionError) as failure:
        return _wrong(f"is not valid JSON: {failure}")
    if not isinstance(payload, dict):
        return _wrong("is not a JSON object")
    return payload, []  # pyright: ignore[reportUnknownVariableType]


def _wrong(what: str) -> tuple[dict[str, Any], list[Problem]]:
    return {}, [Problem("E1008", "input", f"--input {what}")]
