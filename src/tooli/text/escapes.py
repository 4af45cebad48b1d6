"""Escape control and invisible characters in a text of one line, such as a path in a message."""

from __future__ import annotations

_PRINTABLE_INVISIBLE = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F),
            *(0x3164, *range(0xFE00, 0xFE10), 0xFFA0, *range(0xE0100, 0xE01F0)),
        ),
    )
)
"""Invisible characters that `str.isprintable` accepts, such as variation selectors."""


def escape_text(text: str) -> str:
    """Return a text in which control and invisible characters are escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        [
            char
            if char.isprintable() and char not in _PRINTABLE_INVISIBLE
            else char.encode("unicode_escape").decode()
            for char in text
        ]
    )


def escape_invisible(text: str) -> str:
    """Return a text in which invisible characters are escaped, except ASCII and those of emoji."""
    if text.isascii():
        return text
    keep = ("\u200d", "\ufe0f")
    return "".join([c if c.isascii() or c in keep else escape_text(c) for c in text])
