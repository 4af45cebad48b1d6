"""Read, insert, replace and remove an MCP server in the settings file of an agent.

The rest of the file does not change, comments and line ends included. JSON is edited as text, with
the positions that `parse_jsonc` reports. TOML is read and edited with tomlkit.
"""

from __future__ import annotations

import json
import re

from tooli.core.record import Record
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import TypeAlias

    from tomlkit import TOMLDocument

    from tooli.core.protocols import JsonObject

    ServerFileFormat: TypeAlias = "JsonServers | TomlServers"
    """A file with servers by name in one object or table, the container."""


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

    value: object
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
        items: list[object] = []
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


# ------------------------------------------------------------------ servers in JSON


_INDENT = re.compile(r"[ \t]*")


class JsonServers:
    """Servers by name, in one object of a JSON file."""

    def __init__(self, container: str) -> None:
        self.container = container

    def get_entry(self, text: str, name: str) -> object:
        """Return the entry of a server, or None."""
        return self._entries(text).get(name)

    def other_entries(self, text: str, name: str) -> object:
        """Return the whole content without that entry. An empty container is left out."""
        rest = {key: entry for key, entry in self._entries(text).items() if key != name}
        root = parse_jsonc(text)
        whole = {**root.value} if root is not None and is_object(root.value) else {}
        whole.pop(self.container, None)
        return {**whole, self.container: rest} if rest else whole

    def insert_entry(self, text: str, name: str, entry: JsonObject) -> tuple[str, str]:
        """Add an entry; return the new text and the part that was inserted."""
        root = parse_jsonc(text)
        newline = _newline(text)
        if root is None:
            whole = json.dumps({self.container: {name: entry}}, indent=2, ensure_ascii=False)
            inserted = whole.replace("\n", newline) + newline
            return text + inserted, inserted
        self._entries(text)  # raises MalformedFileError
        container_member = find_member(root, self.container)
        at, inserted = (
            _insertion(text, root, root, self.container, {name: entry})
            if container_member is None
            else _insertion(text, root, container_member.node, name, entry)
        )
        return text[:at] + inserted + text[at:], inserted

    def replace_entry(
        self, text: str, name: str, entry: JsonObject, inserted: str
    ) -> tuple[str, str]:
        """Replace an entry; return the new text, and `inserted` with the new entry."""
        root = parse_jsonc(text)
        container_member = find_member(root, self.container) if root is not None else None
        found = find_member(container_member.node, name) if container_member is not None else None
        if root is None or found is None:
            return self.insert_entry(text, name, entry)
        node = found.node
        new_text = _format_value(entry, _indent_unit(text, root), _indent_at(text, found.start))
        if "\n" not in text[root.start : root.end]:
            new_text = json.dumps(entry, ensure_ascii=False)
        new_text = new_text.replace("\n", _newline(text))
        old_text = text[node.start : node.end]
        inserted = inserted.replace(old_text, new_text, 1) if inserted.count(old_text) == 1 else ""
        return text[: node.start] + new_text + text[node.end :], inserted

    def remove_entry(self, text: str, name: str, *, container: bool) -> str:
        """Return the text without an entry. With `container`, an empty container is removed."""
        root = parse_jsonc(text)
        container_member = find_member(root, self.container) if root is not None else None
        if root is None or container_member is None:
            return text
        found = find_member(container_member.node, name)
        if found is None:
            return text
        surrounding = (
            text[container_member.start : found.start]
            + text[found.node.end : container_member.node.end]
        )
        is_only_entry = "".join(surrounding.replace(",", "").split()) == f'"{self.container}":{{}}'
        return (
            _remove_member(text, root, container_member)
            if container and is_only_entry
            else _remove_member(text, container_member.node, found)
        )

    def is_empty(self, text: str) -> bool:
        """True if the text has no content."""
        return "".join(text.removeprefix("\ufeff").split()) in ("", "{}")

    def _entries(self, text: str) -> JsonObject:
        root = parse_jsonc(text)
        if root is None:
            return {}
        if not is_object(root.value):
            raise MalformedFileError(line_number(text, root.start), "expected a JSON object")
        container_member = find_member(root, self.container)
        if container_member is None:
            return {}
        if not is_object(container_member.node.value):
            raise MalformedFileError(
                line_number(text, container_member.start), f'"{self.container}" is not an object'
            )
        return container_member.node.value


