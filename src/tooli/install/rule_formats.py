"""Add values to the text of a JSON or TOML settings file, and remove them.

Values are nested objects. Lists are merged: an item that is missing is appended.
"""

from __future__ import annotations

import json

from tooli.install.jsonc import (
    MalformedFileError,
    find_insertion,
    find_member,
    line_number,
    newline_of,
    parse_jsonc,
    remove_member,
)
from tooli.install.server_formats import find_inserted_text, load_tomlkit, parse_toml, render_toml
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject
    from tooli.install.jsonc import JsonNode

    RuleFormat: TypeAlias = "JsonRules | TomlRules"

_DEPTH = 4
"""Levels of objects and arrays in which values are added: permission, bash, pattern."""


def missing_values(content: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return what `wanted` has and `content` has not. A value that differs is not missing."""
    missing: JsonObject = {}
    for key, value in wanted.items():
        if key not in content:
            missing[key] = value
            continue
        found: object = content[key]
        rest: object = None
        if is_object(value):
            if not is_object(found):
                raise MalformedFileError(1, f"'{key}' is not an object with rules")
            rest = missing_values(found, value)
        elif is_list(value):
            if not is_list(found):
                raise MalformedFileError(1, f"'{key}' is not a list of rules")
            rest = [item for item in value if item not in found]
        if rest:
            missing[key] = rest
    return missing


def subtract(content: JsonObject, values: JsonObject) -> JsonObject:
    """Return the content without these values. A value that differs stays."""
    rest: JsonObject = {}
    for key, found in content.items():
        value = values.get(key)
        if is_object(found) and is_object(value):
            if inner := subtract(found, value):
                rest[key] = inner
        elif is_list(found) and is_list(value):
            if items := [item for item in found if item not in value]:
                rest[key] = items
        elif key not in values or found != value:
            rest[key] = found
    return rest


def prune(content: JsonObject) -> JsonObject:
    """Return the content without empty objects and lists."""
    rest: JsonObject = {}
    for key, value in content.items():
        kept: object = prune(value) if is_object(value) else value
        if kept not in ({}, []):
            rest[key] = kept
    return rest


def _leaves(
    values: JsonObject, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """Return the paths of all values that are not objects. The items of a list are leaves."""
    for key, value in values.items():
        if is_object(value):
            yield from _leaves(value, (*path, key))
        elif is_list(value):
            for item in value:
                yield (*path, key), [item]
        else:
            yield (*path, key), value


class JsonRules:
    """Rules in a JSON file with comments."""

    def load(self, text: str) -> JsonObject:
        """Return the content; raise MalformedFileError if the text is invalid."""
        root = parse_jsonc(text)
        if root is None:
            return {}
        if not is_object(root.value):
            raise MalformedFileError(line_number(text, root.start), "expected a JSON object")
        return root.value

    def is_empty(self, text: str) -> bool:
        """True if the text has no content."""
        return "".join(text.removeprefix("\ufeff").split()) in ("", "{}")

    def insert(self, text: str, values: JsonObject) -> tuple[str, list[str]]:
        """Add missing values; return the new text and the inserted parts."""
        if parse_jsonc(text) is None:
            whole = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
            inserted = whole.replace("\n", newline_of(text))
            return text + inserted, [inserted]
        texts: list[str] = []
        for path, members in self._insertions(text, values):
            root = parse_jsonc(text, _DEPTH)
            node = _find(root, path)
            assert root is not None and node is not None
            at, inserted = find_insertion(text, root, node, members)
            text = text[:at] + inserted + text[at:]
            texts.append(inserted)
        return text, texts

    def _insertions(
        self, text: str, values: JsonObject, path: tuple[str, ...] = ()
    ) -> Iterator[tuple[tuple[str, ...], list[tuple[str, object]]]]:
        """Return the containers that exist, each with the members to add."""
        node = _find(parse_jsonc(text, _DEPTH), path)
        present = node.value if node is not None and is_object(node.value) else {}
        new = [(key, value) for key, value in values.items() if key not in present]
        if new:
            yield path, new
        for key, value in values.items():
            if key in present and is_object(value):
                yield from self._insertions(text, value, (*path, key))
            elif key in present:
                yield (*path, key), [("", item) for item in value]

    def remove(self, text: str, values: JsonObject) -> str:
        """Return the text without the values, and without the containers that they leave empty."""
        for path, value in _leaves(values):
            is_item = is_list(value)
            parent = _find(parse_jsonc(text, _DEPTH), path if is_item else path[:-1])
            member = None
            if parent is not None and is_item:
                found = [one for one in parent.members if [one.node.value] == value]
                member = found[0] if found else None
            elif parent is not None:
                member = find_member(parent, path[-1])
                if member is not None and member.node.value != value:
                    member = None
            if parent is not None and member is not None:
                text = remove_member(text, parent, member)
            text = self._remove_empty(text, path if is_item else path[:-1])
        return text

    def _remove_empty(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without the container at a path, and those around it, if it is empty."""
        while path:
            parent = _find(parse_jsonc(text, _DEPTH), path[:-1])
            member = find_member(parent, path[-1])
            if parent is None or member is None or member.node.value not in ({}, []):
                break
            text, path = remove_member(text, parent, member), path[:-1]
        return text


def _find(root: JsonNode | None, path: tuple[str, ...]) -> JsonNode | None:
    for name in path:
        member = find_member(root, name)
        if member is None:
            return None
        root = member.node
    return root


class TomlRules:
    """Rules in a TOML file."""

    def load(self, text: str) -> JsonObject:
        """Return the content; raise MalformedFileError if the text is invalid."""
        return parse_toml(text).unwrap()

    def is_empty(self, text: str) -> bool:
        """True if the text has no content."""
        return not text.strip("\ufeff \t\r\n")

    def insert(self, text: str, values: JsonObject) -> tuple[str, list[str]]:
        """Add missing values; return the new text and the inserted parts."""
        document = parse_toml(text)
        _add_to_table(document, values)
        after = render_toml(document, text)
        inserted = find_inserted_text(text, after)
        is_one_part = after.count(inserted) == 1 and after.replace(inserted, "", 1) == text
        return after, [inserted] if is_one_part else []

    def remove(self, text: str, values: JsonObject) -> str:
        """Return the text without the values."""
        document = parse_toml(text)
        for path, value in _leaves(values):
            tables: list[Any] = [document]
            for name in path[:-1]:
                tables.append(tables[-1].get(name, {}))
            found: Any = tables[-1].get(path[-1])
            if is_list(value) and found is not None and value[0] in found:
                found.remove(value[0])
            elif found == value:
                del tables[-1][path[-1]]
            for depth in range(len(path) - 1, -1, -1):  # containers that are empty now
                if path[depth] in tables[depth] and tables[depth][path[depth]] in ({}, []):
                    del tables[depth][path[depth]]
        return render_toml(document, text)


def _add_to_table(table: Any, values: JsonObject) -> None:
    tomlkit = load_tomlkit()
    for key, value in values.items():
        if key not in table:
            table[key] = tomlkit.item(value)
        elif is_object(value):
            _add_to_table(table[key], value)
        else:
            for item in value:
                table[key].append(item)
