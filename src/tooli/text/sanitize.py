r"""Sanitize text: remove terminal control sequences and invisible characters.

    ESC [31m, ESC ]52;…BEL, U+009B …    whole control sequences, also unterminated ones
    U+0000-1F but \t \n \r, U+007F-9F   control characters
    U+00AD, U+200B, U+202E, U+E0041 …   characters that hide, reorder or smuggle text

Emoji, Persian and Hindi need joiners (U+200C, U+200D) and variation selectors (U+FE00-FE0F).
`strict` removes all of them. Otherwise a joiner, a selector, or a selector followed by a joiner
stays. No language needs longer runs, which can hide a message, so the rest of a run is removed. The
three flag emoji that consist of tag characters (England, Scotland, Wales) stay unless `strict` is
set.

Every pattern that removes text begins with a character class, which the regex engine searches
quickly.
"""

from __future__ import annotations

import re
from operator import add
from typing import NamedTuple

CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
INVISIBLE = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
)
JOINERS = "\u200c\u200d"
SELECTORS = "\ufe00-\ufe0f"

_INTRODUCERS = "\\x1b\\x90\\x98\\x9b\\x9d-\\x9f"
"""Characters that begin a sequence, and end the string of the sequence before it."""
_UP_TO_BEL_OR_ST = f"[^\\x07\\x18\\x1a\\x9c{_INTRODUCERS}]*"
_UP_TO_ST = f"[^\\x18\\x1a\\x9c{_INTRODUCERS}]*"
_STRING_END = f"[\\x18\\x1a\\x9c]|\\x1b\\\\|(?=[{_INTRODUCERS}])"
_UP_TO_LINE_END = f"[^\\x07\\x18\\x1a\\x9c\\n\\r{_INTRODUCERS}]*"
_CSI_PARAMETERS = "[0-?]*[ -/]*[@-~]?"
_SEQUENCE = re.compile(
    f"[{_INTRODUCERS}](?:"
    f"(?:(?<=\\x9b)|(?<=\\x1b)\\[){_CSI_PARAMETERS}|"
    f"(?:(?<=\\x9d)|(?<=\\x1b)\\])(?:{_UP_TO_BEL_OR_ST}(?:\\x07|{_STRING_END})|{_UP_TO_LINE_END})|"
    f"(?:(?<=[\\x90\\x98\\x9e\\x9f])|(?<=\\x1b)[PX^_])(?:{_UP_TO_ST}(?:{_STRING_END})|{_UP_TO_LINE_END})|"
    "(?<=\\x1b)[ -/]*[0-~]?)"
)
_CONTROL = re.compile(f"[{CONTROLS}]")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_INVISIBLE_STRICT = re.compile(f"[{INVISIBLE}{JOINERS}{SELECTORS}]")
_JOINER = re.compile(f"[{JOINERS}{SELECTORS}]")
_REPEATED_JOINERS = re.compile(
    f"[{JOINERS}{SELECTORS}](?:"
    f"(?<=[{JOINERS}].)|(?<=[{SELECTORS}][{SELECTORS}]))[{JOINERS}{SELECTORS}]*"
)
"""The part of a run of joiners and selectors that is removed."""
_REMOVABLE = re.compile(f"[{CONTROLS}{INVISIBLE}]")
_TAG_FLAG = re.compile(
    "(\U0001f3f4(?:"
    + "|".join(
        [
            "".join([chr(0xE0000 + ord(letter)) for letter in name])
            for name in ("gbeng", "gbsct", "gbwls")
        ]
    )
    + ")\U000e007f)"
)
_PRINTABLE_BYTES = bytes([*range(0x20, 0x7F), 9, 10, 13])
_HARMLESS_BYTES = bytes(
    [
        code
        for code in range(256)
        if code in _PRINTABLE_BYTES or (code >= 0x80 and code not in b"\xc2\xd8\xe1\xe2\xef\xf3")
    ]
)
"""UTF-8 bytes that are not the first byte of any removable character."""


class RemovedCounts(NamedTuple):
    """Numbers of removed control sequences and characters."""

    sequences: int = 0
    controls: int = 0
    invisible: int = 0

    def __bool__(self) -> bool:
        return any(self)


NOTHING_REMOVED = RemovedCounts()


def sanitize(text: str, strict: bool = False) -> tuple[str, RemovedCounts]:
    """Return the sanitized text, and how much was removed."""
    if is_clean(text, strict):
        return text, NOTHING_REMOVED
    if not strict and "\U000e007f" in text:
        return _sanitize_around_flags(text)
    return _remove_unsafe(text, strict)


def is_clean(text: str, strict: bool = False) -> bool:
    """True if `sanitize` removes nothing. For tag flags the result is False, but they are kept."""
    if text.isascii():
        return text.isprintable() or not text.encode().translate(None, _PRINTABLE_BYTES)
    if not text.encode("utf-8", "surrogatepass").translate(None, _HARMLESS_BYTES):
        return True
    if _REMOVABLE.search(text) is not None:
        return False
    return (_JOINER if strict else _REPEATED_JOINERS).search(text) is None


def _remove_unsafe(text: str, strict: bool) -> tuple[str, RemovedCounts]:
    """Remove sequences first, so that removing characters cannot create new ones."""
    text, sequences = _SEQUENCE.subn("", text)
    text, controls = _CONTROL.subn("", text)
    if text.isascii():
        return text, RemovedCounts(sequences, controls)
    before = len(text)
    text = (_INVISIBLE_STRICT if strict else _INVISIBLE).sub("", text)
    if not strict and _JOINER.search(text):
        text = _REPEATED_JOINERS.sub("", text)
    return text, RemovedCounts(sequences, controls, before - len(text))


def _sanitize_around_flags(text: str) -> tuple[str, RemovedCounts]:
    """Sanitize a text, but keep the tag characters that are part of a flag emoji."""
    counts = NOTHING_REMOVED
    parts: list[str] = []
    for i, part in enumerate(_TAG_FLAG.split(text)):
        if i % 2 == 0:
            part, removed = _remove_unsafe(part, False)
            counts = RemovedCounts(*map(add, counts, removed))
        parts.append(part)
    return "".join(parts), counts
