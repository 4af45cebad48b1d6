"""Fields of records: paths such as `owner.name`, their schemas, and the selection of fields.

The value of `--select` is a list of fields, such as `path, size as bytes, owner.name, tags[0]`. A
dotted field keeps its nesting (`{"owner": {"name": …}}`). If a part of it is a list, the rest
applies to each item. A renamed field (`size as bytes`) and an item of a list (`tags[0]`) become
top-level fields of the record.
"""

from __future__ import annotations

from tooli.core.tool import MAX_MESSAGE_CHARS, cut_text, quote
from tooli.similar_names import closest_match
from tooli.text.jsonable import is_list, is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject

    FieldPath: TypeAlias = tuple[str | int, ...]
    SchemaNodes: TypeAlias = list[JsonObject] | None
    """The schemas that a value may have; None if any value is possible."""
    FieldTree: TypeAlias = dict[str, "FieldTree | None"]
    """The selected fields by name, each with the fields selected inside it; None selects all."""


MAX_EXPRESSION_CHARS = 10_000
"""Maximum length of a filter or a selection."""
MAX_COPIED_FIELDS = 100
"""Maximum number of fields that a selection copies: renamed ones, and items of lists."""
_MAX_INDEX_DIGITS = 18


class ExpressionError(ValueError):
    """An invalid filter or selection. The message says what was probably meant.

    `suggested_path` is the field that is probably meant by an unknown one.
    """

    def __init__(self, message: str, suggested_path: str | None = None) -> None:
        super().__init__(cut_text(message, MAX_MESSAGE_CHARS))
        self.suggested_path = suggested_path


def check_length(text: str, option: str) -> None:
    """Raise an ExpressionError if a filter or a selection is too long."""
    if len(text) > MAX_EXPRESSION_CHARS:
        raise ExpressionError(f"The {option} has more than {MAX_EXPRESSION_CHARS:,} characters")


class MultipleValues(list["Any"]):
    """The values at a path that passes through a list."""

    __slots__ = ()


# ------------------------------------------------------------------ values

JSON_CLASSES = frozenset((str, int, float, bool, type(None), dict, list))


def to_json_value(value: object) -> Any:
    """Return a value as JSON types."""
    return value if value.__class__ in JSON_CLASSES else to_jsonable(value, [])


def get_member(value: Any, name: str | int) -> Any:
    """Return the field of an object or the item of a list; None if it is missing."""
    if value.__class__ is dict:
        return value.get(name)
    if isinstance(name, int):
        if not is_list(value):
            value = to_json_value(value)
        return value[name] if is_list(value) and -len(value) <= name < len(value) else None
    if hasattr(value.__class__, "__dataclass_fields__"):
        return getattr(value, name, None)
    value = to_json_value(value)
    return value.get(name) if is_object(value) else None


def build_getter(path: FieldPath) -> Callable[[Any], Any]:
    """Return a function that reads the value at a path of a record, as JSON types."""
    if not path:
        return to_json_value
    if len(path) == 1 and isinstance(path[0], str):
        name = path[0]

        def read_one(record: Any) -> Any:
            value = record.get(name) if record.__class__ is dict else get_member(record, name)
            return value if value.__class__ in JSON_CLASSES else to_jsonable(value, [])

        return read_one
    return lambda record: _get_at_path(record, path)


def _get_at_path(value: object, path: FieldPath) -> Any:
    for i, name in enumerate(path):
        if isinstance(name, str) and is_list(value):
            found = MultipleValues()
            for item in value:
                below = _get_at_path(item, path[i:])
                found.extend(below if below.__class__ is MultipleValues else (below,))
            return found
        value = get_member(value, name)
        if value is None:
            return None
    return to_json_value(value)


# ------------------------------------------------------------------ text of paths


def parse_path(text: str) -> FieldPath:
    """Parse a path; `.` is the record itself."""
    if text == ".":
        return ()
    path: list[str | int] = []
    for piece in text.split("."):
        name, *indexes = piece.split("[")
        if not name or not all([index[-1:] == "]" and _is_index(index[:-1]) for index in indexes]):
            raise ExpressionError(f"{quote(text)} is not a field: write name, name.part or name[0]")
        path.append(name)
        path += [int(index[:-1]) for index in indexes]
    return tuple(path)


def _is_index(text: str) -> bool:
    digits = text[1:] if text[:1] == "-" else text
    return digits.isascii() and digits.isdigit() and len(digits) <= _MAX_INDEX_DIGITS


