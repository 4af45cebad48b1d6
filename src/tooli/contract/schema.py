"""JSON Schema of a tool's parameters and result, without `$ref`.

Plain shapes are described here; everything else by pydantic, with its references
put in place. Only a type that contains itself keeps one: it is the sole way to say so.
"""

from __future__ import annotations

import sys

from tooli.contract.jsonable import is_list, is_object
from tooli.contract.reading import returns_of, shape_of
from tooli.contract.tool import (
    MISSING,
    Choice,
    Foreign,
    Handle,
    ListOf,
    Maybe,
    PathShape,
    Scalar,
    Structured,
    Text,
    TupleOf,
    plain,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Param, Shape, Tool

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def input_schema(tool: Tool) -> dict[str, Any]:
    """The parameters of a tool, as one object; what the author wrote himself stands as it is."""
    if tool.schema is not None:
        return dict(tool.schema)
    docs = tool.doc.params
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for param in tool.public:
        described = param_schema(param, docs.get(param.name))
        definitions.update(described.pop("$defs", {}))
        properties[param.name] = described
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [param.name for param in tool.public if param.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema


def param_schema(param: Param, doc: str | None = None) -> dict[str, Any]:
    """One parameter: its type, its bounds, what it means, its default."""
    schema: dict[str, Any]
    if hasattr(param.annotation, "__metadata__"):
        schema = _by_pydantic(param.annotation)
    elif param.settings.keys() & {"parser", "click_type"}:
        schema = {"type": "string"}
    else:
        schema = _loose(param.annotation) or shape_schema(param.shape)
        if isinstance(param.shape, Maybe) and "$defs" in schema["anyOf"][0]:
            schema["$defs"] = schema["anyOf"][0].pop("$defs")
    _add_bounds(schema, param)
    text = param.help or doc
    if text:
        from tooli.contract.docstring import readable

        schema["description"] = readable(text)
    if not param.required and param.default not in (MISSING, None):
        default = _json_default(param.default)
        if default is not MISSING:
            schema["default"] = default
    elif not param.required and param.default is None and "anyOf" in schema:
        schema["default"] = None
    return schema


def annotation_schema(annotation: Any) -> dict[str, Any]:
    """What may be given for an annotation."""
    return _loose(annotation) or shape_schema(shape_of(annotation))


def shape_schema(shape: Shape) -> dict[str, Any]:
    """One shape."""
    match shape:
        case Scalar(kind):
            return {"type": _TYPES[kind]}
        case PathShape():
            return {"type": "string", "format": "path"}
        case Choice(values, enum):
            return _members(enum, values) if enum is not None else _choices(list(values))
        case ListOf(item, into):
            inner = shape_schema(item)
            schema: dict[str, Any] = {"type": "array", "items": inner}
            schema |= {"uniqueItems": True} if into in (set, frozenset) else {}
            return _with_definitions(schema, inner)
        case TupleOf(items):
            row = [shape_schema(item) for item in items]
            size = len(row)
            schema = {"type": "array", "prefixItems": row, "minItems": size, "maxItems": size}
            return _with_definitions(schema, *row)
        case Maybe(item):
            inner = shape_schema(item)
            return _with_definitions({"anyOf": [inner, {"type": "null"}]}, inner)
        case Text(annotation) | Structured(annotation):
            return _by_pydantic(annotation)
        case Foreign(annotation):
            name = getattr(annotation, "__name__", "")
            return {"type": "string", "format": "path"} if name.startswith("File") else {}
        case Handle():
            return shape.schema()
        case _:
            return {}


def _with_definitions(schema: dict[str, Any], *parts: dict[str, Any]) -> dict[str, Any]:
    """The schema with the definitions of its parts: references to them start at the root."""
    kept: dict[str, Any] = {}
    for part in parts:
        kept.update(part.pop("$defs", {}))
    return {**schema, "$defs": kept} if kept else schema


def _choices(values: list[Any]) -> dict[str, Any]:
    chosen = {"enum": values} if len(values) > 1 else {"const": values[0]}
    return _typed(values, chosen)


def _members(enum: type, members: tuple[Any, ...]) -> dict[str, Any]:
    values = [member.value for member in members]
    if not values or any([type(value) not in _TYPES for value in values]):
        return _by_pydantic(enum)
    return _typed(values, {"enum": values})


def _typed(values: list[Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """The choice with the type of its values, where they all have one."""
    kinds: set[type] = set(map(type, values))
    return {"type": _TYPES[kinds.pop()], **chosen} if len(kinds) == 1 else chosen


def _loose(annotation: Any) -> dict[str, Any] | None:
    """A collection that does not say of what; on a command line its items are text."""
    if annotation in (list, tuple):
        return {"type": "array", "items": {}}
    if annotation in (set, frozenset):
        return {"type": "array", "items": {}, "uniqueItems": True}
    if isinstance(shape_of(annotation), Maybe):
        inner = _loose(annotation.__args__[0])
        return {"anyOf": [inner, {"type": "null"}]} if inner else None
    return None


def _add_bounds(schema: dict[str, Any], param: Param) -> None:
    settings = param.settings
    if settings.get("clamp"):
        return
    shape = plain(param.shape)
    target = schema["items"] if isinstance(shape, ListOf) and "items" in schema else schema
    target = target["anyOf"][0] if "anyOf" in target else target
    for name, word in (("min", "minimum"), ("max", "maximum")):
        if settings.get(name) is not None and target.get("type") in ("integer", "number"):
            target[word] = settings[name]


def _json_default(default: Any) -> Any:
    from tooli.contract.jsonable import jsonable

    warnings: list[str] = []
    value = jsonable(default, warnings)
    return MISSING if warnings else value


def output_schema(tool: Tool) -> dict[str, Any] | None:
    """The result of a tool, described once; None where it declares none."""
    found = _outputs.get(id(tool))
    if found is None:  # the tool is kept, so its id stays its own
        found = _outputs[id(tool)] = (tool, _describe_output(tool))
    return found[1]


_outputs: dict[int, tuple[Tool, dict[str, Any] | None]] = {}


def _describe_output(tool: Tool) -> dict[str, Any] | None:
    annotation = returns_of(tool)
    if annotation in (MISSING, None, type(None)) or _is_shown(annotation):
        return None
    origin = getattr(annotation, "__origin__", None)
    name = getattr(origin, "__name__", "")
    if name in ("Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator"):
        items = result_schema(annotation.__args__[0])
        return _with_definitions({"type": "array", "items": items}, items)
    return result_schema(annotation)


def _is_shown(annotation: Any) -> bool:
    """Whether a result is content that clients show: it has no schema."""
    home = sys.modules.get("tooli.contract.content")
    if home is None:
        return False
    if isinstance(annotation, type) and issubclass(annotation, home.Content):
        return True
    return any([_is_shown(part) for part in getattr(annotation, "__args__", ())])


def result_schema(annotation: Any) -> dict[str, Any]:
    """JSON Schema of an annotation, as its values are written."""
    loose = _loose(annotation)
    if loose is not None:
        return loose
    shape = shape_of(annotation)
    if _is_plain(shape):
        return shape_schema(shape)
    from tooli.contract.details import without_demands

    return without_demands(_by_pydantic(annotation, mode="serialization"))


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


def _by_pydantic(annotation: Any, mode: str = "validation") -> dict[str, Any]:
    if annotation is dict:
        return {"type": "object", "additionalProperties": True}
    simple = _simple_dict(annotation)
    if simple is not None:
        return simple
    from tooli.contract.models import json_schema

    try:
        schema = json_schema(annotation, mode)
    except Exception:  # a type that pydantic validates and cannot describe
        return {}
    definitions = schema.pop("$defs", {})
    return inline(schema, definitions)


def _simple_dict(annotation: Any) -> dict[str, Any] | None:
    """`dict[str, T]` of plain T, so that it does not need pydantic."""
    if getattr(annotation, "__origin__", None) is not dict:
        return None
    key, value = annotation.__args__
    if key is not str:
        return None
    typing = __import__("sys").modules.get("typing")
    if value is object or (typing is not None and value is typing.Any):
        return {"type": "object", "additionalProperties": True}
    shape = shape_of(value)
    if isinstance(shape, (Scalar, PathShape, Choice)):
        return {"type": "object", "additionalProperties": shape_schema(shape)}
    return None


def inline(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema with its references put in place; what contains itself stays a reference."""
    kept: dict[str, Any] = {}
    made = _inline(schema, definitions, (), kept)
    if kept:
        made["$defs"] = kept
    return made


def _inline(
    node: Any, definitions: dict[str, Any], above: tuple[str, ...], kept: dict[str, Any]
) -> Any:
    if is_list(node):
        return [_inline(item, definitions, above, kept) for item in node]
    if not is_object(node):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in above or _recursive(name, definitions):
            if name not in kept:
                kept[name] = {}
                kept[name] = _inline(definitions[name], definitions, (*above, name), kept)
            return {**{k: v for k, v in node.items() if k != "$ref"}, "$ref": f"#/$defs/{name}"}
        body = _inline(definitions[name], definitions, (*above, name), kept)
        rest = {
            k: _inline_at(k, v, definitions, above, kept) for k, v in node.items() if k != "$ref"
        }
        return {**body, **rest}
    return {
        key: _inline_at(key, value, definitions, above, kept)
        for key, value in node.items()
        if key != "title" or not isinstance(value, str)
    }


def _inline_at(
    key: str, value: Any, definitions: dict[str, Any], above: tuple[str, ...], kept: dict[str, Any]
) -> Any:
    """What stands at a keyword: schemas by name, data that only looks like one, or a schema."""
    if key in ("default", "const", "enum", "examples"):
        return value
    if key == "discriminator" and is_object(value):  # its mapping points at definitions
        return {"propertyName": value["propertyName"]}
    if key in ("properties", "patternProperties") and is_object(value):
        return {name: _inline(part, definitions, above, kept) for name, part in value.items()}
    return _inline(value, definitions, above, kept)


def _recursive(name: str, definitions: dict[str, Any]) -> bool:
    """Whether a definition refers to itself, directly or through others."""
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
