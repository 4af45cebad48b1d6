"""Check the keywords of an external JSON Schema, without a package for JSON Schemas.

A keyword with a value of the wrong type has no meaning, and code that reads it may fail. The list
of all tools, and documents about all of them, would then fail because of one tool.
"""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeGuard

    from tooli.core.protocols import JsonObject

_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS = (
    *("items", "contains", "additionalItems", "unevaluatedItems", "not", "if", "then", "else"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"),
)


def _is_schema(value: object) -> bool:
    return is_object(value) or isinstance(value, bool)


def _is_schema_or_list(value: object) -> bool:
    return _is_schema(value) or _is_list_of_schemas(value)  # several schemas: up to draft 2019


def _is_list_of_schemas(value: object) -> bool:
    return is_list(value) and all(map(_is_schema, value))


def _is_object_of_schemas(value: object) -> bool:
    return is_object(value) and all(map(_is_schema, value.values()))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list_of_texts(value: object) -> TypeGuard[list[str]]:
    return is_list(value) and all(map(_is_text, value))


def _is_type(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return _is_list_of_texts(names) and bool(names) and _TYPES.issuperset(names)


def _is_count(value: object) -> bool:
    return _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_factor(value: object) -> bool:
    return _is_number(value) and value > 0


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_limit(value: object) -> bool:
    return isinstance(value, (int, float))  # up to draft 4, `exclusiveMinimum` is true or false


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_discriminator(value: object) -> bool:
    if not is_object(value):
        return False
    mapping = value.get("mapping", {})
    is_mapping = is_object(mapping) and all(map(_is_text, mapping.values()))
    return _is_text(value.get("propertyName")) and is_mapping


_Check = tuple[str, "Callable[[object], bool]"]
_RULES: tuple[tuple[tuple[str, ...], str, Callable[[object], bool]], ...] = (
    (_SCHEMAS_BY_NAME, "an object of schemas", _is_object_of_schemas),
    (_LISTS_OF_SCHEMAS, "a list of schemas", _is_list_of_schemas),
    (_SCHEMAS, "a schema", _is_schema_or_list),
    (("enum", "examples"), "a list", is_list),
    (("required",), "a list of names", _is_list_of_texts),
    (("type",), "the name of a JSON type, or a list of such names", _is_type),
    (
        ("$ref", "$dynamicRef", "$id", "$anchor", "format", "pattern", "contentEncoding"),
        "text",
        _is_text,
    ),
    (("description", "title", "$comment", "contentMediaType", "$schema"), "text", _is_text),
    (("minimum", "maximum"), "a number", _is_number),
    (("multipleOf",), "a number above 0", _is_factor),
    (("minLength", "maxLength", "minItems", "maxItems"), "an integer of at least 0", _is_count),
    (("minProperties", "maxProperties"), "an integer of at least 0", _is_count),
    (("exclusiveMinimum", "exclusiveMaximum"), "a number", _is_limit),
    (("deprecated", "readOnly", "writeOnly", "uniqueItems", "nullable"), "a boolean", _is_flag),
    (("discriminator",), "an object with `propertyName`", _is_discriminator),
)
_CHECKS: dict[str, _Check] = {
    name: (kind, check) for names, kind, check in _RULES for name in names
}


def find_invalid_keyword(schema: JsonObject) -> str | None:
    """Return what is wrong with a keyword of a schema, such as "`enum` must be a list"; or None."""
    waiting: list[JsonObject] = [schema]
    while waiting:
        part = waiting.pop()
        for keyword, value in part.items():
            kind, check = _CHECKS.get(keyword, ("", None))
            if check is not None and not check(value):
                return f"`{keyword}` must be {kind}"
            waiting += _inner_schemas(keyword, value)
        reference = part.get("$ref")
        if reference is not None and not _has_target(reference, schema):
            return f"the reference {reference[:80]!r} names nothing"
    return None


def _inner_schemas(keyword: str, value: object) -> Iterator[JsonObject]:
    """Yield the schemas in the value of a keyword. It has been checked."""
    if keyword in _SCHEMAS_BY_NAME and is_object(value):
        yield from filter(is_object, value.values())
    elif keyword in _LISTS_OF_SCHEMAS or keyword in _SCHEMAS:
        yield from filter(is_object, value if is_list(value) else [value])


def _has_target(reference: str, root: JsonObject) -> bool:
    """False if a reference within the schema names no schema."""
    if not reference.startswith("#/"):
        return True
    node: object = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if is_list(node):
            node = node[int(name)] if name.isdecimal() and int(name) < len(node) else None
        else:
            node = node.get(name) if is_object(node) else None
    return _is_schema(node)
