"""Arguments in the query of a GET request: `?pattern=*.py&kind=a&kind=b`.

A parameter can be in a query if its values are text without structure: numbers, choices, dates,
paths, and lists of these, which are repeated keys. Objects, inputs and secrets are in the body of a
POST request: generators of clients write objects in a query in different ways, and URLs are logged.
"""

from __future__ import annotations

from tooli.core.secret_fields import may_contain_secret
from tooli.core.tool import (
    Choice,
    ListOf,
    ParsedText,
    PathShape,
    Scalar,
    TupleOf,
    unwrap_optional,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.core.tool import Param, Shape, Tool

_MAX_NUMBER_CHARS = 40


def can_be_in_query(param: Param) -> bool:
    """True if a query can contain the values of a parameter."""
    shape = unwrap_optional(param.shape)
    if may_contain_secret(param) or param.option_kwargs.keys() & {"parser", "click_type"}:
        return False
    if isinstance(shape, ListOf):
        return _is_text(shape.item)
    if isinstance(shape, TupleOf):
        return all([_is_text(item) for item in shape.items])
    return _is_text(shape)


def _is_text(shape: Shape) -> bool:
    if isinstance(shape, Choice):
        return all([isinstance(value, (str, int, float)) for value in shape.raw_values])
    if isinstance(shape, ParsedText):
        return shape.annotation is not bytes
    return isinstance(shape, (Scalar, PathShape))


def allows_get(tool: Tool) -> bool:
    """True if GET requests can call a tool: it only reads, and its required parameters are text."""
    return (
        tool.effects.read_only
        and tool.schema is None
        and all([can_be_in_query(param) for param in tool.public_params if param.required])
    )


def parse_query_values(param: Param, texts: Sequence[str]) -> object:
    """Return the argument that the values of a query are, in JSON types.

    A text that is not a value of the type is returned as it is. The call then fails with the same
    error as a POST request.
    """
    shape = unwrap_optional(param.shape)
    if isinstance(shape, ListOf):
        return [_parse(shape.item, text) for text in texts]
    if isinstance(shape, TupleOf):
        if len(texts) != len(shape.items):
            return list(texts)
        return [_parse(item, text) for item, text in zip(shape.items, texts, strict=True)]
    return _parse(shape, texts[-1])


def _parse(shape: Shape, text: str) -> object:
    if isinstance(shape, Choice):
        return next((value for value in shape.raw_values if _json_text(value) == text), text)
    if not isinstance(shape, Scalar) or shape.type is str or len(text) > _MAX_NUMBER_CHARS:
        return text
    if shape.type is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    digits = text[1:] if text[:1] == "-" else text
    if digits.isascii() and digits.isdecimal():
        return int(text)
    parts = digits.split(".")
    is_float = len(parts) == 2 and all([part.isascii() and part.isdecimal() for part in parts])
    return float(text) if shape.type is float and is_float else text


def _json_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
