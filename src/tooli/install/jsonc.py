"""JSON with comments, read with the place of every part; trailing commas are read, too."""

from __future__ import annotations

import json
import re

from tooli.core.record import Record
from tooli.install.malformed_file import MalformedFileError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|true|false|null")
_DECODER = json.JSONDecoder()


class JsonNode(Record):
    """A value, and where its text stands."""

    value: Any
    start: int
    end: int
    members: tuple[JsonMember, ...] = ()


class JsonMember(Record):
    """A name in an object, with its value."""

    name: str
    start: int
    node: JsonNode


def parse_jsonc(text: str) -> JsonNode | None:
    """The value of a text, with its parts; None where there is nothing but space."""
    reader = _Parser(text)
    reader.skip()
    if reader.position == len(text):
        return None
    try:
        root = reader.value()
    except RecursionError:
        raise MalformedFileError(1, "it is nested too deeply") from None
    reader.skip()
    if reader.position != len(text):
        raise MalformedFileError(
            line_number(text, reader.position), "there is something behind the end"
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
        word = _LITERAL.match(self.text, start)
        if word is None:
            raise self.error("a value is missing")
        self.position = word.end()
        return JsonNode(json.loads(word.group()), start, self.position)

    def string(self) -> str:
        try:
            found, self.position = _DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as wrong:
            raise MalformedFileError(wrong.lineno, wrong.msg.lower()) from None
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
        """Whether another part follows; behind the bracket, or the comma, or the end."""
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
    """The number of the line that a place is on."""
    return text.count("\n", 0, position) + 1


def find_member(node: JsonNode, name: str) -> JsonMember | None:
    """The member of that name; of several the last, as parsers have it."""
    return next((member for member in reversed(node.members) if member.name == name), None)


def skip_space(text: str, position: int) -> int:
    """The place behind space and comments."""
    found = _SPACE.match(text, position)
    return found.end() if found else position
