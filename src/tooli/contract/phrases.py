"""Phrases that speak to a model rather than about something: they are pointed out, never changed.

No list can hold them all, and a text that holds none is not safe for that. A phrase counts where
it stands in a result, not in what the author of a tool has written.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_EARLIER = (
    "(?:all |any |the |your |these |my |of |prior |previous |preceding |earlier |above |system )"
)
_ORDERS = "(?:instructions?|prompts?|rules|directives|guidelines|messages|context)"
PHRASE = re.compile(
    "|".join(
        [
            f"\\b(?:ignore|disregard|forget|override) {_EARLIER}{{1,4}}{_ORDERS}\\b",
            "\\byou are now (?:a |an |in |the |acting |going |dan\\b)",
            "\\bfrom now on,? you (?:are|will|must|should)\\b",
            "\\b(?:new|updated|real|actual) (?:system )?instructions?:",
            "\\b(?:begin|start|end) (?:of )?(?:the )?system prompt\\b",
            "\\b(?:reveal|print|show|repeat|output) (?:me )?(?:your|the) system prompt\\b",
            "\\bdo not (?:tell|inform|mention|reveal)(?: this)?(?: to)? the (?:user|human)\\b",
            "\\bwithout (?:telling|asking|informing) the (?:user|human)\\b",
            "</?(?:system|assistant|tool_call|tool_result|function_calls?|instructions)\\s{0,9}>",
            "<\\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id)[^\\s|]{0,20}\\|>",
            "\\[/?inst\\]|<<sys>>",
            "^(?:system|assistant): ?(?:you|ignore|do not|always|never)\\b",
            "!\\[[^\\]\\n]{0,200}\\]\\(https?://[^\\s)]{1,500}[?&][^\\s)=]{1,60}=[^\\s)]{0,2000}\\)",
        ]
    ),
    re.IGNORECASE | re.MULTILINE,
)
MOST = 3
"""How many places are named."""
_SHOWN = 60


def find_phrases(value: Any, most: int = MOST) -> Iterator[tuple[str, str]]:
    """Where phrases stand in a value of JSON's own types, and which: a JSON Pointer for each."""
    for at, text in _texts(value, ""):
        found = PHRASE.search(text)
        if found is not None:
            yield at, found.group()[:_SHOWN]
            most -= 1
            if not most:
                return


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
