"""A tool's parameters as Typer understands them, and Typer's word on a single value."""

from __future__ import annotations

import inspect

import typer
from typer import core
from typer.main import get_command_from_info
from typer.models import CommandInfo

from tooli.contract.fit import Misfit
from tooli.contract.tool import (
    MISSING,
    Choice,
    Foreign,
    Handle,
    Injected,
    ListOf,
    Maybe,
    PathShape,
    Scalar,
    Text,
    TupleOf,
    is_structured,
    plain,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.fit import Words
    from tooli.contract.tool import Param, Shape, Tool

_READS_ALL = hasattr(core, "RuntimeParam")
"""Typer 0.29 and newer convert with pydantic, as we do: it may read what older ones cannot."""


def native(param: Param) -> bool:
    """Whether Typer itself converts the parameter."""
    if param.settings.keys() & {"parser", "click_type"} or isinstance(param.shape, Foreign):
        return True
    return _native(plain(param.shape))


def _native(shape: Shape) -> bool:
    match shape:
        case Scalar() | PathShape() | Choice() | Foreign():
            return True
        case ListOf(item):
            return _native_item(item)
        case TupleOf(items):
            return all(_native_item(item) for item in items)
        case Text(annotation):
            module = getattr(annotation, "__module__", "")
            known = (("datetime", "datetime"), ("uuid", "UUID"))
            return (_READS_ALL and isinstance(annotation, type)) or (
                (module, getattr(annotation, "__name__", "")) in known
            )
        case _:
            return False


def _native_item(shape: Shape) -> bool:
    """Whether Typer converts it as a part of a list or a tuple: a Literal it does not."""
    if isinstance(shape, (ListOf, TupleOf, Maybe)):
        return False
    return _native(shape) and not (isinstance(shape, Choice) and shape.enum is None)


def needs_translation(param: Param) -> bool:
    """Whether Typer would misread the parameter as its author wrote it."""
    if isinstance(param.shape, Injected):
        return param.shape.what == "context"
    shape = plain(param.shape)
    return (
        param.light_info
        or not native(param)
        or (isinstance(shape, ListOf) and shape.into is not list)
    )


def is_documented(tool: Tool) -> bool:
    """Whether the docstring has parts that Typer would show as they stand."""
    doc = tool.doc
    return bool(doc.params or doc.returns or doc.raises or doc.examples)


def signature(tool: Tool) -> inspect.Signature:
    """The tool's parameters in Typer's words."""
    docs = tool.doc.params
    return inspect.Signature(
        [
            _parameter(param, docs.get(param.name))
            for param in tool.params
            if param.shape != Injected("context")
        ]
    )


def _parameter(param: Param, doc: str | None) -> inspect.Parameter:
    """A parameter as Typer understands it."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if param.kind == "injected":
        return inspect.Parameter(param.name, keyword, annotation=param.annotation)
    settings = dict(param.settings)
    annotation = getattr(param.annotation, "__origin__", None)
    if not hasattr(param.annotation, "__metadata__"):
        annotation = param.annotation
    if annotation is MISSING:
        annotation = inspect.Parameter.empty
    default = ... if param.default is MISSING else param.default
    settings.setdefault("help", doc)
    if not native(param):
        annotation, default = _as_text(param, settings, default)
    elif param.many:
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
    shape = plain(param.shape)
    item = shape.item if isinstance(shape, ListOf) else shape
    if isinstance(item, Choice):
        import typing

        literal: Any = typing.Literal
        return item.enum or literal[item.values]
    return getattr(item, "type", None) or getattr(item, "annotation", str)


def _as_text(param: Param, settings: dict[str, Any], default: Any) -> tuple[Any, Any]:
    """A parameter that Typer cannot convert: taken as words, fitted by the pipeline."""
    shape = plain(param.shape)
    made = settings.pop("default_factory", None) is not None  # the pipeline makes it
    required = default is ... and not made
    default = None if made else default
    if not required and default is not None:
        settings["show_default"] = str(getattr(default, "value", default))
    if is_structured(shape):
        settings.setdefault("metavar", "JSON")
        if required:
            settings["help"] = f"{settings.get('help') or ''} [required]".strip()
        for name in ("min", "max", "formats", "case_sensitive"):
            settings.pop(name, None)
        return list[str] | None, None
    item = shape.item if isinstance(shape, ListOf) else shape
    if isinstance(item, Handle):
        if param.kind == "option":
            settings.setdefault("metavar", item.metavar)
        else:  # there the metavar is all that names it
            settings["help"] = f"{settings.get('help') or ''} ({item.metavar})".strip()
        if item.secret:  # who asks for it asks on the terminal, unseen
            for name in ("prompt", "confirmation_prompt", "hide_input"):
                settings.pop(name, None)
        if required:  # a pipe may stand in for it: the pipeline says whether something is missing
            settings["help"] = f"{settings.get('help') or ''} (required)".strip()
        return (str | None if item is shape else list[str] | None), None
    if isinstance(shape, TupleOf):
        row: Any = tuple.__class_getitem__(tuple(str for _ in shape.items))
        return (row, ...) if required else (row | None, None)
    name = getattr(_item_annotation(param), "__name__", None)
    if name:
        settings.setdefault("metavar", f"<{name}>")
    if isinstance(shape, ListOf):
        return (list[str] if required else list[str] | None), (... if required else None)
    return (str if required else str | None), (... if required else None)


def _in_our_words(param: Param, words: Words, refused: Exception) -> str:
    """Typer's complaint, in the words that every door uses."""
    from tooli.contract.models import in_our_words

    shape = plain(param.shape)
    wanted = {int: "a valid integer", float: "a valid number", bool: "true or false"}
    text: str = getattr(refused, "message", str(refused))
    own = not param.settings.keys().isdisjoint(("parser", "click_type", "callback"))
    if isinstance(shape, Scalar) and shape.type in wanted and "valid" in text and not own:
        return f"{words.texts[-1]!r} is not {wanted[shape.type]}"
    return in_our_words(text).rstrip(".")


def judge(param: Param, words: Words) -> Any:
    """Typer's word on one parameter's text: the value, or a Misfit."""
    kept: dict[str, Any] = {}

    def keep(**values: Any) -> None:
        kept.update(values)

    vars(keep)["__signature__"] = inspect.Signature([_parameter(param, None)])
    keep.__annotations__ = {}
    info = CommandInfo(callback=keep)
    command: Any = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)
    parameter = command.params[0]
    several = getattr(parameter, "multiple", False) or parameter.nargs != 1
    texts = list(words.texts)
    context = typer.Context(command)
    try:
        with context.scope():
            fitted = parameter.process_value(context, tuple(texts) if several else texts[-1])
            command.callback(**{parameter.name: fitted})
    except Exception as refused:
        if not hasattr(refused, "format_message"):
            raise
        raise Misfit(_in_our_words(param, words, refused)) from None
    value = kept[param.name]
    shape = plain(param.shape)
    if isinstance(shape, ListOf) and shape.into is not list:
        return shape.into(value)
    return value
