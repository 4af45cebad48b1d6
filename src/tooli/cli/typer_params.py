"""Translate the parameters of a tool for Typer, and convert single values with Typer."""

from __future__ import annotations

import inspect
import typing

import typer
from typer import core
from typer.main import get_command_from_info
from typer.models import CommandInfo

from tooli.core.secret_fields import documented_default
from tooli.core.tool import (
    MISSING,
    Choice,
    Handle,
    Injected,
    ListOf,
    Maybe,
    ParsedText,
    PathShape,
    Scalar,
    TupleOf,
    TyperOnly,
    is_structured,
    item_shape,
    quote,
    unwrap_optional,
)
from tooli.schema import ConversionError
from tooli.schema.pydantic_messages import normalize_message

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool
    from tooli.schema import RawText

_HAS_PYDANTIC_CONVERSION = hasattr(core, "RuntimeParam")
"""Typer 0.29 and newer convert with pydantic, and accept types that older versions do not."""
_HAS_LITERALS = _HAS_PYDANTIC_CONVERSION or hasattr(typer.main, "is_literal_type")
"""Typer 0.19 and newer accept a Literal."""


def is_native(param: Param) -> bool:
    """True if Typer converts the parameter itself."""
    if param.option_kwargs.keys() & {"parser", "click_type"} or isinstance(param.shape, TyperOnly):
        return True
    return _is_native_shape(unwrap_optional(param.shape))


def _is_native_shape(shape: Shape) -> bool:
    match shape:
        case Scalar() | PathShape() | TyperOnly():
            return True
        case Choice():
            return _HAS_LITERALS or shape.enum is not None
        case ListOf(item):
            return _is_native_item(item)
        case TupleOf(items):
            return all(_is_native_item(item) for item in items)
        case ParsedText(annotation):
            module = getattr(annotation, "__module__", "")
            known = (("datetime", "datetime"), ("uuid", "UUID"))
            return (_HAS_PYDANTIC_CONVERSION and isinstance(annotation, type)) or (
                (module, getattr(annotation, "__name__", "")) in known
            )
        case _:
            return False


def _is_native_item(shape: Shape) -> bool:
    """True if Typer converts this shape as an item of a list or a tuple.

    Typer does not convert a Literal there.
    """
    if isinstance(shape, (ListOf, TupleOf, Maybe)):
        return False
    return _is_native_shape(shape) and not (isinstance(shape, Choice) and shape.enum is None)


def needs_translation(param: Param) -> bool:
    """True if Typer would misread the parameter as it is declared."""
    if isinstance(param.shape, Injected):
        return param.shape.kind == "context"
    shape = unwrap_optional(param.shape)
    return (
        param.has_tooli_info
        or not is_native(param)
        or (isinstance(shape, ListOf) and shape.container is not list)
    )


def documents_parameters(tool: Tool) -> bool:
    """True if the help of the parameters is read from the docstring.

    A command that declares no result is as Typer shows it, with the whole docstring.
    """
    return not tool.returns_printed_text and bool(tool.doc.params)


def typer_signature(tool: Tool) -> inspect.Signature:
    """Return the signature of a tool for Typer."""
    docs = tool.doc.params
    return inspect.Signature(
        [
            _typer_parameter(param, docs.get(param.name))
            for param in tool.params
            if param.shape != Injected("context")
        ]
    )


