"""Read objects from the text of a command line: JSON, `@file`, `key=value` and dotted flags."""

from __future__ import annotations

import json

from tooli.core.caller_files import current_file_rules, open_caller_file
from tooli.core.tool import ConversionError, ListOf, quote, unwrap_optional
from tooli.errors import AuthError
from tooli.schema.described import JsonSchemaType, json_kind
from tooli.schema.pydantic_bridge import get_type_adapter, validate_input
from tooli.schema.pydantic_messages import iter_variants
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param


def parse_structured(
    param: Param,
    texts: Sequence[str],
    dotted: Mapping[str, Sequence[str]],
    check: Callable[[object], None] = lambda value: None,
    warnings: list[str] | None = None,
) -> object:
    """Parse an object from JSON, `@file`, `key=value` and dotted flags. The last value wins.

    `check` is called with the JSON value before pydantic validates it. Ignored fields are added to
    `warnings`.
    """
    try:
        value, flags = _read_structured(param, texts, dotted)
        check(value)
        if hasattr(param.annotation, "tooli_schema"):
            return value  # the `argument_check` of the tool validates it
        return validate_input(param, value, warnings, flags)
    except AuthError as denial:  # of a file
        denial.field = param.name
        raise


def _read_structured(
    param: Param, texts: Sequence[str], dotted: Mapping[str, Sequence[str]]
) -> tuple[Any, list[tuple[str, ...]]]:
    """Return the JSON value that texts and dotted flags describe, and the locations of flags."""
    shape = unwrap_optional(param.shape)
    if isinstance(shape, ListOf):
        if dotted:
            raise ConversionError("the objects of a list have no flags: give each one as JSON")
        parsed = [parse_json_text(text) for text in texts]
        single = parsed[0] if len(parsed) == 1 else None
        return single if is_list(single) else parsed, []
    schema = getattr(param.annotation, "tooli_schema", None)
    kinds = None if schema is None else param.annotation.kinds
    if schema is None:
        schema = get_type_adapter(param.annotation).json_schema()
    flags: list[tuple[str, ...]] = []
    base: Any = {}
    for text in texts:
        if _is_assignment(text) and (not kinds or "object" in kinds):
            name, _, assigned = text.partition("=")
            part: Any = {}
            flags.append(_set_at_path(part, [name], [assigned], schema, kinds is not None))
        else:
            part = parse_json_text(text) if kinds is None else _parse_by_kinds(text, kinds)
        base = {**base, **part} if is_object(part) and is_object(base) else part
    if dotted and not is_object(base):
        raise ConversionError("dotted flags need an object")
    for path, values in dotted.items():
        flags.append(_set_at_path(base, path.split("."), values, schema, kinds is not None))
    return base, flags


def _parse_by_kinds(text: str, kinds: frozenset[str]) -> object:
    """Parse a value of one of these JSON types. Text of no other type is a string."""
    if kinds and kinds.isdisjoint(("object", "array")) and text[:1] in ("@", "{", "["):
        return text
    value = parse_json_text(text)
    kind = json_kind(value)
    is_allowed = kind in kinds or (kind == "integer" and "number" in kinds)
    return text if "string" in kinds and not is_allowed else value


def parse_json_text(text: str) -> object:
    """Parse JSON from text or `@file`. Return text that is not JSON as it is."""
    source = text
    if text[:1] == "@":
        try:
            data = open_caller_file(text[1:], rules=current_file_rules.get()).read_object()
            source = _decode(data)
        except (OSError, UnicodeDecodeError, ValueError) as failure:
            reason = getattr(failure, "strerror", None) or failure
            raise ConversionError(
                f"{quote(text[1:])} cannot be read: {reason}", code="E1008"
            ) from None
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as failure:
        if source is not text or text[:1] in ("{", "["):
            raise ConversionError(f"not valid JSON: {failure}", code="E1008") from None
        return text


def _decode(data: bytes) -> str:
    """Decode the content of a file like `open(…, encoding="utf-8")`."""
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _is_assignment(text: str) -> bool:
    name, found, _ = text.partition("=")
    return bool(found) and text[:1] not in ("{", "[", "@", '"') and bool(name.strip())


def _set_at_path(
    holder: JsonObject,
    path: Sequence[str],
    texts: Sequence[str],
    schema: JsonObject,
    is_described: bool = False,
) -> tuple[str, ...]:
    """Set the value at a dotted path, and return the names in the path.

    The schema decides whether the value is a list or an object. A name may be written with hyphens
    in place of underscores. `is_described` is True if the schema has no Python type: pydantic does
    not convert the text of numbers then.
    """
    current_schema: Any = schema
    names: list[str] = []
    for typed in path:
        name, current_schema = _find_child(current_schema, typed, schema)
        names.append(name)
        if len(names) == len(path):
            break
        inner = holder.setdefault(name, {})
        if not is_object(inner):
            raise ConversionError(
                f"{quote(name)} is given both as a value and by its fields", (name,)
            )
        holder = inner
    variants = iter_variants(current_schema, schema)
    json_types = {node["type"] for node in variants if isinstance(node.get("type"), str)}
    value = _convert_by_type(texts, json_types)
    if is_described and isinstance(value, str) and json_types:
        value = _parse_by_kinds(value, frozenset(json_types))
    elif is_described and is_list(value):
        value = [_parse_by_kinds(text, _item_kinds(current_schema)) for text in texts]
    holder[names[-1]] = value
    return tuple(names)


def _item_kinds(schema: object) -> frozenset[str]:
    items = schema.get("items") if is_object(schema) else None
    return JsonSchemaType(items).kinds if is_object(items) else frozenset()


def _convert_by_type(texts: Sequence[str], json_types: set[str]) -> object:
    if "array" in json_types and not (len(texts) == 1 and texts[0][:1] in ("[", "@")):
        return list(texts)
    text = texts[-1]
    if text[:1] in ("{", "[", "@") and json_types & {"object", "array"}:
        return parse_json_text(text)
    if text[:1] in ("{", "[") and not json_types:  # an undeclared field, or a part of an alias path
        try:
            return json.loads(text)
        except ValueError:
            pass
    return text


def _find_child(schema: object, typed: str, root: JsonObject) -> tuple[str, object]:
    """Return the name of a field and its schema.

    A name that is not a field belongs to the additional properties. Its schema is {} if there are
    none.
    """
    variants = list(iter_variants(schema, root))
    for name in (typed, typed.replace("-", "_")):
        for variant in variants:
            if name in variant.get("properties", {}):
                return name, variant["properties"][name]
    for variant in variants:
        if isinstance(variant.get("additionalProperties"), dict):
            return typed, variant["additionalProperties"]
    return typed, {}
