"""A JSON Schema in a few words: `[{path: str, size: int}]`."""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_TYPE_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
    "object": "object",
    "array": "list",
}
_FORMATS = {"date-time": "datetime", "date": "date", "time": "time", "duration": "duration"}
_MAX_CHOICES = 8  # choices that are shown
_MAX_DEPTH = 3  # objects inside objects that are written out


def format_type(schema: Any, depth: int = _MAX_DEPTH) -> str:
    """The type that a schema describes, as briefly as it can be said."""
    if not is_object(schema):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if is_list(schema.get("enum")):
        return _choices(schema["enum"])
    if "const" in schema:
        return _choices([schema["const"]])
    for key in ("anyOf", "oneOf"):
        if is_list(schema.get(key)):
            parts = [format_type(part, depth) for part in schema[key]]
            return " | ".join(dict.fromkeys(parts))
    kind: Any = schema.get("type")
    if is_list(kind):
        return " | ".join([_TYPE_NAMES.get(str(word), str(word)) for word in kind])
    if kind == "array":
        return _array(schema, depth)
    if kind == "object":
        return _object(schema, depth)
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    return _TYPE_NAMES.get(str(kind), "any")


def _choices(values: list[Any]) -> str:
    from json import dumps

    joined = "|".join([dumps(value, ensure_ascii=False) for value in values[:_MAX_CHOICES]])
    return f"{joined}|…" if len(values) > _MAX_CHOICES else joined


def _array(schema: dict[str, Any], depth: int) -> str:
    row: Any = schema.get("prefixItems")
    if is_list(row):
        return f"[{', '.join([format_type(item, depth) for item in row])}]"
    item = format_type(schema.get("items"), depth)
    return "list" if item == "any" else f"[{item}]"


def _object(schema: dict[str, Any], depth: int) -> str:
    fields: Any = schema.get("properties")
    if is_object(fields) and fields:
        if not depth:
            return "{…}"
        required: Any = schema.get("required", ())
        parts = [
            f"{name}{'' if name in required else '?'}: {format_type(inner, depth - 1)}"
            for name, inner in fields.items()
        ]
        return f"{{{', '.join(parts)}}}"
    values: Any = schema.get("additionalProperties")
    return f"{{str: {format_type(values, depth)}}}" if is_object(values) and values else "object"
