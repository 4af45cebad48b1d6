"""Find, insert and remove values in the text of a JSON file with comments.

The rest of the text does not change: the functions edit it at the positions that `parse_jsonc`
reports.
"""

from __future__ import annotations

import json
import re

from tooli.core import Record
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence


_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_SPACE = re.compile(rf"(?:[\s\ufeff]+|{_COMMENT})*", re.DOTALL)
_NOT_JSON = re.compile(rf"{_STRING}|{_COMMENT}|[^\S \t\r\n]|\ufeff", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|(?<=[^\s,{{\[:])\s*,(?=\s*[}}\]])", re.DOTALL)
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
    """A member of an object, or of an array, where its name is empty."""

    name: str
    start: int
    node: JsonNode


def parse_jsonc(text: str, depth: int = 2) -> JsonNode | None:
    """Parse JSON with comments and trailing commas; return None if it contains no value.

    `members` is set for the objects and arrays of the first `depth` levels.
    """
    json_text = _TRAILING_COMMA.sub(_blank, _NOT_JSON.sub(_blank, text))
    if not json_text.strip():
        return None

    def refuse_constant(name: str) -> None:
        raise MalformedFileError(line_number(json_text, json_text.index(name)), f"invalid: {name}")

    try:
        json.loads(json_text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise MalformedFileError(error.lineno, error.msg.lower()) from None
    except RecursionError:
        raise MalformedFileError(1, "nested too deeply") from None
    return _locate(json_text, skip_space(json_text, 0), depth)


def _blank(match: re.Match[str]) -> str:
    """Replace the match with spaces, so that positions stay the same. Do not replace strings."""
    text = match.group()
    return text if text[0] == '"' else re.sub(r"[^\r\n]", " ", text)


def _locate(json_text: str, start: int, depth: int) -> JsonNode:
    """Return the node of a valid JSON value, with the members of `depth` levels."""
    value, end = _DECODER.raw_decode(json_text, start)
    members: list[JsonMember] = []
    position = skip_space(json_text, start + 1)
    while depth and json_text[start] in "[{" and json_text[position] not in "]}":
        name, value_start = "", position
        if is_object(value):
            name, colon = _DECODER.raw_decode(json_text, position)
            value_start = skip_space(json_text, skip_space(json_text, colon) + 1)
        node = _locate(json_text, value_start, depth - 1)
        members.append(JsonMember(name, position, node))
        position = skip_space(json_text, node.end)
        if json_text[position] == ",":
            position = skip_space(json_text, position + 1)
    return JsonNode(value, start, end, tuple(members))


def line_number(text: str, position: int) -> int:
    """Return the line number of a position."""
    return text.count("\n", 0, position) + 1


def find_member(node: JsonNode | None, name: str) -> JsonMember | None:
    """Return the last member of that name, as `json.loads` does, or None."""
    members = node.members if node is not None else ()
    return next((member for member in reversed(members) if member.name == name), None)


def skip_space(text: str, position: int) -> int:
    """Return the position after whitespace and comments."""
    found = _SPACE.match(text, position)
    return found.end() if found else position


_INDENT = re.compile(r"[ \t]*")


def find_insertion(
    text: str, root: JsonNode, container_node: JsonNode, members: Sequence[tuple[str, object]]
) -> tuple[int, str]:
    """Return the position for new members, and their text with the comma that it needs.

    `members` are names and values. In an array, the names are not used.
    """
    is_array = isinstance(container_node.value, list)
    names = ["" if is_array else f"{json.dumps(name, ensure_ascii=False)}: " for name, _ in members]
    if "\n" not in text[root.start : root.end] and root.members:
        values = [json.dumps(value, ensure_ascii=False) for _, value in members]
        member_text = ", ".join([name + value for name, value in zip(names, values, strict=True)])
        return (
            (container_node.members[-1].node.end, f", {member_text}")
            if container_node.members
            else (container_node.start + 1, member_text)
        )
    indent_unit = indent_unit_of(text, root)
    container_indent = indent_at(text, container_node.start)
    indent = (
        indent_at(text, container_node.members[0].start)
        if container_node.members
        else container_indent + indent_unit
    )
    newline = newline_of(text)
    values = [format_value(value, indent_unit, indent) for _, value in members]
    lines = [f"\n{indent}{name}{value}" for name, value in zip(names, values, strict=True)]
    member_text = ",".join(lines).replace("\n", newline)
    if not container_node.members:
        inside = text[container_node.start + 1 : container_node.end - 1]
        closing = "" if "\n" in inside[len(inside.rstrip()) :] else newline + container_indent
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


def format_value(value: object, indent_unit: str, indent: str) -> str:
    """Return a value as JSON, with this indentation after each line break."""
    return json.dumps(value, indent=indent_unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def indent_unit_of(text: str, root: JsonNode) -> str:
    """Return one level of the file's indentation."""
    return (indent_at(text, root.members[0].start) if root.members else "") or "  "


def indent_at(text: str, position: int) -> str:
    """Return the indentation of the line at a position."""
    found = _INDENT.match(text, text.rfind("\n", 0, position) + 1)
    return found.group() if found else ""


def remove_member(text: str, parent: JsonNode, member: JsonMember) -> str:
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


def newline_of(text: str) -> str:
    """Return the line end of a text."""
    return "\r\n" if "\r\n" in text else "\n"
