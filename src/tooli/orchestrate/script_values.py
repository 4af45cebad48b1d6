"""Read the values that come out of the sandbox: results, and arguments of tools.

A value must be a JSON value, or of a type that tooli writes as JSON, such as a date. Anything else
is refused, and the message says where it is and what it is.
"""

from __future__ import annotations

import re

from tooli.core.tool import quote
from tooli.text.jsonable import is_list, is_object, is_set, sort_set, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 100
"""Maximum nesting of a value that crosses the border of the sandbox."""

MAX_INTEGER_BITS = 4096
"""Maximum size of a whole number."""

_CONVERTED_TYPES = (
    *("date", "datetime", "time", "timedelta", "Decimal", "bytes"),
    *("PurePosixPath", "PosixPath"),
)
_UNREADABLE_TEXTS = (
    (re.compile(r"<coroutine external_future\(\d+\)>"), "a call that is not awaited"),
    (re.compile(r"<coroutine object \S+ at 0x[0-9a-f]+>"), "a coroutine that is not awaited"),
    (re.compile(r"<(bound method|function) '?[\w.<>]+'? at 0x[0-9a-f]+>"), "a function"),
)
"""Values that the sandbox passes on as texts."""


RESULT_OF = "$result_of"
"""The key of an object that stands for the result of a planned call: `{"$result_of": 1}`."""


class ResultPlaceholder:
    """What a planned call returns in a dry run. A script can only pass it on."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number  # of the planned call


class UnreadableValueError(TypeError):
    """A value that is not JSON. The message starts with the path to it."""


def read_value(value: object, path: str) -> Any:
    """Return a value of the sandbox as JSON types; raise an UnreadableValueError if it has none."""
    return _read(value, path, 0)


def _read(value: Any, path: str, depth: int) -> Any:
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if value is None or kind in (bool, float):
        return value
    if kind is int:
        if value.bit_length() > MAX_INTEGER_BITS:
            raise UnreadableValueError(f"{path[:200]} is a number with too many digits")
        return value
    if kind is str:
        return _read_text(value, path)
    if kind is ResultPlaceholder:
        return {RESULT_OF: value.number}
    if depth >= MAX_DEPTH:
        raise UnreadableValueError(f"{path.partition('[')[0]} has more than {MAX_DEPTH} levels")
    if is_object(value):
        return {
            _read_key(key, path): _read(item, f"{path}[{quote(key)}]", depth + 1)
            for key, item in value.items()
        }
    if is_set(value):
        value = sort_set(value)
    if is_list(value):
        return [_read(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if kind.__name__ in _CONVERTED_TYPES:
        return to_jsonable(value, [])
    raise UnreadableValueError(f"{path[:200]} is {_describe(value)}, not a JSON value")


def _read_text(value: str, path: str) -> str:
    if value[:1] == "<" and value[-1:] == ">":
        for pattern, description in _UNREADABLE_TEXTS:
            if pattern.fullmatch(value):
                raise UnreadableValueError(f"{path[:200]} is {description}, not a JSON value")
    return value


def _read_key(key: object, path: str) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, (bool, int, float)):
        return to_jsonable({key: None}, []).popitem()[0]
    raise UnreadableValueError(f"{path[:200]} has the key {quote(key)}, which is not a text")


def _describe(value: object) -> str:
    kind = type(value)
    if isinstance(value, BaseException):
        return f"an exception, {kind.__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__!r}"
    name = getattr(value, "name", None)
    if kind.__name__.startswith("Monty") and isinstance(name, str):
        return f"an object of the class {name!r}"
    return f"a value of the type {kind.__name__!r}"
