"""Convert arguments of every kind, and defaults, to the values of parameters.

A value of the exact type is used unchanged. pydantic converts all other values. The bounds of
Option(…) and the author's parser and callback apply as on a command line.
"""

from __future__ import annotations

from tooli.core.tool import (
    Choice,
    ConversionError,
    Handle,
    ListOf,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    TyperOnly,
    quote,
    unwrap_optional,
)
from tooli.schema import (
    Converted,
    NeedsFallback,
    RawText,
    apply_bounds,
    apply_constraints,
    convert_each,
    convert_number,
    convert_path,
    convert_text,
    has_pydantic_metadata,
    invalid_choice,
    match_choice,
    parse_path,
    reject_placeholder,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from tooli.core.tool import Param, Shape


def load_pydantic_bridge() -> ModuleType:
    """Return the module for pydantic, which values of the exact type do not need."""
    from tooli.schema import pydantic_bridge

    return pydantic_bridge


def convert_argument(param: Param, value: object, warnings: list[str] | None = None) -> object:
    """Convert an argument to the value that the function receives. Raises ConversionError.

    The argument is a RawText, a Converted or a plain value. Fields of objects that are ignored are
    added to `warnings`.
    """
    if isinstance(value, RawText):
        try:
            return convert_text(param, value, warnings)
        except NeedsFallback:
            value = list(value.texts) if param.is_multiple else value.texts[-1]
    reject_placeholder(param, value.value if isinstance(value, Converted) else value)
    if isinstance(value, Converted):
        value = value.value
        converted = (
            load_pydantic_bridge().validate(param.annotation, value)
            if has_pydantic_metadata(param)
            else _to_container(param, value)
        )
    else:
        converted = convert_value(param, value, warnings)
    return apply_constraints(param, converted)


def _to_container(param: Param, value: object) -> object:
    """Return a list from Typer as the container that the parameter declares."""
    shape = unwrap_optional(param.shape)
    if (
        isinstance(shape, ListOf)
        and shape.container is not list
        and value.__class__ in (list, tuple)
    ):
        return shape.container(value)
    return value


def convert_value(param: Param, value: Any, warnings: list[str] | None = None) -> Any:
    """Convert a value that is not text of a command line: from code, JSON or a default.

    Constraints are not checked. Raises ConversionError.
    """
    parser = param.option_kwargs.get("parser")
    is_unchecked = parser is not None or isinstance(param.shape, TyperOnly)
    if is_unchecked and value is None and not _accepts_none(param):
        raise ConversionError("null is not a valid value")
    if parser is not None:
        converted = _call_author_function(parser, value) if isinstance(value, str) else value
    elif isinstance(param.shape, TyperOnly):
        converted = value
    else:
        converted = _convert_to_shape(param, value, warnings)
    callback = param.option_kwargs.get("callback")
    if callback is not None:
        return _call_author_function(
            load_pydantic_bridge().wrap_typer_callback(callback), converted
        )
    return converted


def _accepts_none(param: Param) -> bool:
    """True if None is a value of the parameter's type, or its default."""
    return param.default is None or unwrap_optional(param.shape) is not param.shape


def _call_author_function(function: Callable[[Any], Any], value: object) -> object:
    """Call the author's parser or callback. Its errors become a ConversionError."""
    try:
        return function(value)
    except (ValueError, TypeError) as error:
        raise ConversionError(str(error) or type(error).__name__) from error
    except Exception as error:
        if hasattr(error, "format_message"):  # an error of Typer or Click
            raise ConversionError(getattr(error, "message", str(error))) from error
        raise


def _convert_to_shape(param: Param, value: object, warnings: list[str] | None) -> object:
    shape = unwrap_optional(param.shape)
    if value is None and param.shape is not shape:
        return None
    try:
        if has_pydantic_metadata(param):
            raise NeedsFallback
        return _convert_exact(shape, value, param)
    except NeedsFallback:
        try:
            valid = load_pydantic_bridge().validate_input(param, value, warnings)
        except ConversionError:
            if isinstance(shape, Choice) and isinstance(value, (str, int)):
                text = value if isinstance(value, str) else quote(value)
                raise invalid_choice(shape, text) from None
            raise
        return _apply_typer_bounds(shape, valid, param)


def _convert_exact(shape: Shape, value: Any, param: Param) -> Any:
    kind = value.__class__
    if isinstance(shape, Scalar):
        if kind is shape.type:
            return convert_number(value, param) if kind in (int, float) else value
        if shape.type is float and kind is int and -(2**53) <= value <= 2**53:
            return convert_number(float(value), param)
    elif isinstance(shape, PathShape):
        if kind is str or isinstance(value, shape.type):
            return convert_path(shape.type(value) if kind is str else value, param)
    elif isinstance(shape, Choice):
        if shape.enum is not None and isinstance(value, shape.enum):
            return value
        if kind is str:
            return _match_choice_value(shape, value, param)
    elif isinstance(shape, ListOf) and kind is list and shape.container is list:
        return convert_each(_convert_exact, [shape.item] * len(value), value, param)
    elif isinstance(shape, TupleOf) and kind is tuple and len(value) == len(shape.items):
        return tuple(convert_each(_convert_exact, shape.items, value, param))
    elif isinstance(shape, Handle):
        return shape.parse(value, param, False)
    elif isinstance(shape, Structured) and hasattr(shape.annotation, "tooli_schema"):
        return value  # the `argument_check` of the tool validates it
    raise NeedsFallback


def _match_choice_value(shape: Choice, value: str, param: Param) -> Any:
    values = shape.raw_values
    for choice, choice_value in zip(shape.values, values, strict=True):
        if choice_value == value:
            return choice
    if any([type(v) is not str for v in values]) or _has_custom_lookup(shape.enum):
        raise NeedsFallback
    return match_choice(shape, value, param)


def _has_custom_lookup(enum: Any) -> bool:
    """True if an Enum has its own `_missing_`."""
    return enum is not None and enum._missing_.__func__.__module__ != "enum"


def _apply_typer_bounds(shape: Shape, value: Any, param: Param) -> Any:
    """Return a value that pydantic accepts, checked against the bounds of Option(…)."""
    if not param.option_kwargs or value is None:
        return value
    if isinstance(shape, ListOf):
        return shape.container([_apply_typer_bounds(shape.item, item, param) for item in value])
    if isinstance(shape, TupleOf):
        return tuple(
            [_apply_typer_bounds(s, v, param) for s, v in zip(shape.items, value, strict=True)]
        )
    if isinstance(shape, PathShape):
        return convert_path(value, param)
    if isinstance(shape, Scalar) and not param.option_kwargs.keys().isdisjoint(("min", "max")):
        if not isinstance(value, shape.type):  # pydantic accepts an Enum member as an int
            raise ConversionError(f"{quote(value)} is not a valid number")
        return apply_bounds(value, param) if shape.type in (int, float) else value
    return value


# ------------------------------------------------------------------ defaults


def convert_default(param: Param) -> object:
    """Return the default, converted and checked like a given value, as Typer does."""
    factory = _default_factory(param)
    default = factory() if factory is not None else param.default
    shape = unwrap_optional(param.shape)
    if default is None and factory is not None and isinstance(shape, ListOf):
        return shape.container()
    if default is None or isinstance(shape, TyperOnly):
        return default
    try:
        try:
            return _convert_exact_default(shape, default, param)
        except NeedsFallback:
            return convert_value(param, default)
    except ConversionError as error:  # a location is meaningless: the caller gave no value
        error.location, error.other_errors, error.has_more = (), (), False
        raise


def default_needs_typer(param: Param) -> bool:
    """True if only Typer can convert the default of a plain shape."""
    shape = unwrap_optional(param.shape)
    if param.default is None or (param.has_valid_default and not isinstance(shape, Choice)):
        return False
    parts = shape.items if isinstance(shape, TupleOf) else (getattr(shape, "item", shape),)
    is_plain = all([isinstance(part, (Scalar, PathShape, Choice)) for part in parts])
    if not is_plain or has_pydantic_metadata(param) or _default_factory(param) is not None:
        return False
    try:
        _convert_exact_default(shape, param.default, param)
    except NeedsFallback:
        return True
    except ConversionError:
        pass
    return False


def _default_factory(param: Param) -> Callable[[], Any] | None:
    return param.default if callable(param.default) else param.option_kwargs.get("default_factory")


def _convert_exact_default(shape: Shape, default: Any, param: Param) -> Any:
    if has_pydantic_metadata(param):
        raise NeedsFallback
    kind = default.__class__
    if isinstance(shape, ListOf) and kind in (list, tuple, shape.container):
        return shape.container(
            [_convert_exact_default(shape.item, item, param) for item in default]
        )
    if isinstance(shape, TupleOf) and kind is tuple and len(default) == len(shape.items):
        return tuple(
            [_convert_exact_default(s, v, param) for s, v in zip(shape.items, default, strict=True)]
        )
    if isinstance(shape, PathShape) and kind is str:
        return parse_path(shape, default, param)
    if isinstance(shape, Handle):  # the default is a location, as on a command line
        return shape.parse(default, param, True)
    if isinstance(shape, Choice):
        is_member = hasattr(kind, "_member_map_")
        return match_choice(shape, str(default.value if is_member else default), param)
    if isinstance(shape, Scalar) and shape.type is str and kind is not bytes:
        return str(default)
    return _convert_exact(shape, default, param)
