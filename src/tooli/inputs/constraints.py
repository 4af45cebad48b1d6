"""Marks in Annotated: what the text of a parameter may be, and how much of an input is read.

A mark is anything with a `tooli_check`, which refuses a fitted value with a Misfit.
"""

from __future__ import annotations

import os

from tooli.core.record import Record
from tooli.schema.convert import ConversionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ENCODED_SEPARATORS = ("%2e", "%2f", "%5c", "%25", "%00")
"""Dots, separators and percent signs that somebody may decode later, after all checks."""


class Within(Record):
    """`Annotated[Path, Within("data")]`: the path stays in a folder, wherever links and dots lead.

    Holds for every caller. A relative root is one of the folder that the tool runs in.
    """

    root: str

    def tooli_check(self, value: Any) -> None:
        """Refuse a path that leads out of the folder."""
        root = os.path.realpath(os.fspath(self.root))
        for text in _iter_texts(value):
            _reject_encoded(text)
            spellings = {text, text.replace("\\", "/")}  # what is no separator here may be later
            if "://" in text or "\0" in text or not all([_is_inside(s, root) for s in spellings]):
                raise ConversionError(
                    f"{text!r} leads out of {os.fspath(self.root)!r}, and must stay in it",
                    code="E1031",
                )


def _is_inside(text: str, root: str) -> bool:
    found = os.path.realpath(text)
    return found == root or found.startswith(root.rstrip(os.sep) + os.sep)


class IdentifierConstraint(Record):
    """`Annotated[str, Identifier]`: the name of a thing, and nothing of a path or a URL.

    Refused, for every caller: control characters, `..`, backslashes, `?` and `#`, percent-encoded
    dots and separators, and slashes at either end.
    """

    def tooli_check(self, value: Any) -> None:
        """Refuse what is no plain name."""
        for text in _iter_texts(value):
            _reject_encoded(text)
            control_char = find_control_character(text)
            if control_char:
                raise ConversionError(
                    f"there is a control character in it, {control_char}", code="E1030"
                )
            if ".." in text.replace("\\", "/").split("/"):
                raise ConversionError(
                    f"{text!r} has '..' in it, which no identifier has", code="E1030"
                )
            for char in ("\\", "?", "#"):
                if char in text:
                    raise ConversionError(
                        f"{text!r} has {char!r} in it, as no identifier", code="E1030"
                    )
            if text.strip("/") != text or not text.strip():
                raise ConversionError(f"{text!r} is no identifier", code="E1030")


Identifier = IdentifierConstraint()


class VerbatimConstraint(Record):
    """`Annotated[str, Verbatim]`: any text whatever; an agent's is not looked at more closely."""

    def tooli_check(self, value: Any) -> None:
        """Take it as it is."""


Verbatim = VerbatimConstraint()


class InputLimits(Record):
    """`Annotated[StdinOr[str], InputLimits(max_bytes=10_000)]`: how much is read, and from where.

    `max_bytes` holds for every source, `timeout` (in seconds, for all of it) for URLs;
    `private=True` lets URLs lead to addresses of the own machine and network, `urls=False`
    takes none at all.
    """

    max_bytes: int | None = None
    timeout: float | None = None
    private: bool = False
    urls: bool = True

    def tooli_check(self, value: Any) -> None:
        """Nothing to refuse yet: it is looked at while reading."""


DEFAULT_INPUT_LIMITS = InputLimits()


def get_input_limits(constraints: tuple[Any, ...]) -> InputLimits:
    """The limits among a parameter's marks."""
    return next(
        (constraint for constraint in constraints if isinstance(constraint, InputLimits)),
        DEFAULT_INPUT_LIMITS,
    )


def find_control_character(text: str) -> str | None:
    """The first control character that no text needs, as `U+001B at 5`; newlines and tabs are."""
    if text.isprintable():
        return None
    for i, char in enumerate(text):
        code = ord(char)
        if (code < 0x20 and char not in "\t\n\r") or 0x7F <= code <= 0x9F:
            return f"U+{code:04X} at {i}"
    return None


def _reject_encoded(text: str) -> None:
    lowered = text.lower()
    for encoded in _ENCODED_SEPARATORS:
        if encoded in lowered:
            raise ConversionError(
                f"{text!r} has {encoded!r} in it: write what it stands for, or leave it out",
                code="E1030",
            )


def _iter_texts(value: Any) -> Iterator[str]:
    """The texts of a fitted value: of a path, an input's source, each item of a list."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        items: Any = value  # pyright: ignore[reportUnknownVariableType]
        for item in items:
            yield from _iter_texts(item)
    elif hasattr(value, "__fspath__"):
        yield os.fspath(value)
    else:
        location = getattr(value, "tooli_location", None)
        if location is not None:
            yield location
