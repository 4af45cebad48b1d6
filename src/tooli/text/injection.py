"""Find prompt injections: phrases in a result that try to instruct the model that reads it.

Findings are reported in a warning, and the text is not changed. The list of patterns cannot be
complete, so a text without a finding is not necessarily safe.
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
_INSTRUCTIONS = "(?:instructions?|prompts?|rules|directives|guidelines|messages|context)"
_TAGS = "(?:system|assistant|tool_call|tool_result|function_calls?|instructions?)"


def _injection_pattern(pattern: str, *markers: str) -> tuple[Pattern[str], tuple[str, ...]]:
    return re.compile(pattern.replace(" ", "\\s{1,3}"), re.MULTILINE), markers


INJECTION_PATTERNS = (
    *[
        _injection_pattern(f"\\b{verb} {_EARLIER}{{1,4}}{_INSTRUCTIONS}\\b", f"{verb} ")
        for verb in ("ignore", "disregard", "forget", "override")
    ],
    _injection_pattern("\\byou are now (?:a|an|in|the|acting|going|dan)\\b", "you are now"),
    _injection_pattern("\\bfrom now on,? you (?:are|will|must|should)\\b", "from now on"),
    _injection_pattern("\\b(?:new|updated|real|actual) (?:system )?instructions?:", "instruction"),
    _injection_pattern(
        "\\b(?:begin|start|end|reveal|print|show|repeat|output)"
        " (?:of |me )?(?:the |your )?system prompt\\b",
        "system prompt",
    ),
    _injection_pattern(
        "\\bdo not (?:tell|inform|mention|reveal)(?: this)?(?: to)? the (?:user|human)\\b",
        *("do not tell", "do not inform", "do not mention", "do not reveal"),
    ),
    _injection_pattern(
        "\\bwithout (?:telling|asking|informing) the (?:user|human)\\b",
        "without telling",
        "without asking",
        "without informing",
    ),
    _injection_pattern(
        f"</?{_TAGS}\\s{{0,9}}>", "system>", "assistant>", "_call", "tool_result>", "instruction"
    ),
    _injection_pattern("<\\|[a-z_]{2,20}\\|>", "<|"),
    _injection_pattern("\\[/?inst\\]|<<sys>>", "inst]", "<<sys"),
    _injection_pattern(
        "^(?:system|assistant):\\s?(?:you|ignore|do not|always|never)\\b", "system:", "assistant:"
    ),
    _injection_pattern(
        "!\\[[^\\]\\n]{0,200}\\]\\(https?://[^\\s)?]{1,300}\\?[^\\s)]{1,500}\\)", "](http"
    ),
)
"""Patterns for text in lower case, with markers: every match contains at least one of them."""
MAX_FINDINGS = 3
"""Maximum number of findings in a warning."""
_MAX_PHRASE_CHARS = 60


def find_injections(value: object, max_findings: int = MAX_FINDINGS) -> Iterator[tuple[str, str]]:
    """Yield the JSON Pointer and the phrase of each finding in a value of JSON types."""
    for pointer, text in _iter_texts(value, ""):
        phrase = find_injection(text)
        if phrase is not None:
            yield pointer, phrase
            max_findings -= 1
            if not max_findings:
                return


def find_injection(text: str) -> str | None:
    """Return the first match of the first matching pattern, in lower case, or None."""
    text = text.lower()
    for pattern, markers in INJECTION_PATTERNS:
        if any([marker in text for marker in markers]):
            found = pattern.search(text)
            if found is not None:
                return found.group()[:_MAX_PHRASE_CHARS]
    return None


def _iter_texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            child_pointer = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"  # pyright: ignore[reportUnknownArgumentType]
            yield child_pointer, str(key)  # pyright: ignore[reportUnknownArgumentType]
            yield from _iter_texts(item, child_pointer)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from _iter_texts(item, f"{pointer}/{i}")
