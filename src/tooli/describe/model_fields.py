"""The fields of a parameter that takes an object, as flags of the command line."""

from __future__ import annotations

from tooli.core import Record
from tooli.schema.json_schema import param_schema
from tooli.schema.notation import printable_line
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.core.tool import Param
    from tooli.schema.json_schema import JsonObject

_MAX_DEPTH = 3
"""Fields of models that are nested deeper are part of their model's JSON."""


class ModelField(Record):
    """A field of a model: its dotted path, its type and what to know about it."""

    path: str
    type_name: str
    note: str


def list_fields(param: Param) -> list[ModelField]:
    """Return the fields of a model, a dataclass or a TypedDict; [] if none are declared."""
    schema = param_schema(param)
    definitions = schema.get("$defs", {})
    name = (param.flags[0] if param.flags else param.name).lstrip("-").replace("_", "-")
    return list(_walk(_resolve(schema, definitions), definitions, name, 1))


def _walk(
    schema: JsonObject, definitions: JsonObject, path: str, depth: int
) -> Iterator[ModelField]:
    required = schema.get("required", ())
    properties = schema.get("properties")
    for name, declared in properties.items() if is_object(properties) else ():
        if not is_object(declared) or not name.isprintable():
            continue  # it accepts anything, or cannot be typed
        field = _resolve(declared, definitions)
        if field.get("properties") and depth < _MAX_DEPTH:
            yield from _walk(field, definitions, f"{path}.{name}", depth + 1)
            continue
        notes = ["required"] if name in required else []
        if declared.get("default") not in (None, ""):
            notes.append(f"default: {printable_line(str(declared['default']))}")
        text = str(declared.get("description") or field.get("description") or "")
        note = f"{text} [{'; '.join(notes)}]".strip() if notes else text
        yield ModelField(f"{path}.{name}", _type_name(field), note)


def _resolve(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """Return the schema that a reference or an optional type stands for."""
    members = [m for m in _branches(schema, "anyOf") if m.get("type") != "null"]
    if len(members) == 1:
        schema = members[0]
    members = _branches(schema, "allOf")
    if len(members) == 1:
        schema = members[0]
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found = definitions.get(name, schema)
    return found if is_object(found) else {}


def _branches(schema: JsonObject, keyword: str) -> list[JsonObject]:
    """Return the alternatives or parts of a schema, without those that are `true` or `false`."""
    branches = schema.get(keyword)
    return [branch for branch in branches if is_object(branch)] if is_list(branches) else []


def _type_name(schema: JsonObject) -> str:
    """Return the type as help shows it."""
    if "enum" in schema:
        values = schema["enum"]
        return "|".join([printable_line(str(value)) for value in values] if is_list(values) else [])
    names = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
    declared = schema.get("type")
    return names.get(declared, "json") if isinstance(declared, str) else "json"
