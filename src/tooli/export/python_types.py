"""Convert JSON Schemas to Python annotations for exported functions.

An object with named properties becomes a TypedDict. Equal objects share one TypedDict. A schema
without a readable equivalent becomes `Any`.
"""

from __future__ import annotations

from keyword import iskeyword

from tooli.describe.schema_text import classify
from tooli.export.python_source import class_name, docstring, value_literal
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.core.protocols import JsonObject

_PYTHON_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}
_MAX_LITERAL_LENGTH = 60
"""Maximum length of a Literal. A longer one is replaced by the type of its values."""


class PythonTypes:
    """Collects the annotations of a module and the classes that they refer to."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = {*reserved}
        self._class_names: dict[str, str] = {}  # class name by fields
        self._classes: list[str] = []
        self.imported_names: set[str] = set()

    @property
    def classes(self) -> list[str]:
        """The source of each class, in order of definition."""
        return list(self._classes)

    def parameter_type(self, schema: JsonObject, name: str) -> str:
        """Return the annotation of a parameter. A path can be `str` or `pathlib.Path`."""
        return self._expression(schema, name, is_parameter=True)

    def return_type(self, schema: JsonObject | None, name: str) -> str:
        """Return the annotation of a result; `Any` if none is declared."""
        return "Any" if schema is None else self._expression(schema, name, is_parameter=False)

    def _expression(self, schema: Any, name: str, is_parameter: bool) -> str:
        if not is_object(schema) or "allOf" in schema:
            return "Any"
        kind, detail = classify(schema)
        match kind:
            case "choices":
                return self._choice(detail) or _PYTHON_TYPES.get(str(schema.get("type")), "Any")
            case "union":
                return self._union(detail, name, is_parameter)
            case "tuple" if schema.get("maxItems") == len(detail) > 0:
                items = [self._expression(item, name, is_parameter) for item in detail]
                return f"tuple[{', '.join(items)}]" if is_parameter else "list[Any]"
            case "tuple" | "list":
                return self._array(schema.get("items", {}), name, is_parameter)
            case "record" if all([key.isidentifier() and not iskeyword(key) for key in detail]):
                return self._typed_dict_for(schema, detail, name, is_parameter)
            case "dict":
                return f"dict[str, {self._expression(detail, name, is_parameter)}]"
            case "record" | "object":
                return "dict[str, Any]"
            case "plain" if schema.get("format") == "path" and is_parameter:
                self.imported_names.add("Path")
                return "str | Path"
            case _:
                return _PYTHON_TYPES.get(str(detail), "Any")

    def _choice(self, values: list[Any]) -> str | None:
        if not all([type(value) in (str, int, bool) for value in values]):
            return None
        source = f"Literal[{', '.join([value_literal(value) for value in values])}]"
        if len(source) > _MAX_LITERAL_LENGTH:
            return None
        self.imported_names.add("Literal")
        return source

    def _union(self, parts: list[Any], name: str, is_parameter: bool) -> str:
        types = [self._expression(part, name, is_parameter) for part in parts]
        if "Any" in types:
            return "Any"
        seen = dict.fromkeys([one for each in types for one in _union_members(each)])
        return " | ".join([*[one for one in seen if one != "None"], *["None"] * ("None" in seen)])

    def _array(self, items: Any, name: str, is_parameter: bool) -> str:
        item = self._expression(items, name, is_parameter)
        if is_parameter:  # list is invariant: list[str] is not a list[str | Path]
            self.imported_names.add("Sequence")
        return f"Sequence[{item}]" if is_parameter else f"list[{item}]"

    def _typed_dict_for(
        self, schema: JsonObject, parts: JsonObject, name: str, is_parameter: bool
    ) -> str:
        required = schema.get("required", [])
        fields = {
            key: self._expression(part, class_name(name, key), is_parameter)
            for key, part in parts.items()
        }
        key = repr((fields, sorted(required)))
        if key not in self._class_names:
            if name in self._reserved and not is_parameter:
                name = f"{name}Result"  # a result's required fields differ from a parameter's
            self._class_names[key] = name = self._unique_name(name)
            self._add_typed_dict(name, schema.get("description"), fields, required)
        return self._class_names[key]

    def _unique_name(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._reserved:
            count += 1
            candidate = f"{name}{count}"
        self._reserved.add(candidate)
        return candidate

    def _add_typed_dict(
        self, name: str, description: Any, fields: dict[str, str], required: list[str]
    ) -> None:
        """Define a TypedDict. If some fields are optional, a base class has the required ones."""
        self.imported_names.add("TypedDict")
        doc = description if isinstance(description, str) and description else None
        required_fields = {key: kind for key, kind in fields.items() if key in required}
        optional_fields = {key: kind for key, kind in fields.items() if key not in required}
        if required_fields and optional_fields:
            base = self._unique_name(f"{name}Required")
            self._classes.append(_typed_dict(base, "TypedDict", None, required_fields))
            self._classes.append(_typed_dict(name, f"{base}, total=False", doc, optional_fields))
        elif optional_fields:
            self._classes.append(_typed_dict(name, "TypedDict, total=False", doc, optional_fields))
        else:
            self._classes.append(_typed_dict(name, "TypedDict", doc, required_fields))


def _typed_dict(name: str, bases: str, description: str | None, fields: dict[str, str]) -> str:
    lines = [f"class {name}({bases}):"]
    if description is not None:
        lines += [docstring(description, "    "), ""]
    return "\n".join([*lines, *[f"    {key}: {kind}" for key, kind in fields.items()]])


def _union_members(union_source: str) -> list[str]:
    """Split the source of a union into its members."""
    members: list[str] = []
    depth = start = 0
    quote = ""
    for i, char in enumerate(union_source):
        if quote:
            quote = "" if char == quote and union_source[i - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
        elif char == "|" and depth == 0:
            members.append(union_source[start:i].strip())
            start = i + 1
    return [*members, union_source[start:].strip()]
