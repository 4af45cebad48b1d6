"""Convert single values with Typer. Used for text that `tooli.schema` cannot convert."""

from __future__ import annotations

import inspect

import typer
from typer.main import get_command_from_info
from typer.models import CommandInfo

from tooli.cli.typer_params import typer_parameter
from tooli.core.tool import ListOf, ParsedText, Scalar, quote, unwrap_optional
from tooli.schema import ConversionError
from tooli.schema.pydantic_messages import FORMAT_TEXTS, normalize_message

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Param
    from tooli.schema import RawText


def _translate_message(param: Param, raw: RawText, exc: Exception) -> str:
    """Return the message of an error of Typer, in the wording that all interfaces share."""
    shape = unwrap_optional(param.shape)
    text: str = getattr(exc, "message", str(exc))
    if not param.option_kwargs.keys().isdisjoint(("parser", "click_type", "callback", "formats")):
        return normalize_message(text).rstrip(".")
    type_names = {int: "a valid integer", float: "a valid number", bool: "true or false"}
    expected = None
    if isinstance(shape, Scalar) and "valid" in text:
        expected = type_names.get(shape.type)
    elif isinstance(shape, ParsedText):
        expected = FORMAT_TEXTS.get(getattr(shape.annotation, "__name__", ""))
    if expected is not None:
        return f"{quote(raw.texts[-1])} is not {expected}"
    return normalize_message(text).rstrip(".")


def convert_with_typer(param: Param, raw: RawText) -> Any:
    """Convert the text of one parameter with Typer; raises ConversionError."""
    captured: dict[str, Any] = {}

    def capture(**values: Any) -> None:
        captured.update(values)

    vars(capture)["__signature__"] = inspect.Signature([typer_parameter(param, None)])
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
    (value,) = captured.values()  # Typer may have another name for it
    shape = unwrap_optional(param.shape)
    if isinstance(shape, ListOf) and shape.container is not list:
        return shape.container(value)
    return value
