"""JSON Schema of Python types, for the parameters of Typer and cyclopts."""

from __future__ import annotations

import enum
import typing
from typing import Any

MAX_CHOICES = 500
"""A longer list of choices is not part of the schema."""

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of_type(hint: Any) -> dict[str, Any]:
    """Return the schema of one word of a command line that is converted to a type."""
    hint = strip_optional(hint)
    if hint in tuple(_PLAIN):
        return {"type": _PLAIN[hint]}
    if is_enum(hint):
        return schema_of_choices([member.value for member in hint])
    if is_literal(hint):
        return schema_of_choices(hint.__args__)
    for base, kind in _PLAIN.items():
        if isinstance(hint, type) and base in hint.__mro__:
            return {"type": kind}
    return {"type": "string"}


def is_enum(hint: Any) -> bool:
    """True for a class of named values."""
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def strip_optional(hint: Any) -> Any:
    """Return the type without `Annotated` and `| None`; a union of several types is text."""
    while getattr(hint, "__metadata__", None) is not None:
        hint = hint.__origin__
    origin = getattr(hint, "__origin__", None)
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        others = [part for part in hint.__args__ if part is not type(None)]
        return strip_optional(others[0]) if len(others) == 1 else str
    return hint


def is_literal(hint: Any) -> bool:
    """True for `Literal[…]`."""
    return "Literal" in str(getattr(hint, "__origin__", "")) or (
        type(hint).__name__ == "_LiteralGenericAlias"
    )


def schema_of_choices(choices: Any) -> dict[str, Any]:
    """Return the schema of a list of choices."""
    values: list[Any] = []
    for position, choice in enumerate(choices):
        if position >= MAX_CHOICES:
            return {"type": "string"}
        plain = type(choice) in (str, int, float)
        values.append(choice if plain else str(getattr(choice, "name", choice)))
    unique = list(dict.fromkeys(values))
    kinds: set[Any] = {type(value) for value in unique}
    if not unique or len(kinds) != 1:
        return {"type": "string", "enum": list(dict.fromkeys(map(str, unique)))} if unique else {}
    return {"type": _PLAIN[kinds.pop()], "enum": unique}


def clean_help(text: Any) -> str:
    """Return a help text without the marks of Click, and with its common indentation removed."""
    from inspect import cleandoc

    if not isinstance(text, str):
        text = "" if text is None else str(text)
    shown = text.partition("\f")[0].splitlines()
    return cleandoc("\n".join([line for line in shown if line.strip(" \t") != "\b"]))[:20_000]


def plain_default(value: Any) -> Any:
    """Return a default as a JSON value; None if it is not one."""
    if isinstance(value, enum.Enum):
        value = value.value
    if type(value) in (str, int, float, bool):
        return value
    if isinstance(value, (list, tuple)):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        found = [plain_default(item) for item in items]
        return found if found and all(item is not None for item in found) else None
    if "Path" in type(value).__name__ and hasattr(value, "__fspath__"):
        return str(value)
    return None
