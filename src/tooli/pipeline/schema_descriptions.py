"""Describe the values of a parameter that only its JSON Schema tells: fields and bounds."""

from __future__ import annotations

from tooli.schema.json_schema import param_schema
from tooli.schema.notation import format_input, without_null
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param


def read_bounds(param: Param) -> JsonObject:
    """Return a schema with the bounds of a value, or of each item of a list."""
    schema = without_null(param_schema(param))
    items = schema.get("items")
    return items if is_object(items) else schema


def describe_json(param: Param, is_command_line: bool) -> str:
    """Return a description of an object or a list, such as `a JSON object {sku:str,count:int}`.

    On a command line, a file may contain it.
    """
    notation = format_input(without_null(param_schema(param)))
    kind = "a JSON list" if notation[:1] == "[" else "a JSON object"
    fields = f" {notation}" if notation[:1] in "{[" else ""
    return f"{kind}{fields}{' (or @file)' if is_command_line else ''}"
