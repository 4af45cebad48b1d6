"""JSON with comments, read with the place of every part; trailing commas are read, too."""

from __future__ import annotations

import json
import re

from tooli.contract.record import Record
from tooli.install.malformed import Malformed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|true|false|null")
_DECODER = json.JSONDecoder()


class Node(Record):
    """A value, and where its text stands."""

    value: Any
    start: int
    end: int
    members: tuple[Member, ...] = ()


class Member(Record):
    """A name in an object, with its value."""

    name: str
    start: int
    node: Node


def read_json(text: str) -> Node | None:
    """The value of a text, with its parts; None where there is nothing but space."""
    reader = _Reader(text)
    reader.skip()
    if reader.at == len(text):
        return None
    try:
        root = reader.value()
    except RecursionError:
        raise Malformed(1, "it is nested too deeply") from None
    reader.skip()
    if reader.at != len(text):
        raise Malformed(line_of(text, reader.at), "there is something behind the end")
    return root


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def skip(self) -> None:
        self.at = skipped(self.text, self.at)

    def value(self) -> Node:
        start, first = self.at, self.text[self.at : self.at + 1]
        if first == "{":
            return self.object(start)
        if first == "[":
            return self.array(start)
        if first == '"':
            return Node(self.string(), start, self.at)
        word = _WORD.match(self.text, start)
        if word is None:
            raise self.wrong("a value is missing")
        self.at = word.end()
        return Node(json.loads(word.group()), start, self.at)

    def string(self) -> str:
        try:
            found, self.at = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as wrong:
            raise Malformed(wrong.lineno, wrong.msg.lower()) from None
        return found

    def object(self, start: int) -> Node:
        members: list[Member] = []
        while self.goes_on("}", first=not members):
            at = self.at
            if self.text[at : at + 1] != '"':
                raise self.wrong("a name in quotes is missing")
            name = self.string()
            self.skip()
            if self.text[self.at : self.at + 1] != ":":
                raise self.wrong("a colon is missing")
            self.at += 1
            self.skip()
            members.append(Member(name, at, self.value()))
        whole = {member.name: member.node.value for member in members}
        return Node(whole, start, self.at, tuple(members))

    def array(self, start: int) -> Node:
        items: list[Any] = []
        while self.goes_on("]", first=not items):
            items.append(self.value().value)
        return Node(items, start, self.at)

    def goes_on(self, close: str, *, first: bool) -> bool:
        """Whether another part follows; behind the bracket, or the comma, or the end."""
        if first:
            self.at += 1
        self.skip()
        following = self.text[self.at : self.at + 1]
        if not first and following == ",":
            self.at += 1
            self.skip()
            following = self.text[self.at : self.at + 1]
        elif not first and following != close:
            raise self.wrong(f"a comma or {close} is missing")
        if following == close:
            self.at += 1
            return False
        return True

    def wrong(self, what: str) -> Malformed:
        return Malformed(line_of(self.text, self.at), what)


def line_of(text: str, at: int) -> int:
    """The number of the line that a place is on."""
    return text.count("\n", 0, at) + 1


def member_of(node: Node, name: str) -> Member | None:
    """The member of that name; of several the last, as parsers have it."""
    return next((member for member in reversed(node.members) if member.name == name), None)


def skipped(text: str, at: int) -> int:
    """The place behind space and comments."""
    found = _SPACE.match(text, at)
    return found.end() if found else at
