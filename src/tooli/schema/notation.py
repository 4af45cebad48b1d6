"""Types in short notation: `[{path: str, size?: int}]`.

`format_type` describes results. `format_input` describes arguments: it has no spaces, because it is
part of a usage line, and it has bounds and the formats of dates.

Both read a schema with `classify`, as do the descriptions of types in prose and the exported
annotations.
"""

from __future__ import annotations

from tooli.text.json_encoder import make_json_encoder
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tooli.core.protocols import JsonObject


def classify(schema: object) -> tuple[str, Any]:
    """Return the kind of value that a schema describes, and a detail that depends on the kind.

    kind        detail                      kind        detail
    "ref"       name of the definition      "record"    schemas of the properties
    "choices"   the values                  "dict"      schema of the values
    "union"     schemas                     "object"    None
    "tuple"     schemas of the items        "plain"     name of the type
    "list"      schema of an item, or None  "any"       None
    """
    if not is_object(schema):
        return "any", None
    if "$ref" in schema:
        return "ref", str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return "choices", [schema["const"]]
    if is_list(schema.get("enum")) and schema["enum"]:
        return "choices", schema["enum"]
    for keyword in ("anyOf", "oneOf"):
        if is_list(schema.get(keyword)):
            return "union", schema[keyword]
    kind = schema.get("type")
    if is_list(kind):
        return "union", [{**schema, "type": name} for name in kind]
    if kind == "array":
        items = schema.get("prefixItems")
        return ("tuple", items) if is_list(items) else ("list", schema.get("items"))
    if kind == "object":
        return _classify_object(schema)
    return ("plain", kind) if isinstance(kind, str) else ("any", None)


def _classify_object(schema: JsonObject) -> tuple[str, Any]:
    properties = schema.get("properties")
    if is_object(properties) and properties:
        return "record", properties
    values = schema.get("additionalProperties")
    return ("dict", values) if is_object(values) and values else ("object", None)


def without_null(schema: JsonObject) -> JsonObject:
    """Return the schema without `null`, and with its `$ref` resolved.

    For an optional parameter, this is the schema of the values other than None.
    """
    kind, alternatives = classify(schema)
    if kind != "union":
        return _resolve_ref(schema)
    non_null = [part for part in alternatives if is_object(part) and part.get("type") != "null"]
    rest = {
        key: value
        for key, value in schema.items()
        if key not in ("anyOf", "oneOf") and not (key == "type" and is_list(value))
    }
    if len(non_null) == 1:
        return {**_resolve_ref(non_null[0]), **rest}
    return {**rest, "anyOf": non_null}


def _resolve_ref(schema: JsonObject) -> JsonObject:
    """Return the definition that the schema refers to, if the schema contains it."""
    definitions = schema.get("$defs")
    if "$ref" not in schema or not is_object(definitions):
        return schema
    found = definitions.get(str(schema["$ref"]).rpartition("/")[2])
    return found if is_object(found) else schema


# ------------------------------------------------------------------ notation

_TYPE_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
}
_FORMAT_NAMES = {"date-time": "datetime", "date": "date", "time": "time", "duration": "duration"}
_INPUT_NAMES = {"path": "path", "uuid": "uuid", "binary": "bytes"}
INPUT_FORMATS = {
    "date": "date(YYYY-MM-DD)",
    "datetime": "datetime(YYYY-MM-DDTHH:MM:SS)",
    "time": "time(HH:MM:SS)",
    "duration": "duration(PT1H30M)",
    "timedelta": "duration(PT1H30M)",
}
"""The formats of arguments that are dates or times, by the name of their type."""
_MAX_CHOICES = 8
_MAX_DEPTH = 3  # levels of nested objects
_MAX_INPUT_LENGTH = 240  # characters; longer notations have fewer levels


def format_type(schema: object) -> str:
    """Return the type of a result in short notation: `[{path: str, size?: int}]`."""
    return printable_line(_Notation(is_input=False).format(schema, _MAX_DEPTH))


def format_input(schema: object) -> str:
    """Return the type of an argument in short notation: `{sku:str,count:int(1..99),gift?:bool}`."""
    notation, depth = _Notation(is_input=True), _MAX_DEPTH
    if is_object(schema):
        schema = _resolve_ref(schema)  # of a recursive type
    text = notation.format(schema, depth)
    while len(text) > _MAX_INPUT_LENGTH and depth > 1:
        depth -= 1
        text = notation.format(schema, depth)
    return printable_line(text)


def printable_line(text: str) -> str:
    """Return a text without line breaks and control characters. A name may contain any."""
    if text.isprintable():
        return text
    return " ".join("".join([char if char.isprintable() else " " for char in text]).split())


class _Notation:
    """Formats schemas. Inputs have no spaces, but bounds and the formats of dates."""

    def __init__(self, is_input: bool) -> None:
        self._is_input = is_input
        self._space = "" if is_input else " "
        self._comma = f",{self._space}"

    def format(self, schema: object, depth: int) -> str:
        """Return the notation of a schema. Objects deeper than `depth` are not described."""
        kind, detail = classify(schema)
        keywords: JsonObject = schema if is_object(schema) else {}
        match kind:
            case "ref":
                return detail
            case "choices":
                write_json = make_json_encoder([])
                joined = "|".join([write_json(value) for value in detail[:_MAX_CHOICES]])
                return f"{joined}|…" if len(detail) > _MAX_CHOICES else joined
            case "union":
                parts = dict.fromkeys([self.format(part, depth) for part in detail])
                return f"{self._space}|{self._space}".join(parts)
            case "tuple":
                return f"[{self._comma.join([self.format(item, depth) for item in detail])}]"
            case "list":
                item = self.format(detail, depth)
                return "list" if item == "any" else f"[{item}]"
            case "record":
                return self._format_record(detail, keywords.get("required", ()), depth)
            case "dict":
                return f"{{str:{self._space}{self.format(detail, depth)}}}"
            case "plain":
                return self._format_plain(detail, keywords)
            case _:
                return kind  # "object" or "any"

    def _format_record(self, properties: JsonObject, required: Collection[str], depth: int) -> str:
        if not depth:
            return "{…}"
        parts: list[str] = []
        for name, part in properties.items():
            is_optional = name not in required
            if is_optional and self._is_input:  # an argument that is left out need not be null
                part = without_null(part) if is_object(part) else part
            mark = "?" if is_optional else ""
            parts.append(f"{name}{mark}:{self._space}{self.format(part, depth - 1)}")
        return f"{{{self._comma.join(parts)}}}"

    def _format_plain(self, kind: str, schema: JsonObject) -> str:
        form = str(schema.get("format"))
        name = _FORMAT_NAMES.get(form) or _TYPE_NAMES.get(kind, "any")
        if not self._is_input:
            return name
        return f"{INPUT_FORMATS.get(name) or _INPUT_NAMES.get(form, name)}{_format_bounds(schema)}"


def _format_bounds(schema: JsonObject) -> str:
    """Return the bounds of a number, such as `(1..99)`, `(0..)` or `(>0)`; "" if it has none."""
    low, high = schema.get("minimum"), schema.get("maximum")
    parts = [f"{_number(low)}..{_number(high)}"] if (low, high) != (None, None) else []
    for keyword, sign in (("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")):
        if keyword in schema:
            parts.append(f"{sign}{_number(schema[keyword])}")
    return f"({','.join(parts)})" if parts else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
