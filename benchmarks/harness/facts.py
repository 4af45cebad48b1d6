"""Check whether a document about the help desk contains the facts that an agent needs.

The document can have any format: JSON, Markdown, or one line per command. In JSON, the objects with
the name of a command describe it. In other formats, the text from the name of a command to the name
of the next one describes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from harness.help_desk import COMMANDS, PROGRAM, Command, Parameter

TYPES = {
    "str": r"\b(str|string)\b",
    "int": r"\b(int|integer|number)\b",
    "float": r"\b(float|number)\b",
    "bool": r"\b(bool|boolean)\b",
    "list": r"\b(array|list)\b|\.\.\.|\[\]",
}
NAMES = {spelled: c.name for c in COMMANDS for spelled in (c.name, c.function)}
WINDOW = 400  # characters after the name of a parameter that are searched for its type
CALL = rf"\b{PROGRAM} (COMMAND|<?command|\[?OPTIONS|{'|'.join(c.name for c in COMMANDS)})"
ERROR = r"(?s)\berror\b.{0,120}\bcode\b.{0,120}\b(message|suggestion|fix)\b"
MORE = r"--(help-agent|schema|help|llms-full)\b"


@dataclass(frozen=True)
class Fact:
    """A fact that an agent needs: its kind, its subject, and whether a document contains it."""

    kind: str
    subject: str
    known: bool


def check_facts(text: str) -> list[Fact]:
    """Return all facts, checked against a document."""
    parts = split_by_command(text)
    found = [fact for command in COMMANDS for fact in check_command(command, parts[command.name])]
    general = {"how to call": CALL, "how errors look": ERROR, "how to get more": MORE}
    return [*found, *(Fact(kind, "", matches(pattern, text)) for kind, pattern in general.items())]


def check_command(command: Command, part: str) -> Iterator[Fact]:
    """Yield the facts about a command, checked against the text about it."""
    name = command.name
    yield Fact("name", name, bool(part))
    yield Fact("purpose", name, command.description.rstrip(".") in part)
    for parameter in command.parameters:
        yield Fact("parameter", f"{name} {parameter.name}", bool(find_names(parameter, part)))
        yield Fact("type", f"{name} {parameter.name}", states_type(parameter, command, part))
        if parameter.required:
            yield Fact("required", f"{name} {parameter.name}", states_required(parameter, part))
        elif parameter.default not in (False, "", ()):
            shown = any(
                matches(rf"\b{re.escape(str(parameter.default))}\b", window)
                for window in texts_after(parameter, command, part)
            )
            yield Fact("default", f"{name} {parameter.name}", shown)
    yield Fact("result", name, all(matches(rf"\b{field}\b", part) for field in command.result))
    if command.read_only:
        yield Fact("read-only", name, matches(r'(?i)read.?only(Hint"\s*:\s*true)?', part))
    if command.destructive:
        yield Fact("destructive", name, matches(r'(?i)destructive(?!(Hint)?"?\s*:\s*false)', part))


def split_by_command(text: str) -> dict[str, str]:
    """Return the text about each command."""
    parts = {command.name: "" for command in COMMANDS}
    try:
        found = find_objects(json.loads(text))
    except ValueError:
        found = find_passages(text)
    for name, text in found:
        parts[name] += f"{text}\n"
    return parts


def find_passages(text: str) -> Iterator[tuple[str, str]]:
    """Yield each name of a command with the text up to the name of the next command."""
    spelled = "|".join(sorted(map(re.escape, NAMES), key=len, reverse=True))
    found = [*re.finditer(rf"(?<![\w-])({spelled})(?![\w-])", text)]
    for here, after in zip(found, [*found, None][1:], strict=True):
        yield NAMES[here[1]], text[here.start() : after.start() if after else len(text)]


def find_objects(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the JSON objects whose `name` or key is the name of a command."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from find_objects(item)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        name = fields.get("name")
        if isinstance(name, str) and name in NAMES:
            yield NAMES[name], json.dumps(fields, ensure_ascii=False)
            return
        for key, inner in fields.items():
            if key in NAMES:
                yield NAMES[key], json.dumps({key: inner}, ensure_ascii=False)
            else:
                yield from find_objects(inner)


def find_names(parameter: Parameter, part: str) -> list[int]:
    """Return the positions after each name of a parameter, as an identifier or as a flag."""
    pattern = rf"(?<![\w-])(--)?{parameter.name.replace('_', '[-_]')}(?![\w])"
    return [found.end() for found in re.finditer(pattern, part)]


def texts_after(parameter: Parameter, command: Command, part: str) -> Iterator[str]:
    """Yield the text after each name of a parameter, up to the next parameter."""
    others = sorted(
        position
        for other in command.parameters
        if other is not parameter
        for position in find_names(other, part)
    )
    for position in find_names(parameter, part):
        end = next((other for other in others if other > position), len(part))
        yield part[position : min(end, position + WINDOW)]


def states_type(parameter: Parameter, command: Command, part: str) -> bool:
    """Return whether the text contains the type of a parameter, or all of its choices."""
    flag = "--" + parameter.name.replace("_", "-")
    if parameter.kind == "bool" and re.search(rf"\[{flag}(/--no-[\w-]+)?\]", part):
        return True
    for window in texts_after(parameter, command, part):
        if parameter.kind == "choice":
            if all(matches(rf"\b{choice}\b", window) for choice in parameter.choices):
                return True
        elif matches(TYPES[parameter.kind], window):
            return True
    return False


def states_required(parameter: Parameter, part: str) -> bool:
    """Return whether the text says that a parameter is required."""
    name = parameter.name
    patterns = (
        rf'"required"\s*:\s*\[[^\]]*"{name}"',
        rf"<{name}[:>.]",
        rf"`{name}`[^\n]*\byes\b",
        rf"\b{name}\b[^\n]{{0,60}}\brequired\b",
    )
    return any(matches(pattern, part) for pattern in patterns)


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern occurs in a text."""
    return re.search(pattern, text) is not None
