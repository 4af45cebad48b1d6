"""Read, insert, replace and remove an MCP server in the settings file of an agent.

The rest of the file does not change, comments and line ends included. JSON is edited as text, with
the positions that `parse_jsonc` reports. TOML is read and edited with tomlkit. YAML is edited by
lines: an entry is one line, in the syntax of JSON.
"""

from __future__ import annotations

import json
import re

from tooli.install.jsonc import (
    MalformedFileError,
    find_insertion,
    find_member,
    format_value,
    indent_at,
    indent_unit_of,
    line_number,
    newline_of,
    parse_jsonc,
    remove_member,
)
from tooli.text.jsonable import is_object
from tooli.text.yaml_reader import YamlError, read_yaml

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import TypeAlias

    from tomlkit import TOMLDocument

    from tooli.core.protocols import JsonObject
    from tooli.install.jsonc import JsonMember, JsonNode

    ServerFileFormat: TypeAlias = "JsonServers | TomlServers | YamlServers"


# ------------------------------------------------------------------ servers


class ServerFile:
    """The servers in a settings file. `container` is the object or table that has them by name."""

    def __init__(self, container: str) -> None:
        self.container = container

    def get_entry(self, text: str, name: str) -> object:
        """Return the entry of a server, or None."""
        return self._entries(text).get(name)

    def entries(self, text: str) -> JsonObject:
        """Return the entries of all servers by name."""
        return self._entries(text)

    def other_entries(self, text: str, name: str) -> JsonObject:
        """Return the whole content without the entry. An empty container is left out."""
        rest = {key: entry for key, entry in self._entries(text).items() if key != name}
        document = {key: value for key, value in self._load(text).items() if key != self.container}
        return {**document, self.container: rest} if rest else document

    def _load(self, text: str) -> JsonObject:
        """Return the whole content; raise MalformedFileError if the text is invalid."""
        raise NotImplementedError

    def _entries(self, text: str) -> JsonObject:
        """Return the entries in the container; raise MalformedFileError if the text is invalid."""
        raise NotImplementedError


# ------------------------------------------------------------------ servers in JSON


class JsonServers(ServerFile):
    """Servers by name, in one object of a JSON file."""

    def insert_entry(self, text: str, name: str, entry: JsonObject) -> tuple[str, str]:
        """Add an entry; return the new text and the part that was inserted."""
        self._entries(text)  # raises MalformedFileError
        root, container_member, _ = self._find(text, name)
        newline = newline_of(text)
        if root is None:
            whole = json.dumps({self.container: {name: entry}}, indent=2, ensure_ascii=False)
            inserted = whole.replace("\n", newline) + newline
            return text + inserted, inserted
        at, inserted = (
            find_insertion(text, root, root, [(self.container, {name: entry})])
            if container_member is None
            else find_insertion(text, root, container_member.node, [(name, entry)])
        )
        return text[:at] + inserted + text[at:], inserted

    def replace_entry(
        self, text: str, name: str, entry: JsonObject, inserted: str
    ) -> tuple[str, str]:
        """Replace an entry; return the new text and the updated `inserted`.

        `inserted` is the text that `insert_entry` inserted. It becomes "" if it cannot be updated.
        """
        root, _, found = self._find(text, name)
        if root is None or found is None:
            return self.insert_entry(text, name, entry)
        node = found.node
        new_text = format_value(entry, indent_unit_of(text, root), indent_at(text, found.start))
        if "\n" not in text[root.start : root.end]:
            new_text = json.dumps(entry, ensure_ascii=False)
        new_text = new_text.replace("\n", newline_of(text))
        old_text = text[node.start : node.end]
        inserted = inserted.replace(old_text, new_text, 1) if inserted.count(old_text) == 1 else ""
        return text[: node.start] + new_text + text[node.end :], inserted

    def remove_entry(self, text: str, name: str, *, container: bool) -> str:
        """Return the text without an entry.

        With `container`, the container is removed as well if it has no other entry.
        """
        root, container_member, found = self._find(text, name)
        if root is None or container_member is None or found is None:
            return text
        surrounding = (
            text[container_member.start : found.start]
            + text[found.node.end : container_member.node.end]
        )
        is_only_entry = "".join(surrounding.replace(",", "").split()) == f'"{self.container}":{{}}'
        return (
            remove_member(text, root, container_member)
            if container and is_only_entry
            else remove_member(text, container_member.node, found)
        )

    def is_empty(self, text: str) -> bool:
        """True if the text has no content."""
        return "".join(text.removeprefix("\ufeff").split()) in ("", "{}")

    def _load(self, text: str) -> JsonObject:
        root = parse_jsonc(text)
        if root is None:
            return {}
        if not is_object(root.value):
            raise MalformedFileError(line_number(text, root.start), "expected a JSON object")
        return root.value

    def _entries(self, text: str) -> JsonObject:
        entries = self._load(text).get(self.container, {})
        if not is_object(entries):
            _, container_member, _ = self._find(text, "")
            start = container_member.start if container_member is not None else 0
            raise MalformedFileError(
                line_number(text, start), f'"{self.container}" is not an object'
            )
        return entries

    def _find(
        self, text: str, name: str
    ) -> tuple[JsonNode | None, JsonMember | None, JsonMember | None]:
        """Return the root, the container and the member of a server, or None for each."""
        root = parse_jsonc(text)
        container_member = find_member(root, self.container)
        member = find_member(container_member.node, name) if container_member else None
        return root, container_member, member


