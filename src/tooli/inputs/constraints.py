"""Constraints for `Annotated`. They restrict the values of a parameter, or how an input is read.

A constraint is any object with a method `tooli_check(value)` that raises a ConversionError for an
invalid value.
"""

from __future__ import annotations

import os

from tooli.core import Record
from tooli.core.tool import check_path_size, quote
from tooli.schema import ConversionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ENCODED_SEPARATORS = ("%2e", "%2f", "%5c", "%25", "%00")
"""Percent-encoded characters that another program may decode after the checks."""


class Within(Record):
    """`Annotated[Path, Within("data")]`: the path must be inside a folder.

    Symbolic links are resolved first. The constraint applies to every caller. A relative root is
    relative to the working directory.
    """

    root: str

    def tooli_check(self, value: object) -> None:
        """Raise an error for a path outside the folder."""
        root = os.path.realpath(os.fspath(self.root))
        for text in _iter_texts(value, real_paths=True):
            check_path_size(text)
            _reject_encoded(text)
            spellings = {text, text.replace("\\", "/")}  # "\\" is a separator on Windows
            if "://" in text or "\0" in text or not all([_is_inside(s, root) for s in spellings]):
                raise ConversionError(
                    f"{quote(text)} must be inside {os.fspath(self.root)!r}",
                    code="E1031",
                )


def _is_inside(text: str, root: str) -> bool:
    found = os.path.realpath(text)
    return found == root or found.startswith(root.rstrip(os.sep) + os.sep)


class IdentifierConstraint(Record):
    """`Annotated[str, Identifier]`: a name that cannot act as a path or a URL.

    Invalid for every caller: control characters, `..`, backslashes, `?`, `#`, percent-encoded dots
    and separators, and slashes at either end.
    """

    def tooli_check(self, value: object) -> None:
        """Raise an error for a text that is not an identifier."""
        for text in _iter_texts(value):
            _reject_encoded(text)
            control_char = find_control_character(text)
            if control_char:
                raise ConversionError(
                    f"it contains a control character, {control_char}", code="E1030"
                )
            parts = text.replace("\\", "/").split("/")
            forbidden = ".." if ".." in parts else next((c for c in "\\?#" if c in text), None)
            if forbidden or text.strip("/") != text or not text.strip():
                reason = f": it contains {forbidden!r}" if forbidden else ""
                raise ConversionError(f"{quote(text)} is not an identifier{reason}", code="E1030")


Identifier = IdentifierConstraint()


class VerbatimConstraint(Record):
    """`Annotated[str, Verbatim]`: any text; control characters are allowed."""

    accepts_any_text = True  # pyright: ignore[reportUnannotatedClassAttribute]

    def tooli_check(self, value: object) -> None:
        """Accept any value."""


Verbatim = VerbatimConstraint()


class InputLimits(Record):
    """`Annotated[StdinOr[str], InputLimits(max_bytes=10_000)]`: limits of an input.

    `max_bytes` applies to every location, `timeout` (total seconds) to URLs. `private=True` allows
    URLs with addresses of this machine and its network. `urls=False` allows no URLs.
    """

    max_bytes: int | None = None
    timeout: float | None = None
    private: bool = False
    urls: bool = True

    def tooli_check(self, value: object) -> None:
        """Accept any value: the limits apply while reading."""


DEFAULT_INPUT_LIMITS = InputLimits()


def get_input_limits(constraints: tuple[Any, ...]) -> InputLimits:
    """Return the input limits among the constraints of a parameter, or the default limits."""
    return next(
        (constraint for constraint in constraints if isinstance(constraint, InputLimits)),
        DEFAULT_INPUT_LIMITS,
    )


def find_control_character(text: str) -> str | None:
    """Return the first control character except tabs and line breaks, as `U+001B at 5`, or None."""
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
                f"{quote(text)} contains {encoded!r}: write the decoded character, or leave it out",
                code="E1030",
            )


def _iter_texts(value: Any, *, real_paths: bool = False) -> Iterator[str]:
    """Yield the texts of a value: a path, the location of an input, each item of a list.

    With `real_paths`, yield also the path that an output has resolved.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        items: Any = value  # pyright: ignore[reportUnknownVariableType]
        for item in items:
            yield from _iter_texts(item, real_paths=real_paths)
    elif hasattr(value, "__fspath__"):
        yield os.fspath(value)
    else:
        location = getattr(value, "tooli_location", None)
        if location is not None:
            yield location
            real_path = getattr(value, "tooli_real_path", None) if real_paths else None
            if real_path is not None:
                yield real_path
