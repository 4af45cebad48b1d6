"""The command line that asks the same thing again, with one of the framework's words changed."""

from __future__ import annotations

from tooli.call.repair import compose
from tooli.contract.fit import Given

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.call.model import Call
    from tooli.call.shaping import Shaping


def again(call: Call, **changes: Any) -> list[str]:
    """The line as it was typed, or as it would be, with other words for the framework."""
    tool = call.tool
    program = list(call.caller.prog or (tool.app,))
    own = {flag for param in tool.params for flag in (*param.flags, *param.negations)}
    shaping = call.options.shaping
    if shaping is not None and shaping.typed is not None:
        words = list(shaping.typed)
        for name, value in changes.items():
            words = _changed(words, tool.words, _flags(name, own), str(value))
        return [*program, *words]
    said = {**_said(shaping), **changes}
    flags: list[str] = []
    for name, value in said.items():
        text = str(value)
        flag = _flags(name, own)[0]
        flags += [f"{flag}={text}"] if text[:1] == "-" else [flag, text]
    if call.options.yes:
        flags.append(_flags("yes", own)[0])
    if call.options.detailed:
        flags += [_flags("response_format", own)[0], "detailed"]
    asked = {
        name: value.value if isinstance(value, Given) else value
        for name, value in (call.arguments if call.flow is None else call.flow.asked).items()
    }
    return [*program, *tool.words, *compose(tool, asked, *flags)]


def _said(shaping: Shaping | None) -> Mapping[str, Any]:
    if shaping is None:
        return {}
    names = ("limit", "filter", "fields", "cursor", "max_items")
    sizes = () if shaping.assumed else ("max_bytes", "max_tokens")
    found = {name: getattr(shaping, name) for name in (*names, *sizes)}
    return {name: value for name, value in found.items() if value is not None}


def _flags(name: str, own: set[str]) -> tuple[str, ...]:
    """The words that stand for an option of the framework's, the one to write first."""
    plain = name.replace("_", "-")
    if f"--{plain}" in own:
        return (f"--tooli-{plain}",)
    return f"--{plain}", f"--tooli-{plain}"


def _changed(
    words: list[str], path: Sequence[str], flags: tuple[str, ...], value: str
) -> list[str]:
    """The words with a flag's value changed where it stands last, or with the flag added."""
    end = words.index("--") if "--" in words else len(words)
    for i in range(end - 1, -1, -1):
        word, equals, _ = words[i].partition("=")
        if word in flags and equals:
            return [*words[:i], f"{word}={value}", *words[i + 1 :]]
        if word in flags and i + 1 < len(words):
            return [*words[: i + 1], value, *words[i + 2 :]]
    added = [flags[0], value]
    if end == len(words):
        return [*words, *added]
    head = len(path) if words[: len(path)] == list(path) else 0
    return [*words[:head], *added, *words[head:]]
