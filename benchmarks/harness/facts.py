"""What an agent has to know before it can use the help desk, as questions to any text about it.

A question is answered by the text alone, in whatever form: JSON, Markdown, a line per command.
Of JSON, the objects that have a command's name are about the command; of anything else, the words
from its name to the next command's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from harness.desk import COMMANDS, PROGRAM, Command, Parameter

TYPES = {
    "str": r"\b(str|string)\b",
    "int": r"\b(int|integer|number)\b",
    "float": r"\b(float|number)\b",
    "bool": r"\b(bool|boolean)\b",
    "list": r"\b(array|list)\b|\.\.\.|\[\]",
}
NAMES = {spelled: c.name for c in COMMANDS for spelled in (c.name, c.function)}
WINDOW = 400  # characters behind a parameter's name in which its type is looked for
CALL = rf"\b{PROGRAM} (COMMAND|<?command|\[?OPTIONS|{'|'.join(c.name for c in COMMANDS)})"
ERROR = r"(?s)\berror\b.{0,120}\bcode\b.{0,120}\b(message|suggestion|fix)\b"
MORE = r"--(help-agent|schema|help|llms-full)\b"


@dataclass(frozen=True)
class Fact:
    """One question: its kind, whom it is about, and whether a text answers it."""

    kind: str
    about: str
    known: bool


def facts(text: str) -> list[Fact]:
    """The checklist, gone through with a text."""
    parts = portions(text)
    found = [fact for command in COMMANDS for fact in about(command, parts[command.name])]
    general = {"how to call": CALL, "how errors look": ERROR, "how to get more": MORE}
    return [*found, *(Fact(kind, "", seen(rule, text)) for kind, rule in general.items())]


def about(command: Command, part: str) -> Iterator[Fact]:
    """The questions about one command."""
    name = command.name
    yield Fact("name", name, bool(part))
    yield Fact("purpose", name, command.about.rstrip(".") in part)
    for parameter in command.parameters:
        yield Fact("parameter", f"{name} {parameter.name}", bool(spots(parameter, part)))
        yield Fact("type", f"{name} {parameter.name}", typed(parameter, command, part))
        if parameter.required:
            yield Fact("required", f"{name} {parameter.name}", demanded(parameter, part))
        elif parameter.default not in (False, "", ()):
            shown = any(
                seen(rf"\b{re.escape(str(parameter.default))}\b", window)
                for window in windows(parameter, command, part)
            )
            yield Fact("default", f"{name} {parameter.name}", shown)
    yield Fact("result", name, all(seen(rf"\b{field}\b", part) for field in command.result))
    if command.reads:
        yield Fact("read-only", name, seen(r'(?i)read.?only(Hint"\s*:\s*true)?', part))
    if command.destroys:
        yield Fact("destructive", name, seen(r'(?i)destructive(?!(Hint)?"?\s*:\s*false)', part))


def portions(text: str) -> dict[str, str]:
    """What a text says about each command."""
    parts = {command.name: "" for command in COMMANDS}
    try:
        found = objects(json.loads(text))
    except ValueError:
        found = passages(text)
    for name, text in found:
        parts[name] += f"{text}\n"
    return parts


def passages(text: str) -> Iterator[tuple[str, str]]:
    """Words from a command's name to the name of another, wherever it is named."""
    spelled = "|".join(sorted(map(re.escape, NAMES), key=len, reverse=True))
    found = [*re.finditer(rf"(?<![\w-])({spelled})(?![\w-])", text)]
    for here, after in zip(found, [*found, None][1:], strict=True):
        yield NAMES[here[1]], text[here.start() : after.start() if after else len(text)]


def objects(value: Any) -> Iterator[tuple[str, str]]:
    """JSON objects that have a command's name, inside them or as their key."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from objects(item)
    elif isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        name = known.get("name")
        if isinstance(name, str) and name in NAMES:
            yield NAMES[name], json.dumps(known, ensure_ascii=False)
            return
        for key, inner in known.items():
            if key in NAMES:
                yield NAMES[key], json.dumps({key: inner}, ensure_ascii=False)
            else:
                yield from objects(inner)


def spelling(parameter: Parameter) -> str:
    """A parameter's name, as a program or as a command line has it."""
    return rf"(?<![\w-])(--)?{parameter.name.replace('_', '[-_]')}(?![\w])"


def spots(parameter: Parameter, part: str) -> list[int]:
    """Where a parameter is named."""
    return [found.end() for found in re.finditer(spelling(parameter), part)]


def windows(parameter: Parameter, command: Command, part: str) -> Iterator[str]:
    """Return the text after a parameter's name, up to the next parameter."""
    others = sorted(
        spot
        for other in command.parameters
        if other is not parameter
        for spot in spots(other, part)
    )
    for spot in spots(parameter, part):
        end = next((other for other in others if other > spot), len(part))
        yield part[spot : min(end, spot + WINDOW)]


def typed(parameter: Parameter, command: Command, part: str) -> bool:
    """Whether it says what values a parameter takes; a choice is known by all that it allows."""
    flag = "--" + parameter.name.replace("_", "-")
    if parameter.kind == "bool" and re.search(rf"\[{flag}(/--no-[\w-]+)?\]", part):
        return True
    for window in windows(parameter, command, part):
        if parameter.kind == "choice":
            if all(seen(rf"\b{choice}\b", window) for choice in parameter.choices):
                return True
        elif seen(TYPES[parameter.kind], window):
            return True
    return False


def demanded(parameter: Parameter, part: str) -> bool:
    """Whether it says that every call has to give a parameter."""
    name = parameter.name
    rules = (
        rf'"required"\s*:\s*\[[^\]]*"{name}"',
        rf"<{name}[:>.]",
        rf"`{name}`[^\n]*\byes\b",
        rf"\b{name}\b[^\n]{{0,60}}\brequired\b",
    )
    return any(seen(rule, part) for rule in rules)


def seen(rule: str, text: str) -> bool:
    """Whether a rule finds something."""
    return re.search(rule, text) is not None
