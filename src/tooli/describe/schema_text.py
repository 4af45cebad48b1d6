"""Describe JSON Schemas as text.

    describe_type     prose for man pages       list of paths
    format_type       notation for documents    [{path: str, size: int}]
    describe_limits   a sentence                From 1 to 9.

All of these functions read a schema with `classify`, and so do sample values and the annotations
of exported Python functions. `--help-agent` does not: it reads `Shape`s, because building schemas
would slow its start-up.
"""

from __future__ import annotations

from json import dumps

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.protocols import JsonObject


def classify(schema: Any) -> tuple[str, Any]:
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
    kind: Any = schema.get("type")
    if is_list(kind):
        return "union", [{**schema, "type": name} for name in kind]
    if kind == "array":
        items: Any = schema.get("prefixItems")
        return ("tuple", items) if is_list(items) else ("list", schema.get("items"))
    if kind == "object":
        return _classify_object(schema)
    return ("plain", kind) if isinstance(kind, str) else ("any", None)


def _classify_object(schema: JsonObject) -> tuple[str, Any]:
    properties: Any = schema.get("properties")
    if is_object(properties) and properties:
        return "record", properties
    values: Any = schema.get("additionalProperties")
    return ("dict", values) if is_object(values) and values else ("object", None)


# ------------------------------------------------------------------ parts of a schema


