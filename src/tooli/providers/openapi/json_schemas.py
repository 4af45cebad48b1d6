"""Convert the schemas of an OpenAPI document to JSON Schema without references.

Swagger 2 and OpenAPI 3.0 have their own dialects (`nullable`, a boolean `exclusiveMinimum`), which
become JSON Schema 2020-12. A schema that contains itself is cut where it does, and a large one
where it gets too deep: such a place allows any value of its type. So a converted schema allows
every value that the original one allows.
"""

from __future__ import annotations

import re

from tooli.errors import DefinitionError
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.document import Document

INPUT_DEPTHS = (4, 3, 2, 1)
"""How deep the schema of an input may be. The next depth is tried if it has too many values."""
OUTPUT_DEPTHS = (3, 2, 1)
MAX_INPUT_VALUES = 600
"""Maximum number of schemas in the schema of an input, unless the smallest depth has more."""
MAX_OUTPUT_VALUES = 80
_MAX_ENUM_VALUES = 500
_MAX_OUTPUT_CHARS = 120
"""Maximum length of a description in the schema of a result."""
_TYPES = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_TYPE_SPELLINGS = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
_UNIONS = ("anyOf", "oneOf")
_MERGEABLE = frozenset(
    ("type", "properties", "required", "description", "default", "deprecated", "readOnly")
)