def format_path(path: FieldPath) -> str:
    """Return the text of a path."""
    text = ""
    for name in path:
        text += f"[{name}]" if isinstance(name, int) else f".{name}"
    return text[1:] or "."


# ------------------------------------------------------------------ schemas


class RecordFields:
    """The fields of a result's records, according to its output schema.

    `is_complete` is True if the schema describes all fields that were looked up. `has_null_fields`
    is True if a field that the schema lacks may be compared with null.
    """

    def __init__(self, schema: Mapping[str, Any] | None, *, has_null_fields: bool = False) -> None:
        self.is_complete = True
        self.has_null_fields = has_null_fields
        self._definitions: Mapping[str, Any] = (schema or {}).get("$defs", {})
        variants = None if schema is None else self._variants(schema)
        self.may_be_list = variants is None or any(
            [node.get("type") == "array" for node in variants]
        )
        """True if the result may be a list."""
        self.records = variants if variants is None else self._record_schemas(variants)

    def _record_schemas(self, nodes: list[JsonObject]) -> SchemaNodes:
        """Return the schemas of records: the items of lists, and values that are not lists."""
        found: list[JsonObject] = []
        for node in nodes:
            if node.get("type") != "array":
                found.append(node)
                continue
            inner = self._item_schemas(node)
            if inner is None:
                return None
            found += inner
        return found

    def _item_schemas(self, node: Mapping[str, Any]) -> SchemaNodes:
        if "prefixItems" in node:
            return None
        return self._variants(node.get("items", {}))

    def _variants(self, node: object, parent_names: tuple[str, ...] = ()) -> SchemaNodes:
        """Return the concrete schemas that a schema allows; None if it allows anything."""
        if not is_object(node):
            return None
        reference = node.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            if name in parent_names or name not in self._definitions:
                return None
            return self._variants(self._definitions[name], (*parent_names, name))
        for keyword in ("anyOf", "oneOf"):
            if is_list(node.get(keyword)):
                return self._collect_variants(node[keyword], parent_names)
        if isinstance(node.get("type"), str):
            return [node]
        if is_list(node.get("enum")) or "const" in node:
            return [node]
        return None

    def _collect_variants(self, parts: Sequence[Any], parent_names: tuple[str, ...]) -> SchemaNodes:
        found: list[JsonObject] = []
        for each in parts:
            inner = self._variants(each, parent_names)
            if inner is None:
                return None
            found += inner
        return found

    def schemas_at(self, path: FieldPath) -> SchemaNodes:
        """Return the schemas at a path. Raises ExpressionError if the field cannot exist."""
        nodes = self.records
        for i in range(len(path)):
            if nodes is None:
                break
            nodes = self._child_schemas(nodes, path[: i + 1])
        self.is_complete = self.is_complete and nodes is not None
        return nodes

    def _child_schemas(self, nodes: list[JsonObject], path: FieldPath) -> SchemaNodes:
        """Return the schemas at a path, from those of its parent."""
        name = path[-1]
        found: list[JsonObject] = []
        field_names: list[str] = []
        is_found = False
        for node in nodes:
            if node.get("type") == "array":
                inner = self._item_schemas(node)
                if inner is None:
                    return None
                if isinstance(name, int):
                    found, is_found = [*found, *inner], True
                else:
                    nodes = [*nodes, *[schema for schema in inner if schema not in nodes]]
        for node in nodes:
            if node.get("type") != "object" or isinstance(name, int):
                continue
            properties = node.get("properties", {})
            field_names += [key for key in properties if key not in field_names]
            inner = self._property_schemas(node, name)
            if inner is None:
                return None
            found, is_found = [*found, *inner], is_found or bool(inner)
        if is_found:
            return found
        raise self._unknown_field_error(format_path(path), field_names)

    def _property_schemas(self, node: Mapping[str, Any], name: str) -> SchemaNodes:
        """Return the schemas of a property; an empty list if the object cannot have it."""
        properties = node.get("properties", {})
        if name in properties:
            return self._variants(properties[name])
        additional = node.get("additionalProperties", not properties)
        if additional is True or "patternProperties" in node:
            return None
        return self._variants(additional) if is_object(additional) else []

    @staticmethod
    def _unknown_field_error(path_text: str, field_names: Sequence[str]) -> ExpressionError:
        parent, dot, last = path_text.rpartition(".")
        closest = closest_match(last, field_names)
        available = (
            f": the fields are {', '.join(field_names)}" if field_names else ": it has no fields"
        )
        hint = f"; did you mean {closest!r}?" if closest else available
        suggested_path = f"{parent}{dot}{closest}" if closest else None
        return ExpressionError(f"Unknown field {quote(path_text)}{hint}", suggested_path)


