"""Phrases that speak to a model rather than about something: they are pointed out, never changed.

No list can hold them all, and a text that holds none is not safe for that. A phrase counts where
it stands in a result, not in what the author of a tool has written.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Pattern
    from typing import Any

_EARLIER = (
    "(?:all |any |the |your |these |my |of |prior |previous |preceding |earlier |above |system )"
)
_ORDERS = "(?:instructions?|prompts?|rules|directives|guidelines|messages|context)"
_TAGS = "(?:system|assistant|tool_call|tool_result|function_calls?|instructions?)"


def _kind(pattern: str, *signs: str) -> tuple[Pattern[str], tuple[str, ...]]:
    return re.compile(pattern.replace(" ", "\\s{1,3}"), re.MULTILINE), signs


KINDS = (
    *[
        _kind(f"\\b{verb} {_EARLIER}{{1,4}}{_ORDERS}\\b", f"{verb} ")
        for verb in ("ignore", "disregard", "forget", "override")
    ],
    _kind("\\byou are now (?:a|an|in|the|acting|going|dan)\\b", "you are now"),
    _kind("\\bfrom now on,? you (?:are|will|must|should)\\b", "from now on"),
    _kind("\\b(?:new|updated|real|actual) (?:system )?instructions?:", "instruction"),
    _kind(
        "\\b(?:begin|start|end|reveal|print|show|repeat|output)"
        " (?:of |me )?(?:the |your )?system prompt\\b",
        "system prompt",
    ),
    _kind(
        "\\bdo not (?:tell|inform|mention|reveal)(?: this)?(?: to)? the (?:user|human)\\b",
        *("do not tell", "do not inform", "do not mention", "do not reveal"),
    ),
    _kind(
        "\\bwithout (?:telling|asking|informing) the (?:user|human)\\b",
        "without telling",
        "without asking",
        "without informing",
    ),
    _kind(
        f"</?{_TAGS}\\s{{0,9}}>", "system>", "assistant>", "_call", "tool_result>", "instruction"
    ),
    _kind("<\\|[a-z_]{2,20}\\|>", "<|"),
    _kind("\\[/?inst\\]|<<sys>>", "inst]", "<<sys"),
    _kind(
        "^(?:system|assistant):\\s?(?:you|ignore|do not|always|never)\\b", "system:", "assistant:"
    ),
    _kind("!\\[[^\\]\\n]{0,200}\\]\\(https?://[^\\s)?]{1,300}\\?[^\\s)]{1,500}\\)", "](http"),
)
"""Each kind's pattern, in small letters, and what is in every text that it is in: one of these."""
MOST = 3
"""How many places are named."""
_SHOWN = 60


def find_phrases(value: Any, most: int = MOST) -> Iterator[tuple[str, str]]:
    """Where phrases stand in a value of JSON's own types, and which: a JSON Pointer for each."""
    for at, text in _texts(value, ""):
        phrase = find_phrase(text)
        if phrase is not None:
            yield at, phrase
            most -= 1
            if not most:
                return


def find_phrase(text: str) -> str | None:
    """The first phrase of the first kind that is in a text."""
    text = text.lower()
    for pattern, signs in KINDS:
        if any([sign in text for sign in signs]):
            found = pattern.search(text)
            if found is not None:
                return found.group()[:_SHOWN]
    return None


def _texts(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            name = f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}"  # pyright: ignore[reportUnknownArgumentType]
            yield name, str(key)  # pyright: ignore[reportUnknownArgumentType]
            yield from _texts(item, name)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from _texts(item, f"{at}/{i}")
