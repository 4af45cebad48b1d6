"""Translate the parameters of a tool for Typer."""

from __future__ import annotations

import inspect
import typing

import typer
from typer import core

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
    unwrap_optional,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool

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
        return param.shape.kind != "typer"
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
            typer_parameter(param, docs.get(param.name)).replace(name=name)
            for name, param in zip(typer_names(tool), tool.params, strict=True)
            if not (isinstance(param.shape, Injected) and needs_translation(param))
        ]
    )


def typer_names(tool: Tool) -> dict[str, str]:
    """Return the names of a tool's parameters, by the identifiers that stand for them in Typer."""
    names = [param.name for param in tool.params]
    if tool.schema is None:
        return dict(zip(names, names, strict=True))
    from tooli.schema.described import is_python_name, python_names

    if all(map(is_python_name, names)):
        return dict(zip(names, names, strict=True))
    return {identifier: name for name, identifier in python_names(names).items()}


def escape_markup(text: str) -> str:
    """Return an external text in a form whose brackets Typer's help shows as they are."""
    return text.replace("[", "\\[")


def typer_parameter(param: Param, doc: str | None) -> inspect.Parameter:
    """Return a parameter for Typer."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    name = param.name if param.schema is None else "parameter"  # it may be no identifier
    if param.kind == "injected":
        return inspect.Parameter(name, keyword, annotation=param.annotation)
    settings = dict(param.option_kwargs)
    if param.schema is not None and "help" in settings:
        settings["help"] = escape_markup(settings["help"])
    annotation: Any = getattr(param.annotation, "__origin__", None)
    if not hasattr(param.annotation, "__metadata__"):
        annotation = param.annotation
    if annotation is MISSING:
        annotation = inspect.Parameter.empty
    default = ... if param.default is MISSING else param.default
    if param.is_omittable:
        default = None
        annotation = annotation if is_structured(param.shape) else annotation | None
    settings.setdefault("help", doc)
    if not is_native(param):
        annotation, default = _text_parameter(param, settings, default)
    elif param.is_multiple:
        annotation = list[_item_annotation(param)]
        annotation = annotation | None if param.is_omittable else annotation
        if isinstance(default, (set, frozenset, tuple)):
            items: Any = default  # pyright: ignore[reportUnknownVariableType]
            default = list(items)
    if "default_factory" in settings:
        default = ...
    if param.kind == "option":
        info = typer.Option(default, *param.decls, **settings)
    else:
        info = typer.Argument(default, **settings)
    return inspect.Parameter(name, keyword, default=info, annotation=annotation)


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
    required = default is ... and not has_factory and not param.is_omittable
    default = None if has_factory else default
    if not required and default is not None:
        from tooli.core.secret_fields import public_default

        is_secret = public_default(param) is MISSING
        settings["show_default"] = not is_secret and str(getattr(default, "value", default))
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
