"""An approximate output schema: the fields of a tool's records, without loading pydantic.

Filters and field selection need only names and types. For types that need pydantic, the full
schema is built.
"""

from __future__ import annotations

import sys

from tooli.core.tool import (
    MISSING,
    Choice,
    ListOf,
    Maybe,
    ParsedText,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
)
from tooli.schema.tool_reader import infer_shape, return_annotation

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Shape, Tool

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ITERATOR_TYPES = ("Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator")
_STRING_TYPES = ("datetime", "date", "time", "timedelta", "UUID", "Decimal", "bytes")


class _NeedsPydantic(Exception):  # noqa: N818
    """The type cannot be described without pydantic."""


def record_schema(tool: Tool) -> JsonObject | None:
    """Return a schema of a tool's result that names its fields; None if it declares no result."""
    if "pydantic" not in sys.modules:
        try:
            return approximate_schema(return_annotation(tool))
        except _NeedsPydantic:
            pass
    from tooli.schema.json_schema import output_schema

    return output_schema(tool)


def approximate_schema(annotation: Any) -> JsonObject | None:
    """Return the approximate schema of an annotation. Raises _NeedsPydantic if that is needed."""
    if annotation in (MISSING, None, type(None)):
        return None
    origin = getattr(annotation, "__origin__", None)
    if getattr(origin, "__name__", "") in _ITERATOR_TYPES:
        return {
            "type": "array",
            "items": _approximate_shape(infer_shape(annotation.__args__[0]), ()),
        }
    return _approximate_shape(infer_shape(annotation), ())


def _approximate_shape(shape: Shape, parents: tuple[Any, ...]) -> JsonObject:
    match shape:
        case Scalar(kind):
            return {"type": _JSON_TYPES[kind]}
        case PathShape():
            return {"type": "string"}
        case Choice(values, enum):
            values = [value.value for value in values] if enum is not None else list(values)
            if any([type(value) not in _JSON_TYPES for value in values]):
                raise _NeedsPydantic
            return {"enum": values}
        case ListOf(item):
            return {"type": "array", "items": _approximate_shape(item, parents)}
        case Maybe(item):
            return {"anyOf": [_approximate_shape(item, parents), {"type": "null"}]}
        case TupleOf(items):
            return {
                "type": "array",
                "prefixItems": [_approximate_shape(item, parents) for item in items],
            }
        case ParsedText(annotation):
            if isinstance(annotation, type) and annotation.__name__ in _STRING_TYPES:
                return {"type": "string"}
            return _any_schema(annotation)
        case Structured(annotation):
            return _object_schema(annotation, parents)
        case _:
            raise _NeedsPydantic


def _any_schema(annotation: Any) -> JsonObject:
    typing = sys.modules.get("typing")
    if annotation is object or (typing is not None and annotation is typing.Any):
        return {}
    raise _NeedsPydantic


def _object_schema(annotation: Any, parents: tuple[Any, ...]) -> JsonObject:
    if annotation is dict:
        return {"type": "object", "additionalProperties": True}
    if getattr(annotation, "__origin__", None) is dict:
        value = annotation.__args__[1]
        try:
            inner = _any_schema(value)
        except _NeedsPydantic:
            inner = _approximate_shape(infer_shape(value), parents)
        return {"type": "object", "additionalProperties": inner or True}
    is_typed_dict = hasattr(annotation, "__total__") and hasattr(annotation, "__required_keys__")
    is_plain = hasattr(annotation, "__dataclass_fields__") and not hasattr(
        annotation, "__pydantic_fields__"
    )
    if annotation in parents or not (is_typed_dict or is_plain):
        raise _NeedsPydantic
    import typing

    try:
        hints = typing.get_type_hints(annotation, include_extras=True)
    except Exception:  # a name is not defined here
        raise _NeedsPydantic from None
    names = hints if is_typed_dict else annotation.__dataclass_fields__
    inside = (*parents, annotation)
    return {
        "type": "object",
        "properties": {
            name: _approximate_shape(infer_shape(hints[name]), inside) for name in names
        },
    }
