"""TOML, as far as it takes to add a table to a file and to take it out again.

The text is read into statements: table headers and assignments, each with its place; strings
and arrays over several lines are one statement. What an entry says is compared as text. Where
Python has a parser of its own (3.11), it must read the file before and after.
"""

from __future__ import annotations

import json
import re

from tooli.core.record import Record
from tooli.install.malformed_file import MalformedFileError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_KEY = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_STRINGS = ('"""', "'''", '"', "'")
_EMPTY_VALUE = re.compile(r"[ \t]*(?:[\r\n#]|\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class TomlStatement(Record):
    """A header or an assignment."""

    keys: tuple[str, ...]  # of a header: the table; of an assignment: the key in its table
    header: bool
    start: int
    end: int  # behind its line


class TomlServers:
    """Servers by name, as tables of a TOML file."""

    def __init__(self, container: str) -> None:
        self.container = container

    def get_entry(self, text: str, name: str) -> str | None:
        """The text of a server's tables; None where there is none."""
        spans = self._spans(text, name)
        tables_text = "".join([text[start:end] for start, end in spans])
        return tables_text.replace("\r\n", "\n").strip() or None

    def other_entries(self, text: str, name: str) -> Any:
        """Everything but that entry, where Python can read TOML."""
        document = _parse_toml(text)
        if document is None:
            return None
        container_table: dict[str, Any] = document.pop(self.container, {})
        rest = {key: entry for key, entry in container_table.items() if key != name}
        return {**document, self.container: rest} if rest else document

    def expected_entry(self, name: str, entry: dict[str, Any]) -> str:
        """A server as `look` would find it: a table."""
        lines = [f"{_format_key(key)} = {_format_value(value)}" for key, value in entry.items()]
        return "\n".join([f"[{self.container}.{_format_key(name)}]", *lines])

    def insert_entry(self, text: str, name: str, entry: dict[str, Any]) -> tuple[str, str]:
        """The text with a table added at its end, and what was added."""
        self._spans(text, name)  # or refuse
        newline = "\r\n" if "\r\n" in text else "\n"
        bare = text.removeprefix("\ufeff")
        gap = "" if not bare else "\n" if bare.endswith("\n") else "\n\n"
        added = f"{gap}{self.expected_entry(name, entry)}\n".replace("\n", newline)
        return text + added, added

    def replace_entry(
        self, text: str, name: str, entry: dict[str, Any], old: str
    ) -> tuple[str, str]:
        """The text with a table replaced, and what then counts as added."""
        spans = self._spans(text, name)
        if len(spans) != 1:
            return self.insert_entry(self.remove_entry(text, name, container=False), name, entry)
        ((start, end),) = spans
        old_text = text[start:end]
        newline = "\r\n" if "\r\n" in text else "\n"
        table = f"{self.expected_entry(name, entry)}\n".replace("\n", newline)
        added = old.replace(old_text, table, 1) if old.count(old_text) == 1 else ""
        return text[:start] + table + text[end:], added

    def remove_entry(self, text: str, name: str, *, container: bool) -> str:
        """The text without a server's tables."""
        for start, end in reversed(self._spans(text, name)):
            text = text[:start] + text[end:]
        return text

    def is_empty(self, text: str) -> bool:
        """Whether nothing is left that anybody has written."""
        return not text.strip("\ufeff \t\r\n")

    def _spans(self, text: str, name: str) -> list[tuple[int, int]]:
        """Where the server's tables stand; one that is written otherwise cannot be edited."""
        _parse_toml(text)
        spans: list[tuple[int, int]] = []
        table: tuple[str, ...] = ()
        for statement in parse_statements(text):
            if statement.header:
                table = statement.keys
                if table[:2] == (self.container, name):
                    spans.append((statement.start, statement.end))
            elif table[:2] == (self.container, name):
                spans[-1] = (spans[-1][0], statement.end)
            elif (*table, *statement.keys)[:2] in ((self.container,), (self.container, name)):
                line = text.count("\n", 0, statement.start) + 1
                what = f"its servers are not tables of their own, as [{self.container}.{name}] is"
                raise MalformedFileError(line, what)
        return spans


def parse_statements(text: str) -> list[TomlStatement]:
    """The statements of a text, in order."""
    found: list[TomlStatement] = []
    at = first = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            break
        start = max(text.rfind("\n", 0, at) + 1, first)
        if text[at] == "#":
            at = _line_end(text, at)
        elif text[at] == "[":
            width = 2 if text[at : at + 2] == "[[" else 1
            keys, _ = _read_keys(text, at + width)
            at = _line_end(text, at)
            found.append(TomlStatement(keys, True, start, at))
        else:
            keys, behind = _read_keys(text, at)
            if text[behind : behind + 1] != "=":
                raise MalformedFileError(text.count("\n", 0, at) + 1, "an equals sign is missing")
            at = _value_end(text, behind + 1)
            found.append(TomlStatement(keys, False, start, at))
    return found


def _read_keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    keys: list[str] = []
    while True:
        found = _KEY.match(text, at)
        if found is None:
            raise MalformedFileError(text.count("\n", 0, at) + 1, "a key is missing")
        word = found.group(1)
        keys.append(word[1:-1] if word[0] in "\"'" else word)
        at = found.end()
        if text[at : at + 1] != ".":
            return tuple(keys), at
        at += 1


def _value_end(text: str, at: int) -> int:
    """The place behind the line on which a value ends."""
    depth, begun = 0, at
    if _EMPTY_VALUE.match(text, at):
        raise MalformedFileError(text.count("\n", 0, at) + 1, "a value is missing")
    while at < len(text):
        here = text[at]
        quotes = next((mark for mark in _STRINGS if text.startswith(mark, at)), None)
        if quotes is not None:
            at = _string_end(text, at, quotes)
        elif here == "#":
            at = _line_end(text, at)
            if not depth:
                return at
        elif here == "\n" and not depth:
            return at + 1
        else:
            depth += (here in "[{") - (here in "]}")
            at += 1
    if depth:
        raise MalformedFileError(text.count("\n", 0, begun) + 1, "a bracket is not closed")
    return at


def _string_end(text: str, at: int, quotes: str) -> int:
    begun, at = at, at + len(quotes)
    while at < len(text) and not text.startswith(quotes, at):
        if text[at] == "\n" and len(quotes) == 1:
            break
        at += 2 if text[at] == "\\" and quotes[0] == '"' else 1
    if not text.startswith(quotes, at):
        raise MalformedFileError(text.count("\n", 0, begun) + 1, "a string is not closed")
    at += len(quotes)
    while len(quotes) == 3 and text.startswith(quotes[0], at):  # its last letters were quotes
        at += 1
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _parse_toml(text: str) -> dict[str, Any] | None:
    """The whole file, read by Python; None on a Python that cannot."""
    try:
        tomllib: Any = __import__("tomllib")
    except ImportError:
        return None
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError as wrong:
        message = str(wrong)
        line = re.search(r"\(at line (\d+)", message)
        number = int(line.group(1)) if line else text.count("\n") + 1
        raise MalformedFileError(number, message.partition(" (at")[0].lower()) from None


def _format_key(word: str) -> str:
    return word if _BARE_KEY.fullmatch(word) else json.dumps(word, ensure_ascii=False)


def _format_value(value: Any) -> str:
    """A string or a list of them; JSON's escapes are TOML's, too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
