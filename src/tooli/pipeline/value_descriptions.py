"""Describe in words which values a parameter accepts, for the messages of input errors."""

from __future__ import annotations

from tooli.core.tool import (
    Choice,
    Handle,
    ListOf,
    PathShape,
    Scalar,
    TupleOf,
    is_structured,
    unwrap_optional,
)
from tooli.schema import has_pydantic_metadata

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Shape

_TYPE_TEXTS = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


def describe_param(param: Param, *, is_command_line: bool = True) -> str:
    """Return a description of the values that a parameter accepts, with its bounds.

    Objects are described with their fields. On a command line, a file may contain them.
    """
    shape = unwrap_optional(param.shape)
    if isinstance(shape, PathShape):
        return _describe_path(param.option_kwargs)
    if is_structured(shape) or has_pydantic_metadata(param):
        if is_structured(shape):
            return load_corrections().describe_json(param, is_command_line)
        bounds = load_corrections().read_bounds(param)
    else:
        kwargs = param.option_kwargs
        bounds = {"minimum": kwargs.get("min"), "maximum": kwargs.get("max")}
    text = describe_shape(shape, is_command_line=is_command_line)
    return f"{text}{_describe_bounds(bounds)}"


def load_corrections() -> ModuleType:
    """Import the module for parts of arguments, which plain parameters do not need."""
    from tooli.pipeline import corrections

    return corrections


def _describe_bounds(schema: JsonObject) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    parts: list[str] = []
    if low is not None and high is not None:
        parts.append(f" from {low} to {high}")
    elif low is not None or high is not None:
        parts.append(f", {high} at most" if low is None else f", {low} or more")
    for keyword, text in (
        ("exclusiveMinimum", "more than {}"),
        ("exclusiveMaximum", "less than {}"),
        ("multipleOf", "a multiple of {}"),
        ("minLength", "at least {} characters"),
        ("maxLength", "at most {} characters"),
        ("pattern", "matching {}"),
    ):
        if schema.get(keyword) is not None:
            parts.append(f", {text.format(schema[keyword])}")
    return "".join(parts)


def _describe_path(kwargs: Mapping[str, Any]) -> str:
    """Return a description of the paths that `Option(exists=…, file_okay=…, …)` allows."""
    kinds = [
        name
        for name, keyword in (("file", "file_okay"), ("directory", "dir_okay"))
        if kwargs.get(keyword, True)
    ]
    if kwargs.get("exists"):
        return f"the path of an existing {' or '.join(kinds)}"
    return "a path" if len(kinds) != 1 else f"the path of a {kinds[0]}"


def describe_shape(shape: Shape, *, is_command_line: bool = True) -> str:
    """Return a description of the values that a shape accepts."""
    shape = unwrap_optional(shape)
    if isinstance(shape, Scalar):
        return _TYPE_TEXTS[shape.type]
    if isinstance(shape, PathShape):
        return "a path"
    if isinstance(shape, Choice):
        return "one of " + ", ".join(shape.labels)
    if isinstance(shape, ListOf):
        item = describe_shape(shape.item, is_command_line=is_command_line)
        return f"one or more values, each {item}"
    if isinstance(shape, TupleOf):
        items = [describe_shape(item, is_command_line=is_command_line) for item in shape.items]
        each = f", each {items[0]}" if len(set(items)) == 1 else f": {', '.join(items)}"
        return f"{len(items)} values{each}"
    if isinstance(shape, Handle):
        return shape.expected_text if is_command_line else shape.expected_json
    return _describe_type(getattr(shape, "annotation", None))


def _describe_type(annotation: Any) -> str:
    """Return a description of the values of a type that has no shape of its own."""
    from tooli.schema.pydantic_messages import FORMAT_TEXTS  # plain types do not need it

    members = [part for part in getattr(annotation, "__args__", ()) if part is not type(None)]
    if len(members) > 1 and not hasattr(annotation, "__metadata__"):  # a union
        return " or ".join(dict.fromkeys(map(_describe_type, members)))
    name = getattr(annotation, "__name__", "")
    text = _TYPE_TEXTS.get(annotation) if isinstance(annotation, type) else None
    return text or FORMAT_TEXTS.get(name) or (f"a {name}" if name else "a value")