def _insertion(
    text: str, root: JsonNode, container_node: JsonNode, name: str, value: JsonObject
) -> tuple[int, str]:
    """Return the position for a new member, and its text with the comma that it needs."""
    if "\n" not in text[root.start : root.end] and root.members:
        member_text = (
            f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        )
        return (
            (container_node.members[-1].node.end, f", {member_text}")
            if container_node.members
            else (container_node.start + 1, member_text)
        )
    unit = _indent_unit(text, root)
    around = _indent_at(text, container_node.start)
    indent = (
        _indent_at(text, container_node.members[0].start)
        if container_node.members
        else around + unit
    )
    newline = _newline(text)
    member_text = f"{json.dumps(name, ensure_ascii=False)}: {_format_value(value, unit, indent)}"
    member_text = f"\n{indent}{member_text}".replace("\n", newline)
    if not container_node.members:
        inside = text[container_node.start + 1 : container_node.end - 1]
        closing = "" if "\n" in inside[len(inside.rstrip()) :] else newline + around
        return container_node.start + 1 + len(inside.rstrip()), member_text + closing
    end = container_node.members[-1].node.end
    rest = text[end : container_node.end - 1]
    if not rest.strip():
        return end, f",{member_text}"
    if not rest.replace(",", "", 1).strip():
        return end + rest.index(",") + 1, f"{member_text},"
    # A comment follows the last member, so the new member becomes the first.
    return _after_opening(text, container_node), f"{member_text},"


def _after_opening(text: str, container_node: JsonNode) -> int:
    """Return the position after the opening bracket and a comment on its line."""
    line = (
        text[container_node.start + 1 : container_node.members[0].start].partition("\n")[0].rstrip()
    )
    return container_node.start + 1 + (len(line) if skip_space(line, 0) == len(line) else 0)