class SchemaConverter:
    """Converts the schemas of one document.

    Args:
        document: The document that references are looked up in.
        for_output: True for results: properties that are only written are left out, and only types
            and descriptions are kept. False for inputs: properties that are only read are left out.
        max_depth: How deep a schema may be at most; None for the usual depth.
    """

    def __init__(
        self, document: Document, *, for_output: bool = False, max_depth: int | None = None
    ) -> None:
        self._document = document
        self._for_output = for_output
        self._left_out = "writeOnly" if for_output else "readOnly"
        depths = OUTPUT_DEPTHS if for_output else INPUT_DEPTHS
        self._depths = [depth for depth in depths if max_depth is None or depth <= max_depth]
        self._max_values = MAX_OUTPUT_VALUES if for_output else MAX_INPUT_VALUES
        self._count = 0
        self._is_last = False  # True: there is no smaller depth to try

    def convert(self, schema: object) -> JsonObject:
        """Return a schema as JSON Schema."""
        for depth in self._depths:
            self._count = 0
            self._is_last = depth == self._depths[-1]
            try:
                return self._convert(schema, depth, ())
            except _TooLarge:
                continue
        return {}

    def _convert(self, node: object, depth: int, inside: tuple[str, ...]) -> JsonObject:
        """Return a schema that is converted down to a depth.

        `inside` are the references that contain it.
        """
        self._count += 1
        if self._count > self._max_values and not self._is_last:
            raise _TooLarge
        if self._count > 10 * self._max_values or not is_object(node):
            return {}
        notes: JsonObject = {}
        hops = 0
        while isinstance(node.get("$ref"), str):
            reference: str = node["$ref"]
            notes = {**_notes(node), **notes}
            target: object = self._document.find(reference)
            hops += 1
            if reference in inside or hops > 50:
                return {**self._cut(target), **notes}
            inside = (*inside, reference)
            if not is_object(target):
                return notes
            node = target
        found = self._keywords(node, notes)
        self._convert_parts(
            node, found, lambda part, step: self._convert(part, depth - step, inside), depth
        )
        return _with_null(found) if _is_nullable(node) else found

    def _keywords(self, node: JsonObject, notes: JsonObject) -> JsonObject:
        """Return the valid keywords of a schema that contain no other schema."""
        found: JsonObject = {**_notes(node), **notes}
        if self._for_output and "description" in found:
            found["description"] = found["description"].partition("\n")[0][:_MAX_OUTPUT_CHARS]
        kinds = _read_types(node)
        if kinds:
            found["type"] = kinds[0] if len(kinds) == 1 else kinds
        if self._for_output:
            return found
        for keyword, value in node.items():
            check = _CHECKS.get(keyword)
            if check is not None and check(value):
                found[keyword] = value
        for keyword, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if node.get(keyword) is True and bound in found:  # OpenAPI 3.0 and Swagger 2
                found[keyword] = found.pop(bound)
        if kinds == ["file"]:
            found["type"] = "string"
        return found

    def _convert_parts(
        self,
        node: JsonObject,
        found: JsonObject,
        convert: Callable[[object, int], JsonObject],
        depth: int,
    ) -> None:
        """Add the keywords that contain other schemas."""
        properties = node.get("properties")
        if is_object(properties) and depth > 0:
            kept = {
                str(name): part for name, part in properties.items() if not self._is_left_out(part)
            }
            found["properties"] = {name: convert(part, 1) for name, part in kept.items()}
            found.setdefault("type", "object")
            if not self._for_output:
                left_out = properties.keys() - kept.keys()
                required = [n for n in _strings(node.get("required")) if n not in left_out]
                if required:
                    found["required"] = list(dict.fromkeys(required))
        for keyword in ("items", "additionalProperties"):
            part = node.get(keyword)
            if is_object(part) and depth > 0:
                found[keyword] = convert(part, 1)
            elif is_object(part) and keyword == "items":
                found[keyword] = self._cut(part)
            elif part is False and keyword != "items" and depth > 0 and not self._for_output:
                found[keyword] = False
        prefix = node.get("prefixItems")
        if is_list(prefix) and depth > 0 and prefix:
            found["prefixItems"] = [convert(part, 1) for part in prefix]
        for keyword in _UNIONS:
            parts = node.get(keyword)
            if is_list(parts) and parts and depth > 0 and "anyOf" not in found:
                # A part that is cut allows more, so that several parts of `oneOf` may fit.
                found["anyOf"] = [
                    self._discriminated(node, part, convert(part, 0)) for part in parts
                ]
        parts = node.get("allOf")
        if is_list(parts) and parts and depth > 0:
            _merge_all(found, [convert(part, 0) for part in parts])

    def _is_left_out(self, part: object) -> bool:
        target = part
        if is_object(part) and isinstance(part.get("$ref"), str):
            try:
                target = self._document.resolve(part)
            except DefinitionError:
                return False
        if not is_object(target):
            return False
        return target.get(self._left_out) is True or (
            is_object(part) and part.get(self._left_out) is True
        )

    def _discriminated(self, node: JsonObject, part: object, found: JsonObject) -> JsonObject:
        """Return an alternative with the values of the property that selects it."""
        rule, reference = node.get("discriminator"), part.get("$ref") if is_object(part) else None
        name = rule.get("propertyName") if is_object(rule) else None
        properties = found.get("properties", {})
        if not isinstance(name, str) or not isinstance(reference, str) or name not in properties:
            return found
        mapping = rule.get("mapping") if is_object(rule) else None
        names = mapping.items() if is_object(mapping) else ()
        own = reference.rpartition("/")[2]
        values = [str(key) for key, target in names if target in (reference, own)] or [own]
        if "enum" in properties[name] or "const" in properties[name] or self._for_output:
            return found
        chosen = {**properties[name], "type": "string", "enum": values}
        required = dict.fromkeys([*found.get("required", ()), name])
        return {**found, "properties": {**properties, name: chosen}, "required": list(required)}

    def _cut(self, node: object, hops: int = 0) -> JsonObject:
        """Return what a schema says about its own type, and its description."""
        if not is_object(node):
            return {}
        if isinstance(node.get("$ref"), str) and hops < 5:
            return {**self._cut(self._document.find(node["$ref"]), hops + 1), **_notes(node)}
        kinds = _read_types(node)
        if not kinds and is_object(node.get("properties")):
            kinds = ["object"]
        found: JsonObject = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
        if kinds == ["array"] and is_object(node.get("items")) and hops < 5:
            found["items"] = self._cut(node["items"], hops + 1)
        found |= _notes(node)
        return _with_null(found) if _is_nullable(node) else found


