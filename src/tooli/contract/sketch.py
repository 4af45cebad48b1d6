"""A sketch of a tool's output schema: which fields its records have, without loading pydantic.

Filters and selections ask for nothing more. Where a part is not plain, the sketch gives up,
and the schema itself is asked.
"""

from __future__ import annotations

import sys

from tooli.contract.reading import returns_of, shape_of
from tooli.contract.tool import (
    MISSING,
    Choice,
    ListOf,
    Maybe,
    PathShape,
    Scalar,
    Structured,
    Text,
    TupleOf,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Shape, Tool

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_STREAMS = ("Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator")
_TEXTS = ("datetime", "date", "time", "timedelta", "UUID", "Decimal", "bytes")


class _Unsure(Exception):  # noqa: N818
    """Only pydantic knows."""


def record_schema(tool: Tool) -> dict[str, Any] | None:
    """A tool's result, near enough to name its fields; None where it says nothing about it."""
    from tooli.contract.schema import output_schema

    if "pydantic" in sys.modules:
        return output_schema(tool)
    try:
        return sketch(returns_of(tool))
    except _Unsure:
        return output_schema(tool)


def sketch(annotation: Any) -> dict[str, Any] | None:
    """The sketch of an annotation; raises where it cannot be sure."""
    if annotation in (MISSING, None, type(None)):
        return None
    origin = getattr(annotation, "__origin__", None)
    if getattr(origin, "__name__", "") in _STREAMS:
        return {"type": "array", "items": _drawn(shape_of(annotation.__args__[0]), ())}
    return _drawn(shape_of(annotation), ())


def _drawn(shape: Shape, above: tuple[Any, ...]) -> dict[str, Any]:
    match shape:
        case Scalar(kind):
            return {"type": _TYPES[kind]}
        case PathShape():
            return {"type": "string"}
        case Choice(values, enum):
            values = [value.value for value in values] if enum is not None else list(values)
            if any([type(value) not in _TYPES for value in values]):
                raise _Unsure
            return {"enum": values}
        case ListOf(item):
            return {"type": "array", "items": _drawn(item, above)}
        case Maybe(item):
            return {"anyOf": [_drawn(item, above), {"type": "null"}]}
        case TupleOf(items):
            return {"type": "array", "prefixItems": [_drawn(item, above) for item in items]}
        case Text(annotation):
            if isinstance(annotation, type) and annotation.__name__ in _TEXTS:
                return {"type": "string"}
            return _anything(annotation)
        case Structured(annotation):
            return _object(annotation, above)
        case _:
            raise _Unsure


def _anything(annotation: Any) -> dict[str, Any]:
    typing = sys.modules.get("typing")
    if annotation is object or (typing is not None and annotation is typing.Any):
        return {}
    raise _Unsure


def _object(annotation: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    if annotation is dict:
        return {"type": "object", "additionalProperties": True}
    if getattr(annotation, "__origin__", None) is dict:
        value = annotation.__args__[1]
        try:
            inner = _anything(value)
        except _Unsure:
            inner = _drawn(shape_of(value), above)
        return {"type": "object", "additionalProperties": inner or True}
    is_typed_dict = hasattr(annotation, "__total__") and hasattr(annotation, "__required_keys__")
    is_plain = hasattr(annotation, "__dataclass_fields__") and not hasattr(
        annotation, "__pydantic_fields__"
    )
    if annotation in above or not (is_typed_dict or is_plain):
        raise _Unsure
    import typing

    try:
        hints = typing.get_type_hints(annotation, include_extras=True)
    except Exception:  # a name that is defined elsewhere
        raise _Unsure from None
    names = hints if is_typed_dict else annotation.__dataclass_fields__
    inside = (*above, annotation)
    return {
        "type": "object",
        "properties": {name: _drawn(shape_of(hints[name]), inside) for name in names},
    }