def _format_value(value: JsonObject, unit: str, indent: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def _indent_unit(text: str, root: JsonNode) -> str:
    """Return one level of the file's indentation."""
    return (_indent_at(text, root.members[0].start) if root.members else "") or "  "


def _indent_at(text: str, position: int) -> str:
    """Return the indentation of the line at a position."""
    found = _INDENT.match(text, text.rfind("\n", 0, position) + 1)
    return found.group() if found else ""


def _remove_member(text: str, parent: JsonNode, member: JsonMember) -> str:
    """Return the text without a member and one comma. Comments beside it stay."""
    start, end = member.start, member.node.end
    index = parent.members.index(member)
    comma = skip_space(text, end)
    if text[comma : comma + 1] == ",":
        head, tail = text[:start], text[end:comma] + text[comma + 1 :]
    elif index == 0:
        head, tail = text[:start], text[end:]
    else:
        comma = skip_space(text, parent.members[index - 1].node.end)
        head, tail = text[:comma] + text[comma + 1 : start], text[end:]
    line = head.rstrip(" \t")
    if line.endswith("\n") and tail.lstrip(" \t").startswith(("\n", "\r\n")):
        head = line[:-1].removesuffix("\r")  # the member had its own line, which is removed
    return head + tail


# ------------------------------------------------------------------ TOML


class TomlServers:
    """Servers by name, as tables of a TOML file."""

    def __init__(self, container: str) -> None:
        self.container = container

    def get_entry(self, text: str, name: str) -> object:
        """Return the entry of a server, or None."""
        return self._entries(_parse_toml(text).unwrap()).get(name)

    def other_entries(self, text: str, name: str) -> object:
        """Return the whole content without that entry. An empty container is left out."""
        document = _parse_toml(text).unwrap()
        rest = {key: value for key, value in self._entries(document).items() if key != name}
        document.pop(self.container, None)
        return {**document, self.container: rest} if rest else document

    def insert_entry(self, text: str, name: str, entry: JsonObject) -> tuple[str, str]:
        """Add a table at the end; return the new text and the part that was inserted."""
        self._entries(_parse_toml(text))  # raises MalformedFileError
        content = text.removeprefix("\ufeff")
        gap = "" if not content else "\n" if content.endswith("\n") else "\n\n"
        inserted = f"{gap}{self._render_table(name, entry)}".replace("\n", _newline(text))
        try:
            if self.get_entry(text + inserted, name) == entry:
                return text + inserted, inserted
        except MalformedFileError:
            pass  # the container is an inline table, which has to be edited in place
        after = self._set_inline(text, name, entry)
        return after, _inserted_text(text, after)

    def replace_entry(
        self, text: str, name: str, entry: JsonObject, inserted: str
    ) -> tuple[str, str]:
        """Replace a table; return the new text, and `inserted` with the new table."""
        spans = _removed_lines(text, self._without(text, name))
        if spans is None or self._is_inline(text, name):
            return self._set_inline(text, name, entry), ""
        if len(spans) != 1:
            return self.insert_entry(self.remove_entry(text, name, container=False), name, entry)
        ((start, end),) = spans
        old_table = text[start:end]
        table = self._render_table(name, entry).replace("\n", _newline(text))
        inserted = inserted.replace(old_table, table, 1) if inserted.count(old_table) == 1 else ""
        return text[:start] + table + text[end:], inserted

    def remove_entry(self, text: str, name: str, *, container: bool) -> str:
        """Return the text without the tables of a server. Comments below them stay."""
        without = self._without(text, name)
        spans = _removed_lines(text, without)
        if spans is None:
            return without
        for start, end in reversed(spans):
            text = text[:start] + text[end:]
        return text

    def is_empty(self, text: str) -> bool:
        """True if the text has no content."""
        return not text.strip("\ufeff \t\r\n")

    def _entries(self, document: JsonObject) -> JsonObject:
        """Return the container: a table of the document, or an empty dict."""
        container = document.get(self.container, {})
        if not isinstance(container, dict):
            raise MalformedFileError(1, f"{self.container} is not a table")
        return container  # pyright: ignore[reportUnknownVariableType]

    def _is_inline(self, text: str, name: str) -> bool:
        return isinstance(self._entries(_parse_toml(text))[name], _load_tomlkit().items.InlineTable)

    def _set_inline(self, text: str, name: str, entry: JsonObject) -> str:
        """Return the text with the entry as an inline table."""
        document = _parse_toml(text)
        table = _load_tomlkit().inline_table()
        for key, value in entry.items():
            table[key] = value
        self._entries(document)[name] = table
        return _render_toml(document, text)

    def _render_table(self, name: str, entry: JsonObject) -> str:
        tomlkit = _load_tomlkit()
        container = tomlkit.table(is_super_table=True)
        container[name] = tomlkit.item(entry)
        return tomlkit.dumps({self.container: container})

    def _without(self, text: str, name: str) -> str:
        """Return the text without the server, and without the comments that follow its tables."""
        document = _parse_toml(text)
        servers = self._entries(document)
        if name in servers:
            del servers[name]
        return _render_toml(document, text)


def _load_tomlkit():
    import tomlkit.exceptions
    import tomlkit.items

    return tomlkit


def _parse_toml(text: str) -> TOMLDocument:
    tomlkit = _load_tomlkit()
    try:
        return tomlkit.parse(text.removeprefix("\ufeff"))
    except tomlkit.exceptions.ParseError as error:
        problem = str(error).partition(" at line")[0].lower()
        raise MalformedFileError(error.line, problem) from None
    except tomlkit.exceptions.TOMLKitError as error:
        raise MalformedFileError(1, str(error).lower()) from None


def _render_toml(document: TOMLDocument, original: str) -> str:
    """Return the text of a document, with the byte order mark of the original."""
    return "\ufeff" * original.startswith("\ufeff") + document.as_string()


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _removed_lines(text: str, without: str) -> list[tuple[int, int]] | None:
    """Return the spans of the lines that `without` lacks; None if it has other lines than `text`.

    tomlkit counts the comments after a table as part of it. They may belong to the next table,
    so a span ends before them.
    """
    position = len(text) - len(text.removeprefix("\ufeff"))
    remaining = without[position:].splitlines(keepends=True)[::-1]
    spans: list[tuple[int, int]] = []
    for line in text[position:].splitlines(keepends=True):
        start, position = position, position + len(line)
        if remaining and remaining[-1] == line:
            remaining.pop()
        elif spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], position)
        else:
            spans.append((start, position))
    return None if remaining else [_trim_comments(text, *span) for span in spans]


def _trim_comments(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the blank lines and comments at its end."""
    for line in reversed(text[start:end].splitlines(keepends=True)):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        end -= len(line)
    return start, end


def _inserted_text(before: str, after: str) -> str:
    """Return the text that was inserted into `before` at one place."""
    start = 0
    while before[start : start + 1] == after[start : start + 1] and start < len(before):
        start += 1
    return after[start : start + len(after) - len(before)]