class _TooLarge(Exception):  # noqa: N818
    """A schema has too many values at the depth that is tried."""


def _notes(node: JsonObject) -> JsonObject:
    description = node.get("description")
    return {"description": description} if isinstance(description, str) and description else {}


def _read_types(node: Mapping[str, object]) -> list[str]:
    """Return the types of a schema; none if one is unknown, so that every value is allowed."""
    declared = node.get("type")
    names: Sequence[object] = declared if is_list(declared) else [declared]
    if names == ["file"]:
        return ["string"]
    known = [_TYPE_SPELLINGS.get(n, n) for n in names if isinstance(n, str)]
    return known if len(known) == len(names) and _TYPES.issuperset(known) else []


def _is_nullable(node: Mapping[str, object]) -> bool:
    return node.get("nullable") is True or node.get("x-nullable") is True


def _with_null(schema: JsonObject) -> JsonObject:
    """Return a schema that allows null as well."""
    if not schema.keys() - {"description", "default"}:
        return schema
    kind = schema.get("type")
    if not {"anyOf", "allOf", "const"}.isdisjoint(schema) or kind is None:
        if schema.keys() >= {"anyOf"} and not schema.keys() - {"anyOf", "description"}:
            return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
        notes = {key: schema.pop(key) for key in ("description", "default") if key in schema}
        return {"anyOf": [schema, {"type": "null"}], **notes}
    kinds: list[Any] = list(kind) if is_list(kind) else [kind]
    if "null" not in kinds:
        schema["type"] = [*kinds, "null"]
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _merge_all(found: JsonObject, parts: Sequence[JsonObject]) -> None:
    """Add the parts of `allOf` to a schema: merged, if they are plain objects."""
    parts = [_without_false(part) for part in parts]
    own = {**found}
    known = own.get("properties", {})
    is_plain = all([_MERGEABLE.issuperset(p) for p in (own, *parts)]) and all(
        [p.get("type", "object") == "object" for p in (own, *parts)]
    )
    if len(parts) == 1 and not (own.keys() & parts[0].keys()) - {"description"}:
        found.update({**parts[0], **own})
        return
    if not is_plain:
        kept = [part for part in parts if part.keys() - {"description"}]
        if kept:
            found["allOf"] = kept
        return
    properties: JsonObject = {}
    required: list[str] = []
    for part in (*parts, {"properties": known, "required": own.get("required", ())}):
        properties.update(part.get("properties", {}))
        required += part.get("required", ())
    found.update({"type": "object", "properties": properties})
    if required:
        found["required"] = list(dict.fromkeys(required))
    described = next(filter(None, [p.get("description") for p in (own, *parts)]), None)
    if described:
        found["description"] = described


def _without_false(part: JsonObject) -> JsonObject:
    """Return a part of `allOf` that allows the properties of the other parts."""
    return {k: v for k, v in part.items() if k != "additionalProperties" or v is not False}


def _strings(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if is_list(value) else []


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pattern(value: object) -> bool:
    """True for a regular expression that Python and JavaScript understand."""
    if not isinstance(value, str) or len(value) > 1_000:
        return False
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError):
        return False
    return "\\A" not in value and "\\Z" not in value and "\\z" not in value


_CHECKS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems"),
            *("minProperties", "maxProperties"),
        ),
        _is_count,
    ),
    "pattern": _is_pattern,
    "format": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool),
    "deprecated": lambda value: value is True,
    "enum": lambda value: is_list(value) and 0 < len(value) <= _MAX_ENUM_VALUES,
    "const": lambda value: True,
    "default": lambda value: True,
    "contentMediaType": lambda value: isinstance(value, str),
    "contentEncoding": lambda value: isinstance(value, str),
}
