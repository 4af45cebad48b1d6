"""Limit the nesting and the number of values of a JSON text before it is decoded.

A small text can contain millions of empty lists. To decode them takes far more time and memory
than the text, and no other thread runs meanwhile. The limits are therefore applied to the bytes,
with a few fast passes over them.
"""

from __future__ import annotations

from itertools import accumulate

from tooli.text.jsonable import MAX_JSON_DEPTH

MAX_JSON_CONTAINERS = 200_000
"""Maximum number of lists and objects in a JSON text that a client sends."""

_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_DEPTH_CHANGES = {ord("["): 1, ord("]"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class JsonLimitError(ValueError):
    """A JSON text exceeds a limit. The message completes "The text …"."""


def check_json_limits(data: bytes, *, outer_depth: int = 0) -> None:
    """Raise a JsonLimitError if a JSON text is nested too deeply or has too many containers.

    The text is in UTF-8, and can be invalid JSON. `outer_depth` is the number of containers around
    the value that the limit of the depth applies to.
    """
    max_depth = MAX_JSON_DEPTH + outer_depth
    if data.count(b"{") + data.count(b"[") < max_depth:  # also counts brackets in strings
        return
    brackets = _find_brackets(data)
    if brackets.count(b"[") > MAX_JSON_CONTAINERS:
        raise JsonLimitError(f"has more than {MAX_JSON_CONTAINERS:,} lists and objects")
    depths = accumulate([_DEPTH_CHANGES[bracket] for bracket in brackets])
    if max(depths, default=0) >= max_depth:
        raise JsonLimitError("is nested too deeply")


def _find_brackets(data: bytes) -> bytes:
    """Return the brackets of a JSON text outside strings, all as square brackets."""
    without_escapes = data.replace(rb"\\", b"").replace(rb"\"", b"")
    outside_strings = b"".join(without_escapes.split(b'"')[::2])
    return outside_strings.translate(_AS_LISTS, _NO_BRACKETS)