def without_null(schema: JsonObject) -> JsonObject:
    """Return the schema without `null`, and with its `$ref` resolved.

    For an optional parameter, this is the schema of a value that is given.
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
    definitions: Any = schema.get("$defs")
    if "$ref" not in schema or not is_object(definitions):
        return schema
    found: Any = definitions.get(str(schema["$ref"]).rpartition("/")[2])
    return found if is_object(found) else schema


def object_properties(schema: JsonObject) -> dict[str, JsonObject]:
    """Return the properties of an object, or of each object of a list."""
    kind, properties = classify(_object_schema(schema))
    if kind != "record":
        return {}
    return {name: part for name, part in properties.items() if is_object(part)}


def required_properties(schema: JsonObject) -> list[str]:
    """Return the names of the required properties of an object."""
    return list(_object_schema(schema).get("required", ()))


def _object_schema(schema: JsonObject) -> JsonObject:
    """Return the schema of the object: the value itself, or each item of a list."""
    schema = without_null(schema)
    kind, item = classify(schema)
    return without_null(item) if kind == "list" and is_object(item) else schema


def choice_texts(schema: JsonObject) -> list[str]:
    """Return the allowed values as text; an empty list if the schema has no choices."""
    kind, values = classify(schema)
    if kind != "choices":
        return []
    return [value if isinstance(value, str) else _json(value) for value in values]


def _json(value: Any) -> str:
    return dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------ notation

_TYPE_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
}
_FORMAT_NAMES = {"date-time": "datetime", "date": "date", "time": "time", "duration": "duration"}
_MAX_NOTATION_CHOICES = 8
_MAX_DEPTH = 3  # levels of nested objects


def format_type(schema: Any, depth: int = _MAX_DEPTH) -> str:
    """Return the type in short notation: `[{path: str, size?: int}]`."""
    kind, detail = classify(schema)
    match kind:
        case "ref":
            return detail
        case "choices":
            joined = "|".join([_json(value) for value in detail[:_MAX_NOTATION_CHOICES]])
            return f"{joined}|…" if len(detail) > _MAX_NOTATION_CHOICES else joined
        case "union":
            return " | ".join(dict.fromkeys([format_type(part, depth) for part in detail]))
        case "tuple":
            return f"[{', '.join([format_type(item, depth) for item in detail])}]"
        case "list":
            item = format_type(detail, depth)
            return "list" if item == "any" else f"[{item}]"
        case "record":
            return _format_record(detail, schema.get("required", ()), depth)
        case "dict":
            return f"{{str: {format_type(detail, depth)}}}"
        case "plain":
            return _FORMAT_NAMES.get(str(schema.get("format"))) or _TYPE_NAMES.get(detail, "any")
        case _:
            return kind  # "object" or "any"


def _format_record(properties: JsonObject, required: Any, depth: int) -> str:
    if not depth:
        return "{…}"
    parts = [
        f"{name}{'' if name in required else '?'}: {format_type(part, depth - 1)}"
        for name, part in properties.items()
    ]
    return f"{{{', '.join(parts)}}}"


# ------------------------------------------------------------------ prose

_TYPE_WORDS = {
    # singular, plural
    "string": ("text", "texts"),
    "integer": ("integer", "integers"),
    "number": ("number", "numbers"),
    "boolean": ("true or false", "true or false"),
    "null": ("nothing", "nothing"),
    "object": ("object", "objects"),
    "list": ("list", "lists"),
    "any": ("value", "values"),
}
_FORMAT_WORDS = {
    "path": ("path", "paths"),
    "date": ("date", "dates"),
    "time": ("time", "times"),
    "date-time": ("date and time", "dates with times"),
    "duration": ("duration", "durations"),
    "uuid": ("UUID", "UUIDs"),
    "binary": ("text of bytes", "texts of bytes"),
}
_MAX_PROSE_CHOICES = 12


def describe_type(schema: JsonObject, plural: bool = False) -> str:
    """Return the type in plain English: `integer`, `list of paths`."""
    schema = without_null(schema)
    kind, detail = classify(schema)
    if kind == "choices":
        choices = choice_texts(schema)
        if len(choices) <= _MAX_PROSE_CHOICES:
            return " or ".join(choices) if len(choices) < 3 else f"one of {', '.join(choices)}"
        kind, detail = classify({**schema, "enum": None})
    if kind == "union":
        parts = [describe_type(part, plural) for part in detail if is_object(part)]
        return " or ".join(dict.fromkeys(parts))
    if kind == "plain":
        names = _FORMAT_WORDS.get(str(schema.get("format")))
        return (names or _TYPE_WORDS.get(detail, (detail, detail)))[plural]
    name = _TYPE_WORDS[_PROSE_NAMES.get(kind, kind)][plural]
    if kind == "tuple":
        return f"{name} of {len(detail)}: {', '.join([describe_type(item) for item in detail])}"
    if kind == "list" and is_object(detail) and detail:
        return f"{name} of {describe_type(detail, plural=True)}"
    if kind == "dict":
        return f"{name} of {describe_type(detail, plural=True)} by name"
    return name


_PROSE_NAMES = {"tuple": "list", "ref": "object", "record": "object", "dict": "object"}


def describe_limits(schema: JsonObject) -> str:
    """Return the bounds and the pattern of a value, or of a list's items, as a sentence."""
    schema = without_null(schema)
    target: Any = schema.get("items") if schema.get("type") == "array" else schema
    target = without_null(target) if is_object(target) else {}
    low, high = target.get("minimum"), target.get("maximum")
    phrases: list[str] = []
    if low is not None and high is not None:
        phrases.append(f"from {low} to {high}")
    elif low is not None or high is not None:
        phrases.append(f"at least {low}" if high is None else f"at most {high}")
    for key, comparison in (("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")):
        if key in target:
            phrases.append(f"{comparison} {target[key]}")
    if "pattern" in target:
        phrases.append(f"matching {target['pattern']}")
    text = ", ".join(phrases)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def describe_result(schema: JsonObject) -> str:
    """Return the type of a result as the start of a sentence: `A list of objects`."""
    text = describe_type(schema)
    if text.startswith(("true", "nothing", "one of")):
        return text[0].upper() + text[1:]
    article = "An" if text[:1] in "aeio" else "A"
    kind, alternatives = classify(schema)
    is_nullable = kind == "union" and {"type": "null"} in alternatives
    return f"{article} {text}{', or nothing' if is_nullable else ''}"


def describe_default(schema: JsonObject) -> str:
    """Return the default value as text; "" if there is none or it is empty."""
    default: Any = schema.get("default")
    if default is None or default in ("", [], {}):
        return ""
    return default if isinstance(default, str) else _json(default)
