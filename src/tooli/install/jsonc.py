"""Parse JSON with comments and trailing commas, and keep the position of every value."""

from __future__ import annotations

import json
import re

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|true|false|null")
_DECODER = json.JSONDecoder()


class MalformedFileError(ValueError):
    """A settings file cannot be parsed. `line` is the line of the problem."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line, self.problem = line, problem


class JsonNode(Record):
    """A value and the position of its text."""

    value: Any
    start: int
    end: int
    members: tuple[JsonMember, ...] = ()


class JsonMember(Record):
    """A member of an object: name and value."""

    name: str
    start: int
    node: JsonNode


def parse_jsonc(text: str) -> JsonNode | None:
    """Parse a text; return None if it contains only whitespace and comments."""
    parser = _Parser(text)
    parser.skip()
    if parser.position == len(text):
        return None
    try:
        root = parser.value()
    except RecursionError:
        raise MalformedFileError(1, "nested too deeply") from None
    parser.skip()
    if parser.position != len(text):
        raise MalformedFileError(
            line_number(text, parser.position), "unexpected text after the end"
        )
    return root


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    def skip(self) -> None:
        self.position = skip_space(self.text, self.position)

    def value(self) -> JsonNode:
        start, first = self.position, self.text[self.position : self.position + 1]
        if first == "{":
            return self.object(start)
        if first == "[":
            return self.array(start)
        if first == '"':
            return JsonNode(self.string(), start, self.position)
        literal = _LITERAL.match(self.text, start)
        if literal is None:
            raise self.error("a value is missing")
        self.position = literal.end()
        return JsonNode(json.loads(literal.group()), start, self.position)

    def string(self) -> str:
        try:
            found, self.position = _DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            raise MalformedFileError(error.lineno, error.msg.lower()) from None
        return found

    def object(self, start: int) -> JsonNode:
        members: list[JsonMember] = []
        while self.has_next("}", first=not members):
            at = self.position
            if self.text[at : at + 1] != '"':
                raise self.error("a name in quotes is missing")
            name = self.string()
            self.skip()
            if self.text[self.position : self.position + 1] != ":":
                raise self.error("a colon is missing")
            self.position += 1
            self.skip()
            members.append(JsonMember(name, at, self.value()))
        whole = {member.name: member.node.value for member in members}
        return JsonNode(whole, start, self.position, tuple(members))

    def array(self, start: int) -> JsonNode:
        items: list[Any] = []
        while self.has_next("]", first=not items):
            items.append(self.value().value)
        return JsonNode(items, start, self.position)

    def has_next(self, close: str, *, first: bool) -> bool:
        """Skip the opening bracket, a comma or the closing bracket; True if an item follows."""
        if first:
            self.position += 1
        self.skip()
        following = self.text[self.position : self.position + 1]
        if not first and following == ",":
            self.position += 1
            self.skip()
            following = self.text[self.position : self.position + 1]
        elif not first and following != close:
            raise self.error(f"a comma or {close} is missing")
        if following == close:
            self.position += 1
            return False
        return True

    def error(self, problem: str) -> MalformedFileError:
        return MalformedFileError(line_number(self.text, self.position), problem)


def line_number(text: str, position: int) -> int:
    """Return the line number of a position."""
    return text.count("\n", 0, position) + 1


def find_member(node: JsonNode, name: str) -> JsonMember | None:
    """Return the member of that name, or None. Of duplicates the last one counts, as in JSON."""
    return next((member for member in reversed(node.members) if member.name == name), None)


def skip_space(text: str, position: int) -> int:
    """Return the position after whitespace and comments."""
    found = _SPACE.match(text, position)
    return found.end() if found else position
