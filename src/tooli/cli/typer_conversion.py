"""Convert the plain values of Typer's parameters without pydantic.

Typer 0.29 and newer convert every value with pydantic, and importing pydantic takes longer than
most commands. This module converts text, numbers, paths and choices for which the result is
certain. All other values are left to Typer, also those that it rejects.
"""

from __future__ import annotations

from pathlib import Path

from typer import core

from tooli.schema import NeedsFallback, parse_float, parse_int

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from typer._click.core import Context, Parameter

    Convert = Callable[[Any, "PlainConversion", Any, Context], Any]

_internals: Any = None
if hasattr(core, "RuntimeParam"):  # older versions convert without pydantic
    try:
        from typer import _coercion, _param_types

        _internals = (
            _coercion.build_runtime_param,
            _coercion.FileRuntimeParam,
            _param_types.choice_coercion_annotation,
            _param_types.coerce_cli_choice,
            _param_types.coerce_cli_path,
        )
    except (ImportError, AttributeError):  # a version with other internals
        pass


def use_plain_conversion(params: Iterable[Parameter]) -> None:
    """Let parameters of plain types convert their values without pydantic if possible."""
    if _internals is None:
        return
    for param in params:
        if getattr(param, "_runtime_param", param) is None:
            vars(param)["_runtime_param"] = _conversion_of(getattr(param, "type_descriptor", None))


def _conversion_of(descriptor: Any) -> object:
    """Return what converts the values of a parameter; None if Typer decides."""
    info = getattr(descriptor, "parameter_info", None)
    if info is None:
        return None
    annotation, file_type = descriptor.annotation, descriptor.file_annotation
    if file_type is not None:
        if isinstance(file_type, tuple):
            return None
        return _internals[1](annotation=annotation, parameter_info=info, file_annotation=file_type)
    if info.parser is not None:
        return PlainConversion(descriptor, _leave_to_typer)
    origin, items = getattr(annotation, "__origin__", None), getattr(annotation, "__args__", ())
    leaves = items if origin in (list, tuple) else (annotation,)
    converters = [one for one in [_leaf_converter(leaf, info) for leaf in leaves] if one]
    if not converters or len(converters) < len(leaves):
        return None
    if origin is None or origin not in (list, tuple):
        return PlainConversion(descriptor, converters[0])
    if origin is list:
        return PlainConversion(descriptor, _list_converter(converters[0]))
    return PlainConversion(descriptor, _tuple_converter(converters))


class PlainConversion:
    """Converts the values of one parameter, in place of Typer's `RuntimeParam`."""

    def __init__(self, descriptor: Any, convert: Convert) -> None:
        self._descriptor = descriptor
        self._convert = convert
        self.info = descriptor.parameter_info

    def coerce(self, value: Any, param: Any, ctx: Context) -> Any:
        """Return the converted value; let Typer convert it, or reject it, if in doubt."""
        is_multiple = param.multiple or param.nargs == -1
        if value is None:
            return () if is_multiple else None
        if not (is_multiple and isinstance(value, str)):
            try:
                return self._convert(value, self, param, ctx)
            except Exception:  # Typer raises it again, with its own message and its own context
                pass
        param._runtime_param = real = _internals[0](self._descriptor)
        return real.coerce(value, param, ctx)


# ------------------------------------------------------------------ converters


def _leaf_converter(annotation: Any, info: Any) -> Convert | None:
    """Return the function that converts one value of a type; None if only Typer can."""
    if annotation in (int, float):
        allowed = (None.__class__, int, annotation)  # pydantic rejects other bounds of a number
        if info.min.__class__ not in allowed or info.max.__class__ not in allowed:
            return None
        return _convert_int if annotation is int else _convert_float
    if annotation is str:
        return _convert_str
    if annotation is bool:
        return _leave_to_typer  # Typer itself skips the conversion of True and False
    if annotation is Path:
        return _convert_path if info.path_type in (None, Path) else None
    choices = _internals[2](annotation, info)
    return None if choices is None else _choice_converter(*choices)


def _leave_to_typer(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> Any:
    raise NeedsFallback


def _convert_str(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> str:
    if value.__class__ is not str:
        raise NeedsFallback
    if not value.isascii():
        value.encode()  # pydantic rejects text that is not Unicode
    return value


def _convert_int(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> int:
    if value.__class__ is str:
        value = parse_int(value)
    return _check_number(value, int, conversion.info)


def _convert_float(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> float:
    if value.__class__ is str:
        value = parse_float(value)
    elif value.__class__ is int and abs(value) < 1 << 53:
        value = float(value)
    return _check_number(value, float, conversion.info)


def _check_number(value: Any, number_type: type, info: Any) -> Any:
    """Return a number that is certainly within its bounds."""
    if value.__class__ is not number_type:
        raise NeedsFallback
    for bound, is_within in ((info.min, value.__ge__), (info.max, value.__le__)):
        if bound is not None and is_within(bound) is not True:
            raise NeedsFallback
    return value


def _convert_path(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> Any:
    if value.__class__ is str:
        value = Path(_convert_str(value, conversion, param, ctx))
    return _internals[4](value, conversion.info, path_type=Path, param=param, ctx=ctx)


def _choice_converter(choices: tuple[Any, ...], case_sensitive: bool) -> Convert:
    def convert(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> Any:
        return _internals[3](value, choices=choices, case_sensitive=case_sensitive, ctx=ctx)

    return convert


def _list_converter(convert_item: Convert) -> Convert:
    def convert(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> list[Any]:
        if value.__class__ not in (list, tuple):
            raise NeedsFallback
        return [convert_item(item, conversion, param, ctx) for item in value]

    return convert


def _tuple_converter(converters: list[Convert]) -> Convert:
    def convert(value: Any, conversion: PlainConversion, param: Any, ctx: Context) -> Any:
        if value.__class__ not in (list, tuple) or len(value) != len(converters):
            raise NeedsFallback
        pairs = zip(converters, value, strict=True)
        return tuple([convert_item(item, conversion, param, ctx) for convert_item, item in pairs])

    return convert