# ------------------------------------------------------------------ TOML


class TomlServers(ServerFile):
    """Servers by name, as tables of a TOML file."""

    def insert_entry(self, text: str, name: str, entry: JsonObject) -> tuple[str, str]:
        """Add a table at the end; return the new text and the part that was inserted."""
        self._entries(text)  # raises MalformedFileError
        content = text.removeprefix("\ufeff")
        gap = "" if not content else "\n" if content.endswith("\n") else "\n\n"
        inserted = f"{gap}{self._render_table(name, entry)}".replace("\n", newline_of(text))
        try:
            if self.get_entry(text + inserted, name) == entry:
                return text + inserted, inserted
        except MalformedFileError:
            pass  # the container is an inline table, which has to be edited in place
        after = self._set_inline(text, name, entry)
        return after, find_inserted_text(text, after)

    def replace_entry(
        self, text: str, name: str, entry: JsonObject, inserted: str
    ) -> tuple[str, str]:
        """Replace a table; return the new text and the updated `inserted`.

        `inserted` is the text that `insert_entry` inserted. It becomes "" if it cannot be updated.
        """
        spans = _removed_lines(text, self._without(text, name))
        if spans is None or self._is_inline(text, name):
            return self._set_inline(text, name, entry), ""
        if len(spans) != 1:
            return self.insert_entry(self.remove_entry(text, name, container=False), name, entry)
        ((start, end),) = spans
        old_table = text[start:end]
        table = self._render_table(name, entry).replace("\n", newline_of(text))
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

    def _load(self, text: str) -> JsonObject:
        return parse_toml(text).unwrap()

    def _entries(self, text: str) -> JsonObject:
        return self._container(self._load(text))

    def _container(self, document: JsonObject) -> JsonObject:
        """Return the container: a table of the document, or an empty dict."""
        container = document.get(self.container, {})
        if not isinstance(container, dict):
            raise MalformedFileError(1, f"{self.container} is not a table")
        return container  # pyright: ignore[reportUnknownVariableType]

    def _is_inline(self, text: str, name: str) -> bool:
        return isinstance(self._container(parse_toml(text))[name], load_tomlkit().items.InlineTable)

    def _set_inline(self, text: str, name: str, entry: JsonObject) -> str:
        """Return the text with the entry as an inline table."""
        document = parse_toml(text)
        table = load_tomlkit().inline_table()
        for key, value in entry.items():
            table[key] = value
        self._container(document)[name] = table
        return render_toml(document, text)

    def _render_table(self, name: str, entry: JsonObject) -> str:
        tomlkit = load_tomlkit()
        container = tomlkit.table(is_super_table=True)
        container[name] = tomlkit.item(entry)
        return tomlkit.dumps({self.container: container})

    def _without(self, text: str, name: str) -> str:
        """Return the text without the server, and without the comments that follow its tables."""
        document = parse_toml(text)
        servers = self._container(document)
        if name in servers:
            del servers[name]
        return render_toml(document, text)


def load_tomlkit():
    """Return the module tomlkit, with its submodules."""
    import tomlkit.exceptions
    import tomlkit.items

    return tomlkit


_MAX_DOTTED_KEYS = 1000


def parse_toml(text: str) -> TOMLDocument:
    """Parse TOML; raise MalformedFileError if the text is invalid."""
    # The time that tomlkit takes is quadratic in the number of dotted keys.
    keys = [line.partition("=")[0] for line in text.splitlines() if "=" in line]
    if len([key for key in keys if "." in key]) > _MAX_DOTTED_KEYS:
        raise MalformedFileError(1, f"the file has more than {_MAX_DOTTED_KEYS} dotted keys")
    tomlkit = load_tomlkit()
    try:
        return tomlkit.parse(text.removeprefix("\ufeff"))
    except tomlkit.exceptions.ParseError as error:
        problem = str(error).partition(" at line")[0].lower()
        raise MalformedFileError(error.line, problem) from None
    except tomlkit.exceptions.TOMLKitError as error:
        raise MalformedFileError(1, str(error).lower()) from None


