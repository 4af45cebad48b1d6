"""Servers in a JSON file, changed without touching the rest.

Editors and agents keep their settings in such files, and people keep their comments there. So
an entry is inserted as text, in the file's own indentation and line ends; everything else stays
byte for byte.
"""

from __future__ import annotations

import json
import re

from tooli.contract.jsonable import is_object
from tooli.install.jsonc import line_of, member_of, read_json, skipped
from tooli.install.malformed import Malformed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.install.jsonc import Member, Node

_INDENT = re.compile(r"[ \t]*")


class JsonServers:
    """Servers by name, in one object of a JSON file."""

    def __init__(self, container: str) -> None:
        self.container = container

    def look(self, text: str, name: str) -> Any:
        """The entry of a server; None where there is none."""
        return self._entries(text).get(name)

    def others(self, text: str, name: str) -> Any:
        """Everything but that entry, and nothing of a container that holds nothing."""
        rest = {key: entry for key, entry in self._entries(text).items() if key != name}
        root = read_json(text)
        whole: dict[str, Any] = dict(root.value) if root is not None else {}
        whole.pop(self.container, None)
        return {**whole, self.container: rest} if rest else whole

    def want(self, name: str, entry: dict[str, Any]) -> Any:
        """An entry as `look` would find it."""
        return entry

    def put(self, text: str, name: str, entry: dict[str, Any]) -> tuple[str, str]:
        """The text with an entry added, and what was inserted."""
        root = read_json(text)
        newline = "\r\n" if "\r\n" in text else "\n"
        if root is None:
            whole = json.dumps({self.container: {name: entry}}, indent=2, ensure_ascii=False)
            inserted = whole.replace("\n", newline) + newline
            return text + inserted, inserted
        self._entries(text)  # or refuse
        held = member_of(root, self.container)
        at, inserted = (
            _insertion(text, root, root, self.container, {name: entry})
            if held is None
            else _insertion(text, root, held.node, name, entry)
        )
        return text[:at] + inserted + text[at:], inserted

    def swap(self, text: str, name: str, entry: dict[str, Any], old: str) -> tuple[str, str]:
        """The text with an entry replaced, and what then counts as inserted."""
        root = read_json(text)
        held = member_of(root, self.container) if root is not None else None
        found = member_of(held.node, name) if held is not None else None
        if root is None or found is None:
            return self.put(text, name, entry)
        node = found.node
        written = _written(entry, _unit(text, root), _indent_at(text, found.start))
        if "\n" not in text[root.start : root.end]:
            written = json.dumps(entry, ensure_ascii=False)
        written = written.replace("\n", "\r\n" if "\r\n" in text else "\n")
        was = text[node.start : node.end]
        inserted = old.replace(was, written, 1) if old.count(was) == 1 else ""
        return text[: node.start] + written + text[node.end :], inserted

    def take(self, text: str, name: str, *, container: bool) -> str:
        """The text without an entry; without an empty container, where that was ours."""
        root = read_json(text)
        held = member_of(root, self.container) if root is not None else None
        if root is None or held is None:
            return text
        found = member_of(held.node, name)
        if found is None:
            return text
        frame = text[held.start : found.start] + text[found.node.end : held.node.end]
        alone = "".join(frame.replace(",", "").split()) == f'"{self.container}":{{}}'
        return _cut(text, root, held) if container and alone else _cut(text, held.node, found)

    def is_empty(self, text: str) -> bool:
        """Whether nothing is left that anybody has written."""
        return "".join(text.removeprefix("\ufeff").split()) in ("", "{}")

    def _entries(self, text: str) -> dict[str, Any]:
        root = read_json(text)
        if root is None:
            return {}
        if not is_object(root.value):
            raise Malformed(line_of(text, root.start), "there is no object in it")
        held = member_of(root, self.container)
        if held is None:
            return {}
        if not is_object(held.node.value):
            raise Malformed(line_of(text, held.start), f'"{self.container}" is no object')
        return held.node.value


def _insertion(
    text: str, root: Node, into: Node, name: str, value: dict[str, Any]
) -> tuple[int, str]:
    """Where a new member goes, and its text with the comma that it needs."""
    if "\n" not in text[root.start : root.end] and root.members:
        said = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        return (into.members[-1].node.end, f", {said}") if into.members else (into.start + 1, said)
    unit = _unit(text, root)
    around = _indent_at(text, into.start)
    indent = _indent_at(text, into.members[0].start) if into.members else around + unit
    newline = "\r\n" if "\r\n" in text else "\n"
    said = f"{json.dumps(name, ensure_ascii=False)}: {_written(value, unit, indent)}"
    said = f"\n{indent}{said}".replace("\n", newline)
    if not into.members:
        inside = text[into.start + 1 : into.end - 1]
        closing = "" if "\n" in inside[len(inside.rstrip()) :] else newline + around
        return into.start + 1 + len(inside.rstrip()), said + closing
    end = into.members[-1].node.end
    rest = text[end : into.end - 1]
    if not rest.strip():
        return end, f",{said}"
    if not rest.replace(",", "", 1).strip():
        return end + rest.index(",") + 1, f"{said},"
    return _behind_opening(text, into), f"{said},"  # a comment follows the last: ours is the first


def _behind_opening(text: str, into: Node) -> int:
    """The place behind a bracket, and behind what is said about it on its line."""
    line = text[into.start + 1 : into.members[0].start].partition("\n")[0].rstrip()
    return into.start + 1 + (len(line) if skipped(line, 0) == len(line) else 0)


def _written(value: dict[str, Any], unit: str, indent: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def _unit(text: str, root: Node) -> str:
    """One step of the file's indentation."""
    return (_indent_at(text, root.members[0].start) if root.members else "") or "  "


def _indent_at(text: str, at: int) -> str:
    """The space at the beginning of the line that a place is on."""
    found = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return found.group() if found else ""


def _cut(text: str, around: Node, member: Member) -> str:
    """The text without a member and one comma; comments that stand beside it stay."""
    start, end = member.start, member.node.end
    index = around.members.index(member)
    comma = skipped(text, end)
    if text[comma : comma + 1] == ",":
        head, tail = text[:start], text[end:comma] + text[comma + 1 :]
    elif index == 0:
        head, tail = text[:start], text[end:]
    else:
        comma = skipped(text, around.members[index - 1].node.end)
        head, tail = text[:comma] + text[comma + 1 : start], text[end:]
    line = head.rstrip(" \t")
    if line.endswith("\n") and tail.lstrip(" \t").startswith(("\n", "\r\n")):
        head = line[:-1].removesuffix("\r")  # its line goes with it, where it had one of its own
    return head + tail
