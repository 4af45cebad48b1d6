"""JSON Schema as Python types: what a wrapper's parameters and results are annotated with.

What has named parts becomes a TypedDict, written out once however often it is used. Where a
schema says more than a readable type can, it is `Any`.
"""

from __future__ import annotations

from tooli.contract.jsonable import is_list, is_object
from tooli.views.export.code import camel, docstring, literal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}
_LONGEST = 60
"""Longer choices are not written out: the type of their values says enough."""


class Types:
    """The types of a module: expressions for them, and the classes that these name."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*taken}
        self._names: dict[str, str] = {}  # a schema's parts: the class that was made of them
        self._classes: list[str] = []
        self.used: set[str] = set()

    @property
    def classes(self) -> list[str]:
        """The source of each class, the parts of one before it."""
        return list(self._classes)

    def given(self, schema: dict[str, Any], name: str) -> str:
        """The type of what callers give: a path may be a Path."""
        return self._expression(schema, name, given=True)

    def returned(self, schema: dict[str, Any] | None, name: str) -> str:
        """The type of what comes back; nothing is promised where no result is declared."""
        return "Any" if schema is None else self._expression(schema, name, given=False)

    def _expression(self, schema: Any, name: str, given: bool) -> str:
        if not is_object(schema) or "$ref" in schema or "allOf" in schema:
            return "Any"
        choices = schema["enum"] if "enum" in schema else _only(schema)
        if choices:
            return self._choice(choices) or _PLAIN.get(str(schema.get("type")), "Any")
        for word in ("anyOf", "oneOf"):
            if is_list(schema.get(word)):
                return self._union(schema[word], name, given)
        kind = schema.get("type")
        if is_list(kind):
            return self._union([{**schema, "type": one} for one in kind], name, given)
        if kind == "array":
            return self._array(schema, name, given)
        if kind == "object":
            return self._object(schema, name, given)
        if kind == "string" and schema.get("format") == "path" and given:
            self.used.add("Path")
            return "str | Path"
        return _PLAIN.get(str(kind), "Any")

    def _choice(self, values: list[Any]) -> str | None:
        if not all([type(value) in (str, int, bool) for value in values]):
            return None
        written = f"Literal[{', '.join([literal(value) for value in values])}]"
        if len(written) > _LONGEST:
            return None
        self.used.add("Literal")
        return written

    def _union(self, parts: list[Any], name: str, given: bool) -> str:
        types = [self._expression(part, name, given) for part in parts]
        if "Any" in types:
            return "Any"
        seen = dict.fromkeys([one for each in types for one in _members(each)])
        return " | ".join([*[one for one in seen if one != "None"], *["None"] * ("None" in seen)])

    def _array(self, schema: dict[str, Any], name: str, given: bool) -> str:
        row = schema.get("prefixItems")
        if is_list(row) and row and schema.get("maxItems") == len(row):
            items = [self._expression(item, name, given) for item in row]
            return f"tuple[{', '.join(items)}]" if given else "list[Any]"
        item = self._expression(schema.get("items", {}), name, given)
        if given:
            self.used.add("Sequence")  # a list of texts is no list of texts and paths
        return f"Sequence[{item}]" if given else f"list[{item}]"

    def _object(self, schema: dict[str, Any], name: str, given: bool) -> str:
        parts = schema.get("properties")
        if is_object(parts) and parts and all([key.isidentifier() for key in parts]):
            return self._class(schema, parts, name, given)
        more = schema.get("additionalProperties")
        value = self._expression(more, name, given) if is_object(more) else "Any"
        return f"dict[str, {value}]"

    def _class(self, schema: dict[str, Any], parts: dict[str, Any], name: str, given: bool) -> str:
        from keyword import iskeyword

        if any([iskeyword(key) for key in parts]):
            return "dict[str, Any]"
        required = schema.get("required", [])
        fields = {
            key: self._expression(part, camel(name, key), given) for key, part in parts.items()
        }
        key = repr((fields, sorted(required)))
        if key not in self._names:
            if name in self._taken and not given:
                name = f"{name}Result"  # what comes back has parts that may be left out going in
            self._names[key] = name = self._free(name)
            self._write(name, schema.get("description"), fields, required)
        return self._names[key]

    def _free(self, name: str) -> str:
        free, count = name, 1
        while free in self._taken:
            count += 1
            free = f"{name}{count}"
        self._taken.add(free)
        return free

    def _write(self, name: str, about: Any, fields: dict[str, str], required: list[str]) -> None:
        """A TypedDict; parts that may be missing stand in one of their own, below the others."""
        self.used.add("TypedDict")
        said = about if isinstance(about, str) and about else None
        sure = {key: kind for key, kind in fields.items() if key in required}
        rest = {key: kind for key, kind in fields.items() if key not in required}
        if sure and rest:
            base = self._free(f"{name}Required")
            self._classes.append(_typed_dict(base, "TypedDict", None, sure))
            self._classes.append(_typed_dict(name, f"{base}, total=False", said, rest))
        elif rest:
            self._classes.append(_typed_dict(name, "TypedDict, total=False", said, rest))
        else:
            self._classes.append(_typed_dict(name, "TypedDict", said, sure))


def _typed_dict(name: str, bases: str, about: str | None, fields: dict[str, str]) -> str:
    lines = [f"class {name}({bases}):"]
    if about is not None:
        lines += [docstring(about, "    "), ""]
    return "\n".join([*lines, *[f"    {key}: {kind}" for key, kind in fields.items()]])


def _only(schema: dict[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else []


def _members(written: str) -> list[str]:
    """The members of a union that is written out, however they are nested."""
    members: list[str] = []
    depth = start = 0
    quote = ""
    for i, char in enumerate(written):
        if quote:
            quote = "" if char == quote and written[i - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
        elif char == "|" and depth == 0:
            members.append(written[start:i].strip())
            start = i + 1
    return [*members, written[start:].strip()]
