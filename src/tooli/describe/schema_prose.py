"""JSON Schema in words: what a value is, what it may be, what it is made of."""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_TYPE_WORDS = {
    "string": ("text", "texts"),
    "integer": ("integer", "integers"),
    "number": ("number", "numbers"),
    "boolean": ("true or false", "true or false"),
    "null": ("nothing", "nothing"),
    "array": ("list", "lists"),
    "object": ("object", "objects"),
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
_MAX_CHOICES = 12


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value that is given, where it may be left out."""
    parts = _alternatives(schema)
    if parts is None:
        return _resolve_ref(schema)
    non_null = [part for part in parts if part.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
    return (
        {**_resolve_ref(non_null[0]), **rest} if len(non_null) == 1 else {**rest, "anyOf": non_null}
    )


def _resolve_ref(schema: dict[str, Any]) -> dict[str, Any]:
    """The definition that a schema refers to, where it brings it along."""
    definitions: Any = schema.get("$defs")
    if "$ref" not in schema or not is_object(definitions):
        return schema
    found: Any = definitions.get(str(schema["$ref"]).rpartition("/")[2])
    return found if is_object(found) else schema


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]] | None:
    parts = schema.get("anyOf") or schema.get("oneOf")
    return [part for part in parts if is_object(part)] if is_list(parts) else None


def choice_texts(schema: dict[str, Any]) -> list[str]:
    """The words that a value may be; none where it may be anything of its kind."""
    values: Any = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return [value if isinstance(value, str) else _json(value) for value in values]


def describe_type(schema: dict[str, Any], plural: bool = False) -> str:
    """What a value is, in a word or a few: `integer`, `list of paths`."""
    schema = without_null(schema)
    choices = choice_texts(schema)
    if choices and len(choices) <= _MAX_CHOICES:
        return " or ".join(choices) if len(choices) < 3 else f"one of {', '.join(choices)}"
    alternatives = _alternatives(schema)
    if alternatives:
        return " or ".join(
            dict.fromkeys([describe_type(alternative, plural) for alternative in alternatives])
        )
    kind: Any = schema.get("type")
    if kind == "array":
        return f"{'lists' if plural else 'list'}{_describe_items(schema)}"
    if kind == "object":
        return f"{'objects' if plural else 'object'}{_describe_values(schema)}"
    if kind == "string" and schema.get("format") in _FORMAT_WORDS:
        return _FORMAT_WORDS[schema["format"]][plural]
    if isinstance(kind, str):
        return _TYPE_WORDS.get(kind, (kind, kind))[plural]
    word = "object" if "$ref" in schema else "value"
    return f"{word}s" if plural else word


def _describe_items(schema: dict[str, Any]) -> str:
    row = schema.get("prefixItems")
    if is_list(row):
        return f" of {len(row)}: {', '.join([describe_type(part) for part in row])}"
    items: Any = schema.get("items")
    return f" of {describe_type(items, plural=True)}" if is_object(items) and items else ""


def _describe_values(schema: dict[str, Any]) -> str:
    more: Any = schema.get("additionalProperties")
    if schema.get("properties") or not is_object(more) or not more:
        return ""
    return f" of {describe_type(more, plural=True)} by name"


def describe_limits(schema: dict[str, Any]) -> str:
    """What a value may be, beyond its kind, as a sentence."""
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


def object_properties(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The named parts of an object, or of each object of a list."""
    schema = _object_schema(schema)
    parts: Any = schema.get("properties") if schema.get("type") == "object" else None
    return {name: part for name, part in parts.items() if is_object(part)} if parts else {}


def required_properties(schema: dict[str, Any]) -> list[str]:
    """The parts of an object that must be there."""
    return list(_object_schema(schema).get("required", ()))


def _object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The object that the schema is about: the value itself, or each of its items."""
    schema = without_null(schema)
    if schema.get("type") == "array" and is_object(schema.get("items")):
        return without_null(schema["items"])
    return schema


def describe_result(schema: dict[str, Any]) -> str:
    """What comes back, as the beginning of a sentence: `A list of objects`."""
    kind = describe_type(schema)
    if kind.startswith(("true", "nothing", "one of")):
        return kind[0].upper() + kind[1:]
    article = "An" if kind[:1] in "aeio" else "A"
    is_nullable = {"type": "null"} in (_alternatives(schema) or ())
    return f"{article} {kind}{', or nothing' if is_nullable else ''}"


def _json(value: Any) -> str:
    from json import dumps

    return dumps(value, ensure_ascii=False)


def describe_default(schema: dict[str, Any]) -> str:
    """The value that stands where none is given, in words; nothing where there is none to say."""
    default: Any = schema.get("default")
    if default is None or default in ("", [], {}):
        return ""
    return default if isinstance(default, str) else _json(default)