def _typer_parameter(param: Param, doc: str | None) -> inspect.Parameter:
    """Return a parameter for Typer."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if param.kind == "injected":
        return inspect.Parameter(param.name, keyword, annotation=param.annotation)
    settings = dict(param.option_kwargs)
    annotation = getattr(param.annotation, "__origin__", None)
    if not hasattr(param.annotation, "__metadata__"):
        annotation = param.annotation
    if annotation is MISSING:
        annotation = inspect.Parameter.empty
    default = ... if param.default is MISSING else param.default
    settings.setdefault("help", doc)
    if not is_native(param):
        annotation, default = _text_parameter(param, settings, default)
    elif param.is_multiple:
        annotation = list[_item_annotation(param)]
        if isinstance(default, (set, frozenset, tuple)):
            items: Any = default  # pyright: ignore[reportUnknownVariableType]
            default = list(items)
    if "default_factory" in settings:
        default = ...
    if param.kind == "option":
        info = typer.Option(default, *param.decls, **settings)
    else:
        info = typer.Argument(default, **settings)
    return inspect.Parameter(param.name, keyword, default=info, annotation=annotation)


def _item_annotation(param: Param) -> Any:
    item = item_shape(param.shape)
    if isinstance(item, Choice):
        literal: Any = typing.Literal
        return item.enum or literal[item.values]
    return getattr(item, "type", None) or getattr(item, "annotation", str)


def _text_parameter(param: Param, settings: dict[str, Any], default: Any) -> tuple[Any, Any]:
    """Return the annotation and default of a parameter that Typer takes as text.

    The pipeline converts the text.
    """
    shape = unwrap_optional(param.shape)
    has_factory = settings.pop("default_factory", None) is not None  # the pipeline calls it
    required = default is ... and not has_factory
    default = None if has_factory else default
    if not required and default is not None and documented_default(param) is MISSING:
        settings["show_default"] = False
    elif not required and default is not None:
        settings["show_default"] = str(getattr(default, "value", default))
    if is_structured(shape):
        settings.setdefault("metavar", "JSON")
        if required:
            _append_to_help(settings, "[required]")
        for name in ("min", "max", "formats", "case_sensitive"):
            settings.pop(name, None)
        return list[str] | None, None
    item = item_shape(shape)
    if isinstance(item, Handle):
        if param.kind == "option":
            settings.setdefault("metavar", item.metavar)
        else:  # the metavar of an argument is its name
            _append_to_help(settings, f"({item.metavar})")
        if item.is_secret:  # tooli, not Typer, asks for a secret
            for name in ("prompt", "confirmation_prompt", "hide_input"):
                settings.pop(name, None)
        if required:  # optional for Typer, because the value may come from stdin
            _append_to_help(settings, "(required)")
        return (str | None if item is shape else list[str] | None), None
    if isinstance(shape, TupleOf):
        text_tuple: Any = tuple.__class_getitem__(tuple(str for _ in shape.items))
        return (text_tuple, ...) if required else (text_tuple | None, None)
    name = getattr(_item_annotation(param), "__name__", None)
    if name:
        settings.setdefault("metavar", f"<{name}>")
    if isinstance(shape, ListOf):
        return (list[str] if required else list[str] | None), (... if required else None)
    return (str if required else str | None), (... if required else None)


def _append_to_help(settings: dict[str, Any], note: str) -> None:
    settings["help"] = f"{settings.get('help') or ''} {note}".strip()


def _translate_message(param: Param, raw: RawText, exc: Exception) -> str:
    """Return the message of an error of Typer, in the wording that all interfaces share."""
    shape = unwrap_optional(param.shape)
    type_names = {int: "a valid integer", float: "a valid number", bool: "true or false"}
    text: str = getattr(exc, "message", str(exc))
    has_custom_parser = not param.option_kwargs.keys().isdisjoint(
        ("parser", "click_type", "callback")
    )
    if (
        isinstance(shape, Scalar)
        and shape.type in type_names
        and "valid" in text
        and not has_custom_parser
    ):
        return f"{quote(raw.texts[-1])} is not {type_names[shape.type]}"
    return normalize_message(text).rstrip(".")


def convert_with_typer(param: Param, raw: RawText) -> Any:
    """Convert the text of one parameter with Typer; raises ConversionError."""
    captured: dict[str, Any] = {}

    def capture(**values: Any) -> None:
        captured.update(values)

    vars(capture)["__signature__"] = inspect.Signature([_typer_parameter(param, None)])
    capture.__annotations__ = {}
    info = CommandInfo(callback=capture)
    command: Any = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)
    parameter = command.params[0]
    takes_many = getattr(parameter, "multiple", False) or parameter.nargs != 1
    texts = list(raw.texts)
    context = typer.Context(command)
    try:
        with context.scope():
            converted = parameter.process_value(context, tuple(texts) if takes_many else texts[-1])
            command.callback(**{parameter.name: converted})
    except Exception as exc:
        if not hasattr(exc, "format_message"):
            raise
        raise ConversionError(_translate_message(param, raw, exc)) from None
    value = captured[param.name]
    shape = unwrap_optional(param.shape)
    if isinstance(shape, ListOf) and shape.container is not list:
        return shape.container(value)
    return value