def json_types(nodes: SchemaNodes) -> set[str] | None:
    """Return the JSON types that the schemas allow; None if any type is possible."""
    if nodes is None:
        return None
    types: set[str] = set()
    for node in nodes:
        kind = node.get("type")
        if isinstance(kind, str):
            types.add("number" if kind == "integer" else kind)
        else:
            values = node["enum"] if "enum" in node else [node["const"]]
            types.update([json_type_of(value) for value in values])
    return types


def json_type_of(value: object) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if is_list(value) else "object"


def allowed_values(nodes: SchemaNodes) -> list[object] | None:
    """Return the values that the schemas allow; None if they are not enumerated."""
    values: list[object] = []
    for node in nodes or ():
        if node.get("type") == "null":
            values.append(None)
            continue
        if "enum" not in node and "const" not in node:
            return None
        values += node["enum"] if "enum" in node else [node["const"]]
    return values or None


# ------------------------------------------------------------------ selection


def compile_selection(text: str, fields: RecordFields) -> Callable[[Any], Any]:
    """Return a function that selects fields of a record. Raises ExpressionError."""
    check_length(text, "selection of fields")
    tree: FieldTree = {}
    renamed_paths: dict[str, FieldPath] = {}
    order: dict[str, None] = {}  # the shown fields, in the order of the selection
    for field_text in text.split(","):
        path, name = _parse_field(field_text)
        fields.schemas_at(path)
        if name is None and not any([isinstance(step, int) for step in path]):
            _add_path(tree, path)
            name = str(path[0])
        else:
            name = name or format_path(path)
            if name in order:
                raise _duplicate_error(name)
            renamed_paths[name] = path
            if len(renamed_paths) > MAX_COPIED_FIELDS:
                raise ExpressionError(
                    f"The selection has more than {MAX_COPIED_FIELDS} renamed fields and items"
                )
        if name in tree and name in renamed_paths:
            raise _duplicate_error(name)
        order[name] = None
    return _build_projector(
        tree, {name: build_getter(path) for name, path in renamed_paths.items()}, tuple(order)
    )


def _duplicate_error(name: str) -> ExpressionError:
    return ExpressionError(f"{quote(name)} is selected twice: rename one of them with 'as'")


def _parse_field(text: str) -> tuple[FieldPath, str | None]:
    """Parse one field; return its path, and its new name if it has one."""
    parts = text.split()
    if len(parts) == 1 and parts != ["."]:
        return parse_path(parts[0]), None
    if len(parts) == 3 and parts[1] == "as":
        return parse_path(parts[0]), parts[2]
    if not parts:
        raise ExpressionError("A field is missing: separate fields with commas")
    raise ExpressionError(
        f"{quote(text.strip())} is not a field: write name, name.part, name[0] or name as other"
    )


def _add_path(tree: FieldTree, path: FieldPath) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(str(step), {})
        if inner is None:
            return  # the whole field is selected already
        tree = inner
    tree[str(path[-1])] = None


def _build_projector(
    tree: FieldTree, getters: dict[str, Callable[[Any], Any]], order: tuple[str, ...]
) -> Callable[[Any], Any]:
    is_nested = any([inner is not None for inner in tree.values()])
    if not is_nested and not getters:

        def choose(record: Any) -> Any:
            if record.__class__ is dict:
                return {name: record[name] for name in order if name in record}
            return _select_fields(record, tree)

        return choose

    def project(record: object) -> Any:
        selected = _select_fields(record, tree)
        if not is_object(selected):
            return selected
        for name, read in getters.items():
            value = read(record)
            selected[name] = list(value) if value.__class__ is MultipleValues else value
        return {name: selected[name] for name in order if name in selected}

    return project


def _select_fields(value: Any, tree: FieldTree) -> Any:
    """Return the selected fields of an object, or of each item of a list. Scalars are unchanged."""
    if is_list(value):
        return [_select_fields(item, tree) for item in value]
    if value.__class__ is not dict and hasattr(value.__class__, "__dataclass_fields__"):
        members: Any = value.__dataclass_fields__
    else:
        value = members = to_json_value(value)
        if not is_object(value):
            return value
    selected: JsonObject = {}
    for name, inner in tree.items():
        if name in members:
            member = get_member(value, name)
            selected[name] = member if inner is None else _select_fields(member, inner)
    return selected
