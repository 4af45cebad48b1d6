"""Document: an OpenAPI document that is decoded part by part.

    bytes ─▶ scan_sections ─▶ {"/components/schemas/User": (start, end), …}
                                       │
    "#/components/schemas/User" ───────┴─▶ json.loads(bytes[start:end])

Documents have up to 20 MB, and as Python objects ten times that. A call needs one operation and a
few schemas. So the scan notes where the parts are, and only the parts that are needed are decoded.
"""

from __future__ import annotations

import json
import re
from json import JSONDecoder, decoder
from urllib.parse import unquote

from tooli.core.tool import MISSING
from tooli.errors import DefinitionError
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeAlias

    Sections: TypeAlias = Mapping[str, tuple[int, int]]
    """The parts of a document: the JSON pointer of each, and where it starts and ends."""

MAX_DOCUMENT_BYTES = 64 << 20
"""Maximum size of a document."""
_MAX_REFERENCES = 50
"""Maximum length of a chain of references."""
_MAX_CACHED_BYTES = 1 << 20
"""Maximum size of the JSON of the decoded parts that are kept."""
_SPLIT_TWICE = frozenset(("components",))
_SPLIT_ONCE = frozenset(
    (
        *("paths", "webhooks", "definitions", "parameters", "responses"),
        *("requestBodies", "securityDefinitions"),
    )
)
_WHITESPACE = re.compile(r"[ \t\n\r]*")
_scan_string: Any = getattr(decoder, "scanstring")  # noqa: B009  not in typeshed
_scan_value: Any = getattr(JSONDecoder(), "scan_once")  # noqa: B009  not in typeshed


