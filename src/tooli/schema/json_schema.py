"""JSON Schema of a tool's parameters and result, without `$ref`.

This module describes plain shapes; pydantic describes all other types. References in pydantic's
schemas are replaced by their definitions, because many clients do not resolve references. Only
recursive types keep them. With `NamedSchemas`, all models and enums stay references (OpenAPI).

`record_schema` is an approximation: the fields of a result, without loading pydantic.
"""

from __future__ import annotations

import sys

from tooli.core import find_loaded
from tooli.core.secret_fields import documented_default
from tooli.core.tool import (
    MISSING,
    Choice,
    Handle,
    ListOf,
    Maybe,
    ParsedText,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    TyperOnly,
    unwrap_optional,
)
from tooli.schema.tool_reader import infer_shape, return_annotation
from tooli.text.jsonable import is_list, is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Shape, Tool

    Describe: TypeAlias = Callable[[Any], JsonObject]
    """Returns the schema of an annotation."""

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ITERATOR_TYPES = ("Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator")
_STRING_TYPES = (
    *("datetime.datetime", "datetime.date", "datetime.time", "datetime.timedelta"),
    *("uuid.UUID", "decimal.Decimal", "builtins.bytes"),
)


def input_schema(tool: Tool, describe: Describe | None = None) -> JsonObject:
    """Return the schema of a tool's parameters. `input_schema=` replaces the generated one.

    `describe` returns the schemas of types that are not plain. The default uses pydantic.
    """
    if tool.schema is not None:
        return dict(tool.schema)
    docs = tool.doc.params
    properties: JsonObject = {}
    definitions: JsonObject = {}
    for param in tool.public_params:
        described = param_schema(param, docs.get(param.name), describe)
        definitions.update(described.pop("$defs", {}))
        properties[param.name] = described
    schema: JsonObject = {"type": "object", "properties": properties}
    required = [param.name for param in tool.public_params if param.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema


def param_schema(
    param: Param, doc: str | None = None, describe: Describe | None = None
) -> JsonObject:
    """Return the schema of one parameter, with bounds, description and default."""
    schema: JsonObject
    if param.schema is not None:
        return dict(param.schema)
    if hasattr(param.annotation, "__metadata__"):
        schema = (describe or _pydantic_schema)(param.annotation)
    elif param.option_kwargs.keys() & {"parser", "click_type"}:
        schema = {"type": "string"}
    else:
        schema = _untyped_collection_schema(param.annotation) or shape_schema(param.shape, describe)
        if isinstance(param.shape, Maybe) and "$defs" in schema["anyOf"][0]:
            schema["$defs"] = schema["anyOf"][0].pop("$defs")
    _add_bounds(schema, param)
    text = param.help or doc
    if text:
        from tooli.core.docstring import sanitize_doc_text

        schema["description"] = sanitize_doc_text(text)
    if not param.required and param.default not in (MISSING, None):
        default = _json_default(documented_default(param))
        if default is not MISSING:
            schema["default"] = default
    elif not param.required and param.default is None and "anyOf" in schema:
        schema["default"] = None
    return schema


def annotation_schema(annotation: object, describe: Describe | None = None) -> JsonObject:
    """Return the schema of values that an annotation accepts."""
    return _untyped_collection_schema(annotation) or shape_schema(infer_shape(annotation), describe)


def shape_schema(shape: Shape, describe: Describe | None = None) -> JsonObject:
    """Return the schema of a shape.

    `describe` returns the schemas of types that are not plain. The default uses pydantic.
    """
    describe = describe or _pydantic_schema
    match shape:
        case Scalar(kind):
            return {"type": _JSON_TYPES[kind]}
        case PathShape():
            return {"type": "string", "format": "path"}
        case Choice(_, enum):
            values = shape.raw_values
            if enum is None:
                return _literal_schema(values)
            is_json = bool(values) and all([type(value) in _JSON_TYPES for value in values])
            is_json = is_json and not isinstance(describe, NamedSchemas)
            return _add_json_type(values, {"enum": values}) if is_json else describe(enum)
        case ListOf(item, into):
            inner = shape_schema(item, describe)
            schema: JsonObject = {"type": "array", "items": inner}
            schema |= {"uniqueItems": True} if into in (set, frozenset) else {}
            return _hoist_definitions(schema, inner)
        case TupleOf(items):
            row = [shape_schema(item, describe) for item in items]
            size = len(row)
            schema = {"type": "array", "prefixItems": row, "minItems": size, "maxItems": size}
            return _hoist_definitions(schema, *row)
        case Maybe(item):
            inner = shape_schema(item, describe)
            return _hoist_definitions({"anyOf": [inner, {"type": "null"}]}, inner)
        case ParsedText(annotation) | Structured(annotation):
            return describe(annotation)
        case TyperOnly(annotation):
            name = getattr(annotation, "__name__", "")
            return {"type": "string", "format": "path"} if name.startswith("File") else {}
        case Handle():
            return shape.schema(describe)
        case _:
            return {}


def _hoist_definitions(schema: JsonObject, *parts: JsonObject) -> JsonObject:
    """Return the schema with the `$defs` of its parts moved to it: references start at the root."""
    definitions: JsonObject = {}
    for part in parts:
        definitions.update(part.pop("$defs", {}))
    return {**schema, "$defs": definitions} if definitions else schema


def _literal_schema(values: list[object]) -> JsonObject:
    chosen = {"enum": values} if len(values) > 1 else {"const": values[0]}
    return _add_json_type(values, chosen)


def _add_json_type(values: list[Any], schema: JsonObject) -> JsonObject:
    """Return the schema with the type of the values, if all have the same type."""
    value_types: set[type] = set(map(type, values))
    return {"type": _JSON_TYPES[value_types.pop()], **schema} if len(value_types) == 1 else schema


def _untyped_collection_schema(annotation: Any) -> JsonObject | None:
    """Return the schema of a collection without item type; None for other annotations."""
    while hasattr(annotation, "__supertype__"):
        annotation = annotation.__supertype__
    shape = infer_shape(annotation)
    if isinstance(shape, Maybe):
        member = next(arg for arg in annotation.__args__ if arg is not type(None))
        inner = _untyped_collection_schema(member)
        return {"anyOf": [inner, {"type": "null"}]} if inner else None
    if not isinstance(shape, ListOf) or hasattr(annotation, "__args__"):
        return None
    unique = {"uniqueItems": True} if shape.container in (set, frozenset) else {}
    return {"type": "array", "items": {}, **unique}


def _add_bounds(schema: JsonObject, param: Param) -> None:
    """Add `min` and `max` of Option(…) to the schema of each number."""
    kwargs = param.option_kwargs
    bounds = {
        keyword: kwargs[name]
        for name, keyword in (("min", "minimum"), ("max", "maximum"))
        if kwargs.get(name) is not None and not kwargs.get("clamp")
    }
    shape = unwrap_optional(param.shape)
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    numbers: Iterable[tuple[Shape, JsonObject]] = [(shape, schema)]
    if isinstance(shape, ListOf):
        numbers = [(shape.item, schema.get("items", {}))]
    elif isinstance(shape, TupleOf):
        numbers = zip(shape.items, schema.get("prefixItems", ()), strict=False)
    for item, part in numbers:
        if isinstance(item, Scalar) and part.get("type") in ("integer", "number"):
            part.update(bounds)


def _json_default(default: object) -> object:
    warnings: list[str] = []
    value = MISSING if default is MISSING else to_jsonable(default, warnings)
    return MISSING if warnings else value


def output_schema(tool: Tool) -> JsonObject | None:
    """Return the schema of a tool's result, or None if it declares no result. It is cached."""
    key = tool.route or tool  # each call of a tool with a route has its own copy of the tool
    found = _output_schemas.get(id(key))
    if found is None:  # the cache keeps the key, so that its id is not reused
        found = _output_schemas[id(key)] = (key, _describe_output(tool, result_schema))
    return found[1]


_output_schemas: dict[int, tuple[object, JsonObject | None]] = {}


def named_output_schema(tool: Tool, describe: NamedSchemas) -> JsonObject | None:
    """Return the schema of a tool's result, in which models and enums are references."""
    return _describe_output(tool, describe.describe_result)


def _describe_output(tool: Tool, describe: Describe) -> JsonObject | None:
    if tool.guidance.output_schema is not None:
        return {**tool.guidance.output_schema}
    annotation = return_annotation(tool)
    return None if _is_content(annotation) else _describe_result(annotation, describe)


def _describe_result(annotation: Any, describe: Describe) -> JsonObject | None:
    """Return the schema of a result, or None if none is declared. An iterator is an array."""
    if annotation in (MISSING, None, type(None)):
        return None
    origin = getattr(annotation, "__origin__", annotation)
    name = getattr(origin, "__name__", "")
    if name not in _ITERATOR_TYPES or origin.__module__ != "collections.abc":
        return describe(annotation)
    type_args = getattr(annotation, "__args__", ())
    items = describe(type_args[0]) if type_args else {}
    return _hoist_definitions({"type": "array", "items": items}, items)


def _is_content(annotation: object) -> bool:
    """True if the result is `Content`, which has no schema."""
    content_class = find_loaded("tooli.core.result_types", "Content")
    if content_class is None:
        return False
    if isinstance(annotation, type) and issubclass(annotation, content_class):
        return True
    return any([_is_content(part) for part in getattr(annotation, "__args__", ())])


def result_schema(annotation: Any, describe: NamedSchemas | None = None) -> JsonObject:
    """Return the schema of serialized results with this annotation."""
    untyped_schema = _untyped_collection_schema(annotation)
    if untyped_schema is not None:
        return untyped_schema
    shape = infer_shape(annotation)
    if _is_plain(shape):
        return shape_schema(shape, describe)
    from tooli.schema.detail_fields import make_details_optional

    is_named = describe is not None
    return make_details_optional(_pydantic_schema(annotation, "serialization", is_named=is_named))


def _is_plain(shape: Shape) -> bool:
    match shape:
        case Scalar() | PathShape() | Choice():
            return True
        case ListOf(item, into):
            return into is list and _is_plain(item)
        case Maybe(item):
            return _is_plain(item)
        case Structured(annotation):
            return annotation is dict
        case _:
            return False


# ------------------------------------------------------------------ pydantic's schemas


class NamedSchemas:
    """Describes types so that models and enums stay references to `$defs`.

    Each definition has the keyword `CLASS_KEYWORD`, which identifies its class. Two classes may
    have the same name.
    """

    def __call__(self, annotation: object) -> JsonObject:
        """Return the schema of arguments with this annotation."""
        return _pydantic_schema(annotation, is_named=True)

    def describe_result(self, annotation: object) -> JsonObject:
        """Return the schema of results with this annotation."""
        return result_schema(annotation, self)


CLASS_KEYWORD = "x-tooli-class"
"""Keyword that identifies the class of a definition: its module, name and id."""


def _pydantic_schema(
    annotation: object, mode: str = "validation", *, is_named: bool = False
) -> JsonObject:
    simple = None if is_named else _simple_dict(annotation)
    if simple is not None:
        return simple
    from tooli.schema.pydantic_bridge import pydantic_json_schema

    try:
        schema = pydantic_json_schema(annotation, mode, CLASS_KEYWORD if is_named else None)
    except Exception:  # pydantic can validate the type but not describe it
        return {}
    definitions = schema.pop("$defs", {})
    if is_named:
        return _refer_to_root(schema, definitions)
    return inline_references(schema, definitions)


def _refer_to_root(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """Return the schema with its definitions. A schema of a class becomes one of them."""
    if CLASS_KEYWORD in schema:
        name = str(schema.get("title") or "Model")
        while name in definitions:  # a class with the same name is inside it
            name += "_"
        definitions, schema = {name: schema, **definitions}, {"$ref": f"#/$defs/{name}"}
    return {**schema, "$defs": definitions} if definitions else schema


def _simple_dict(annotation: Any) -> JsonObject | None:
    """Return the schema of `dict`, or of `dict[str, T]` for a plain T, without pydantic."""
    if annotation is not dict and getattr(annotation, "__origin__", None) is not dict:
        return None
    key, value = getattr(annotation, "__args__", (str, object))
    if key is not str:
        return None
    if _is_any(value):
        return {"type": "object", "additionalProperties": True}
    shape = infer_shape(value)
    if isinstance(shape, (Scalar, PathShape, Choice)):
        return {"type": "object", "additionalProperties": shape_schema(shape)}
    return None


def _is_any(annotation: object) -> bool:
    """True for `object` and `typing.Any`."""
    return annotation is object or annotation is (find_loaded("typing", "Any") or object)


def inline_references(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """Return the schema with references replaced. Recursive definitions stay in `$defs`."""
    inliner = _Inliner(definitions)
    inlined = inliner.inline(schema)
    if inliner.retained:
        inlined["$defs"] = inliner.retained
    return inlined


class _Inliner:
    """Replaces references by their definitions. Recursive definitions are in `retained`."""

    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions
        self.retained: JsonObject = {}

    def inline(self, node: Any) -> Any:
        """Return a part of a schema with references replaced."""
        if is_list(node):
            return [self.inline(item) for item in node]
        if not is_object(node):
            return node
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return {
                key: self._inline_keyword(key, value)
                for key, value in node.items()
                if key != "title" or not isinstance(value, str)
            }
        name = reference.rpartition("/")[2]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        if _is_recursive(name, self._definitions):
            if name not in self.retained:
                self.retained[name] = {}
                self.retained[name] = self.inline(self._definitions[name])
            return {**rest, "$ref": f"#/$defs/{name}"}
        body = self.inline(self._definitions[name])
        return {**body, **{key: self._inline_keyword(key, rest[key]) for key in rest}}

    def _inline_keyword(self, key: str, value: object) -> object:
        """Inline the value of a keyword, which is a schema, schemas by name, or data."""
        if key in ("default", "const", "enum", "examples"):
            return value
        if key == "discriminator" and is_object(value):  # its mapping refers to definitions
            return {"propertyName": value["propertyName"]}
        if key in ("properties", "patternProperties") and is_object(value):
            return {name: self.inline(part) for name, part in value.items()}
        return self.inline(value)


def _is_recursive(name: str, definitions: JsonObject) -> bool:
    """True if a definition refers to itself, directly or through others."""
    todo: list[Any] = [definitions[name]]
    seen: set[str] = set()
    while todo:
        node = todo.pop()
        if is_object(node):
            reference = node.get("$ref")
            if isinstance(reference, str):
                target = reference.rpartition("/")[2]
                if target == name:
                    return True
                if target not in seen:
                    seen.add(target)
                    todo.append(definitions[target])
            todo.extend(node.values())
        elif is_list(node):
            todo.extend(node)
    return False


# ------------------------------------------------------------------ approximate schemas
#
# Filters and field selection need only the names and types of fields. Their schema is built
# without pydantic where that is possible, because importing pydantic takes longer than the call.


class _NeedsPydantic(Exception):  # noqa: N818
    """The type cannot be described without pydantic."""


def record_schema(tool: Tool) -> JsonObject | None:
    """Return a schema of a tool's result that names its fields; None if it declares no result."""
    if "pydantic" not in sys.modules:
        try:
            return approximate_schema(return_annotation(tool))
        except _NeedsPydantic:
            pass
    return output_schema(tool)


def approximate_schema(annotation: Any) -> JsonObject | None:
    """Return the approximate schema of an annotation.

    Raises _NeedsPydantic if only pydantic can describe it.
    """
    return _describe_result(annotation, _approximate)


def _approximate(annotation: object, parents: tuple[object, ...] = ()) -> JsonObject:
    """Return the approximate schema of a type. `parents` are the types that contain it."""
    return annotation_schema(annotation, lambda inner: _describe_without_pydantic(inner, parents))


def _describe_without_pydantic(annotation: Any, parents: tuple[object, ...]) -> JsonObject:
    name = f"{getattr(annotation, '__module__', '')}.{getattr(annotation, '__name__', '')}"
    if name in _STRING_TYPES:
        return {"type": "string"}
    if _is_any(annotation):
        return {}
    simple = _simple_dict(annotation)
    if simple is not None:
        return simple
    if getattr(annotation, "__origin__", None) is dict:
        values = _approximate(annotation.__args__[1], parents)
        return {"type": "object", "additionalProperties": values}
    is_typed_dict = hasattr(annotation, "__total__") and hasattr(annotation, "__required_keys__")
    is_dataclass = hasattr(annotation, "__dataclass_fields__") and not hasattr(
        annotation, "__pydantic_fields__"
    )
    if annotation in parents or not (is_typed_dict or is_dataclass):
        raise _NeedsPydantic
    import typing

    try:
        hints = typing.get_type_hints(annotation, include_extras=True)
    except Exception:  # a name is not defined here
        raise _NeedsPydantic from None
    names = hints if is_typed_dict else annotation.__dataclass_fields__
    inside = (*parents, annotation)
    return {
        "type": "object",
        "properties": {name: _approximate(hints[name], inside) for name in names},
    }