def render_toml(document: TOMLDocument, original: str) -> str:
    """Return the text of a document, with the byte order mark of the original."""
    return "\ufeff" * original.startswith("\ufeff") + document.as_string()


# ------------------------------------------------------------------ YAML


class YamlServers(ServerFile):
    """Servers by name, in one mapping of a YAML file. An entry that we write is one line."""

    def insert_entry(self, text: str, name: str, entry: JsonObject) -> tuple[str, str]:
        """Add an entry; return the new text and the part that was inserted."""
        entries = self._entries(text)  # raises MalformedFileError
        newline = newline_of(text)
        start, indent = self._find_block(text)
        line = f"{indent}{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}{newline}"
        if start is None:
            gap = newline if text and not text.endswith("\n") else ""
            inserted = f"{gap}{self.container}:{newline}{line}"
            after = text + inserted
        else:
            head = text[:start]
            inserted = line if head.endswith("\n") else newline + line
            after = head + inserted + text[start:]
        if self._entries(after) != {**entries, name: entry}:
            raise MalformedFileError(1, f"cannot add a line to '{self.container}'")
        return after, inserted

    def replace_entry(
        self, text: str, name: str, entry: JsonObject, inserted: str
    ) -> tuple[str, str]:
        """Replace an entry; return the new text and the updated `inserted`."""
        found = self._find_line(text, name)
        line = text[found[0] : found[1]]
        indent, ending = line[: len(line) - len(line.lstrip())], line[len(line.rstrip("\r\n")) :]
        new_line = f"{indent}{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}{ending}"
        inserted = inserted.replace(line, new_line, 1) if inserted.count(line) == 1 else ""
        return text[: found[0]] + new_line + text[found[1] :], inserted

    def remove_entry(self, text: str, name: str, *, container: bool) -> str:
        """Return the text without an entry."""
        start, end = self._find_line(text, name)
        after = text[:start] + text[end:]
        if container and self._load(after).get(self.container) is None:
            after = re.sub(rf"(?m)^{re.escape(self.container)}:[ \t]*\r?\n?", "", after, count=1)
        return after

    def is_empty(self, text: str) -> bool:
        """True if the text has no content."""
        return not text.strip("\ufeff \t\r\n")

    def _load(self, text: str) -> JsonObject:
        try:
            document = read_yaml(text)
        except YamlError as error:
            raise MalformedFileError(error.line or 1, str(error)) from None
        if document is None:
            return {}
        if not is_object(document):
            raise MalformedFileError(1, "expected a mapping")
        return document

    def _entries(self, text: str) -> JsonObject:
        entries = self._load(text).get(self.container)
        if entries is None:
            return {}
        if not is_object(entries):
            raise MalformedFileError(1, f"'{self.container}' is not a mapping")
        return entries

    def _find_block(self, text: str) -> tuple[int | None, str]:
        """Return where an entry can be inserted, and its indentation."""
        found = re.search(rf"(?m)^{re.escape(self.container)}:[ \t]*(#.*)?\r?$", text)
        if found is None:
            if self.container in self._load(text):
                problem = f"'{self.container}' has its value on the same line"
                raise MalformedFileError(line_number(text, text.index(self.container)), problem)
            return None, "  "
        start = text.find("\n", found.end()) + 1 or len(text)
        below = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*([ ]+)\S").match(text, start)
        return start, below.group(1) if below else "  "

    def _find_line(self, text: str, name: str) -> tuple[int, int]:
        """Return the span of an entry that is one line."""
        quoted = rf"(?:{re.escape(json.dumps(name))}|{re.escape(name)})"
        for found in re.finditer(rf"(?m)^[ ]+{quoted}:[ \t]*\{{.*\r?\n?", text):
            rest = text[: found.start()] + text[found.end() :]
            try:
                if self.other_entries(rest, name) == self.other_entries(text, name):
                    return found.span()
            except MalformedFileError:
                continue
        problem = f"the entry '{name}' is not on one line. Remove it by hand"
        raise MalformedFileError(max(1, line_number(text, text.find(f"{name}:"))), problem)


SERVER_FORMATS: dict[str, type[ServerFileFormat]] = {
    "json": JsonServers,
    "toml": TomlServers,
    "yaml": YamlServers,
}


def _removed_lines(text: str, without: str) -> list[tuple[int, int]] | None:
    """Return the spans of the lines of `text` that are missing in `without`.

    Returns None if `without` has a line that is not in `text`.

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


def find_inserted_text(before: str, after: str) -> str:
    """Return the text that was inserted into `before` at one place."""
    start = 0
    while before[start : start + 1] == after[start : start + 1] and start < len(before):
        start += 1
    return after[start : start + len(after) - len(before)]
