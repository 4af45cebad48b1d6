"""Schemas of arguments without the constructs that hosts and frameworks of agents refuse.

A portable schema accepts everything that the full schema accepts. The app itself validates the
arguments, so what a portable schema leaves out is still checked. docs/exports.md lists which
constructs are refused by whom.
"""

from __future__ import annotations

from tooli.schema.param_aliases import ascii_aliases
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

RECURSION_DEPTH = 3
"""How often a recursive model is written inside itself before the schema is cut."""

_MAX_EXPANSIONS = 60
"""How many recursive definitions are written out; if there are more, the depth is reduced."""

_DATA_KEYWORDS = ("default", "const", "enum", "examples")
_SCHEMAS_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs")
_REFUSED_FORMATS = {
    "binary": None,
    "password": None,
    "base64": "base64",
    "base64url": "base64, URL-safe",
}
"""Formats of bytes and secrets, and the text that replaces each in the description."""


def portable_arguments(tool: Tool, schema: JsonObject) -> JsonObject:
    """Return the portable schema of a tool's arguments, with ASCII names of parameters.

    A schema that the author wrote (`input_schema=`) stays unchanged.
    """
    if tool.schema is not None:
        return schema
    schema = portable_schema(schema)
    alias_by_name = {name: alias for alias, name in ascii_aliases(tool).items()}
    properties: JsonObject = schema.get("properties", {})
    if alias_by_name.keys().isdisjoint(properties):
        return schema
    renamed: JsonObject = {}
    for name, part in properties.items():
        if name in alias_by_name:
            text = " ".join([f"{name}.", part.get("description", "")]).strip()
            part = {**part, "description": text}
        renamed[alias_by_name.get(name, name)] = part
    schema = {**schema, "properties": renamed}
    if "required" in schema:
        schema["required"] = [alias_by_name.get(name, name) for name in schema["required"]]
    return schema


def portable_schema(schema: JsonObject) -> JsonObject:
    """Return a schema without `discriminator`, recursion, and formats of bytes and secrets.

    Tuples have `items` in addition to `prefixItems`, which some hosts do not know.
    """
    definitions: JsonObject = schema.get("$defs", {})
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    converter = _Converter(definitions, RECURSION_DEPTH)
    converted = converter.convert(inner)
    for depth in range(RECURSION_DEPTH - 1, -1, -1):
        if converter.expansions <= _MAX_EXPANSIONS:
            break
        converter = _Converter(definitions, depth)
        converted = converter.convert(inner)
    return {**converted, "$defs": definitions} if converter.has_other_references else converted


class _Converter:
    """Converts the parts of a schema. References are replaced down to a depth."""

    def __init__(self, definitions: JsonObject, depth: int) -> None:
        self._definitions = definitions
        self._depth = depth
        self.expansions = 0
        self.has_other_references = False

    def convert(self, node: Any, inside: tuple[str, ...] = ()) -> Any:
        """Return a portable schema. `inside` are the definitions that contain it."""
        if is_list(node):
            return [self.convert(item, inside) for item in node]
        if not is_object(node):
            return node
        reference = node.get("$ref")
        if isinstance(reference, str):
            name = reference.removeprefix("#/$defs/")
            if name in self._definitions:
                rest = {key: value for key, value in node.items() if key != "$ref"}
                return {**self._expand(name, inside), **rest}
            self.has_other_references = True
        converted = {
            key: self._convert_keyword(key, value, inside)
            for key, value in node.items()
            if key != "discriminator"
        }
        return _with_items(_without_format(converted))

    def _expand(self, name: str, inside: tuple[str, ...]) -> JsonObject:
        definition = self._definitions[name]
        if inside.count(name) > self._depth or self.expansions > _MAX_EXPANSIONS:
            kind = {"type": definition["type"]} if "type" in definition else {}
            return {**kind, "description": f"{name}, as above."}
        self.expansions += 1
        return self.convert(definition, (*inside, name))

    def _convert_keyword(self, key: str, value: Any, inside: tuple[str, ...]) -> Any:
        """Convert the value of a keyword, which is a schema, schemas by name, or data."""
        if key in _DATA_KEYWORDS:
            return value
        if key in _SCHEMAS_BY_NAME and is_object(value):
            return {name: self.convert(part, inside) for name, part in value.items()}
        return self.convert(value, inside)


def _with_items(schema: JsonObject) -> JsonObject:
    """Return the schema of a tuple with `items`; Codex would write that the items are strings.

    `items` applies only to items after those of `prefixItems`, and a tuple has no such items.
    """
    parts = schema.get("prefixItems")
    if not is_list(parts) or not parts or "items" in schema:
        return schema
    kinds = [part for i, part in enumerate(parts) if part not in parts[:i]]
    return {**schema, "items": {"anyOf": kinds} if len(kinds) > 1 else kinds[0]}


def _without_format(schema: JsonObject) -> JsonObject:
    if schema.get("format") not in _REFUSED_FORMATS or schema.get("type") != "string":
        return schema
    note = _REFUSED_FORMATS[schema["format"]]
    kept = {key: value for key, value in schema.items() if key != "format"}
    if note is not None:
        text = f"{schema['description']} ({note})" if "description" in schema else note
        kept["description"] = text
    return kept
