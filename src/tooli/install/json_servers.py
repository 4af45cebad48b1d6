"""Servers in a JSON file, changed without touching the rest.

Editors and agents keep their settings in such files, and people keep their comments there. So
an entry is inserted as text, in the file's own indentation and line ends; everything else stays
byte for byte.
"""

from __future__ import annotations

import json
import re

from tooli.install.jsonc import find_member, line_number, parse_jsonc, skip_space
from tooli.install.malformed_file import MalformedFileError
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.install.jsonc import JsonMember, JsonNode

_INDENT = re.compile(r"[ \t]*")


class JsonServers:
    """Servers by name, in one object of a JSON file."""

    def __init__(self, container: str) -> None:
        self.container = container

    def get_entry(self, text: str, name: str) -> Any:
        """The entry of a server; None where there is none."""
        return self._entries(text).get(name)

    def other_entries(self, text: str, name: str) -> Any:
        """Everything but that entry, and nothing of a container that holds nothing."""
        rest = {key: entry for key, entry in self._entries(text).items() if key != name}
        root = parse_jsonc(text)
        whole: dict[str, Any] = dict(root.value) if root is not None else {}
        whole.pop(self.container, None)
        return {**whole, self.container: rest} if rest else whole

    def expected_entry(self, name: str, entry: dict[str, Any]) -> Any:
        """An entry as `look` would find it."""
        return entry

    def insert_entry(self, text: str, name: str, entry: dict[str, Any]) -> tuple[str, str]:
        """The text with an entry added, and what was inserted."""
        root = parse_jsonc(text)
        newline = "\r\n" if "\r\n" in text else "\n"
        if root is None:
            whole = json.dumps({self.container: {name: entry}}, indent=2, ensure_ascii=False)
            inserted = whole.replace("\n", newline) + newline
            return text + inserted, inserted
        self._entries(text)  # or refuse
        container_member = find_member(root, self.container)
        at, inserted = (
            _insertion(text, root, root, self.container, {name: entry})
            if container_member is None
            else _insertion(text, root, container_member.node, name, entry)
        )
        return text[:at] + inserted + text[at:], inserted

    def replace_entry(
        self, text: str, name: str, entry: dict[str, Any], old: str
    ) -> tuple[str, str]:
        """The text with an entry replaced, and what then counts as inserted."""
        root = parse_jsonc(text)
        container_member = find_member(root, self.container) if root is not None else None
        found = find_member(container_member.node, name) if container_member is not None else None
        if root is None or found is None:
            return self.insert_entry(text, name, entry)
        node = found.node
        new_text = _format_value(entry, _indent_unit(text, root), _indent_at(text, found.start))
        if "\n" not in text[root.start : root.end]:
            new_text = json.dumps(entry, ensure_ascii=False)
        new_text = new_text.replace("\n", "\r\n" if "\r\n" in text else "\n")
        old_text = text[node.start : node.end]
        inserted = old.replace(old_text, new_text, 1) if old.count(old_text) == 1 else ""
        return text[: node.start] + new_text + text[node.end :], inserted

    def remove_entry(self, text: str, name: str, *, container: bool) -> str:
        """The text without an entry; without an empty container, where that was ours."""
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
        """Whether nothing is left that anybody has written."""
        return "".join(text.removeprefix("\ufeff").split()) in ("", "{}")

    def _entries(self, text: str) -> dict[str, Any]:
        root = parse_jsonc(text)
        if root is None:
            return {}
        if not is_object(root.value):
            raise MalformedFileError(line_number(text, root.start), "there is no object in it")
        container_member = find_member(root, self.container)
        if container_member is None:
            return {}
        if not is_object(container_member.node.value):
            raise MalformedFileError(
                line_number(text, container_member.start), f'"{self.container}" is no object'
            )
        return container_member.node.value


def _insertion(
    text: str, root: JsonNode, container_node: JsonNode, name: str, value: dict[str, Any]
) -> tuple[int, str]:
    """Where a new member goes, and its text with the comma that it needs."""
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
    newline = "\r\n" if "\r\n" in text else "\n"
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
    return _after_opening(
        text, container_node
    ), f"{member_text},"  # a comment follows the last: ours is the first


def _after_opening(text: str, container_node: JsonNode) -> int:
    """The place behind a bracket, and behind what is said about it on its line."""
    line = (
        text[container_node.start + 1 : container_node.members[0].start].partition("\n")[0].rstrip()
    )
    return container_node.start + 1 + (len(line) if skip_space(line, 0) == len(line) else 0)


def _format_value(value: dict[str, Any], unit: str, indent: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def _indent_unit(text: str, root: JsonNode) -> str:
    """One step of the file's indentation."""
    return (_indent_at(text, root.members[0].start) if root.members else "") or "  "


def _indent_at(text: str, position: int) -> str:
    """The space at the beginning of the line that a place is on."""
    found = _INDENT.match(text, text.rfind("\n", 0, position) + 1)
    return found.group() if found else ""


def _remove_member(text: str, parent: JsonNode, member: JsonMember) -> str:
    """The text without a member and one comma; comments that stand beside it stay."""
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
        head = line[:-1].removesuffix("\r")  # its line goes with it, where it had one of its own
    return head + tail