class Document:
    """A document in JSON. `find` returns a part of it.

    Args:
        data: The document as JSON in UTF-8.
        name: The name of the file, or the URL, for messages.
        sections: What `scan_sections` has returned for the same data.
        open_other: Returns another document that a reference names, or raises a DefinitionError.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        sections: Sections | None = None,
        open_other: Callable[[str], Document] | None = None,
    ) -> None:
        self.name = name
        self._data = data
        self.sections = scan_sections(data, name) if sections is None else sections
        self._open_other = open_other
        self._others: dict[str, Document] = {}
        self._cached: dict[str, object] = {}
        self._cached_bytes = 0

    def find(self, reference: str) -> Any:
        """Return what a reference such as `#/components/schemas/User` names.

        Do not change it. Raises a DefinitionError if there is no such part.
        """
        file, _, pointer = reference.partition("#")
        if file:
            return self._find_in_other(file, pointer)
        tokens = [_unescape(part) for part in pointer.split("/")[1:]]
        for count in range(min(3, len(tokens)), 0, -1):
            key = "".join([f"/{token}" for token in tokens[:count]])
            if key in self.sections:
                return _descend(self._decode(key), tokens[count:], reference, self.name)
        raise DefinitionError(f"{self.name}: {reference!r} does not exist")

    def _decode(self, key: str) -> Any:
        known = self._cached.get(key, MISSING)  # several threads may resolve operations
        if known is not MISSING:
            return known
        start, end = self.sections[key]
        found: object = json.loads(self._data[start:end])
        if self._cached_bytes + end - start > _MAX_CACHED_BYTES:
            self._cached, self._cached_bytes = {}, 0
        self._cached[key] = found
        self._cached_bytes += end - start
        return found

    def _find_in_other(self, file: str, pointer: str) -> Any:
        """Return a part of another document, with references that are valid in this one."""
        if file not in self._others:
            if self._open_other is None:
                raise DefinitionError(f"{self.name}: the reference to {file!r} is not allowed")
            self._others[file] = self._open_other(file)
        other = self._others[file]
        found = other.find(f"#{pointer}") if pointer.strip("/") else other.whole()
        return _with_absolute_references(found, file)

    def whole(self) -> Any:
        """Return the whole document."""
        return json.loads(self._data)

    def get(self, key: str) -> Any:
        """Return a top-level value, or None."""
        return self._decode(f"/{key}") if f"/{key}" in self.sections else None

    def names(self, section: str) -> Iterator[str]:
        """Yield the names in a section, such as "/paths"."""
        prefix = f"{section}/"
        for key in self.sections:
            if key.startswith(prefix):
                yield key[len(prefix) :]

    def item(self, section: str, name: str) -> Any:
        """Return a part by the name that `names` yields."""
        return self._decode(f"{section}/{name}")

    def resolve(self, node: object) -> Any:
        """Return what a node refers to: the node itself, if it is not a reference."""
        count = 0
        while is_object(node) and isinstance(node.get("$ref"), str):
            count += 1
            if count > _MAX_REFERENCES:
                raise DefinitionError(f"{self.name}: {node['$ref']!r} refers to itself")
            target = self.find(node["$ref"])
            notes = {k: v for k, v in node.items() if k in ("description", "summary")}
            node = {**target, **notes} if notes and is_object(target) else target
        return node


def _unescape(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")


def _descend(node: object, tokens: list[str], reference: str, name: str) -> Any:
    for token in tokens:
        if is_object(node) and token in node:
            node = node[token]
        elif is_list(node) and token.isdecimal() and int(token) < len(node):
            node = node[int(token)]
        else:
            raise DefinitionError(f"{name}: {reference!r} does not exist")
    return node


def _with_absolute_references(node: object, file: str) -> Any:
    """Return a part of another file whose references start with the name of the file."""
    if is_list(node):
        return [_with_absolute_references(item, file) for item in node]
    if not is_object(node):
        return node
    changed = {key: _with_absolute_references(value, file) for key, value in node.items()}
    reference = node.get("$ref")
    if isinstance(reference, str):
        other, mark, pointer = reference.partition("#")
        folder = file.rpartition("/")[0]
        target = f"{folder}/{other}" if other and folder else other or file
        changed["$ref"] = f"{target}{mark}{pointer}"
    return changed


# ------------------------------------------------------------------ the scan


def scan_sections(data: bytes, name: str) -> Sections:
    """Return where the parts of a document are.

    The text is read as Latin-1, in which each byte is a character. So positions are those of bytes.
    """
    text = data.decode("latin-1")
    sections: dict[str, tuple[int, int]] = {}
    try:
        start = _skip(text, 3 if data[:3] == b"\xef\xbb\xbf" else 0)
        if text[start : start + 1] != "{":
            raise DefinitionError(f"{name} is not an OpenAPI document: it must be a JSON object")
        end = _scan_members(text, data, start, "", sections, _depth_of_top_level)
        if _skip(text, end) != len(text):
            raise ValueError
    except (StopIteration, ValueError, IndexError):
        raise DefinitionError(f"{name} is not valid JSON{_position(data)}") from None
    except RecursionError:
        raise DefinitionError(f"{name} is nested too deeply") from None
    return sections


def _position(data: bytes) -> str:
    """Return where the first error of an invalid JSON text is, for messages."""
    try:
        json.loads(data)
    except json.JSONDecodeError as failure:
        return f": line {failure.lineno}, column {failure.colno}: {failure.msg}"
    except (ValueError, RecursionError):
        return ""
    return ""


def _depth_of_top_level(key: str) -> int:
    """Return how many levels of a top-level value are split into parts."""
    return 2 if key in _SPLIT_TWICE else 1 if key in _SPLIT_ONCE else 0


def _scan_members(
    text: str,
    data: bytes,
    start: int,
    prefix: str,
    sections: dict[str, tuple[int, int]],
    depth_of: Callable[[str], int],
) -> int:
    """Note the members of the object at a position; return the position after it."""
    at = _skip(text, start + 1)
    if text[at] == "}":
        return at + 1
    while True:
        if text[at] != '"':
            raise ValueError
        key, after = _scan_string(text, at + 1, True)
        if not key.isascii():
            key = json.loads(data[at:after])
        at = _skip(text, after)
        if text[at] != ":":
            raise ValueError
        at = _skip(text, at + 1)
        depth, place = depth_of(key), f"{prefix}/{key}"
        if depth and text[at] == "{":
            inner_depth = depth - 1
            end = _scan_members(text, data, at, place, sections, lambda _, d=inner_depth: d)
        else:
            _, end = _scan_value(text, at)
            sections[place] = (at, end)
        at = _skip(text, end)
        if text[at] == "}":
            return at + 1
        if text[at] != ",":
            raise ValueError
        at = _skip(text, at + 1)


def _skip(text: str, position: int) -> int:
    """Return the position of the next character that is not whitespace."""
    found = _WHITESPACE.match(text, position)
    return position if found is None else found.end()
