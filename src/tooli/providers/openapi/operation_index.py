"""The operations of a document: their names, and which of them an app wants.

An operation is named after its `operationId`, or after its method and path. Its first tag is its
group. Names are words of a command line: `listUserRepos` is `list-user-repos`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from hashlib import blake2b

from tooli.core import Record
from tooli.core.tool import quote
from tooli.errors import DefinitionError
from tooli.schema.described import clean_text
from tooli.similar_names import did_you_mean
from tooli.text.jsonable import is_list, is_object
from tooli.text.unique_names import UniqueNames

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.document import Document

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_NAME_CHARS = 60
"""Maximum length of the name of an operation with its group. MCP clients allow 64 characters."""
_MAX_GROUP_CHARS = 32
_MAX_OPERATIONS = 20_000
_MAX_TAG_CHARS = 100
_MAX_LABEL_CHARS = 300
_BOUNDARIES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


class Entry(Record):
    """One operation in the index. It is not resolved yet."""

    key: str  # the name of the tool, with its group: "users.list"
    method: str  # in lower case
    path: str
    operation_id: str
    tags: tuple[str, ...]
    summary: str
    description: str
    is_deprecated: bool
    is_destructive: bool  # the document says so: `x-tooli-annotations`

    @property
    def label(self) -> str:
        """The method and the path, for messages."""
        return clean_text(f"{self.method.upper()} {self.path}", _MAX_LABEL_CHARS)


def check_version(document: Document) -> str:
    """Return the version of OpenAPI that a document has: "2.0", "3.0" or "3.1"."""
    for key in ("openapi", "swagger"):
        declared = document.get(key)
        version = str(declared) if isinstance(declared, (str, int, float)) else ""
        if key == "swagger" and version in ("2", "2.0"):
            return "2.0"
        if key == "openapi" and version.startswith("3."):
            return "3.0" if version.startswith("3.0") else "3.1"
        if version:
            raise DefinitionError(
                f"{document.name} has the version {quote(version[:20])} of {key}: supported are "
                "Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1"
            )
    raise DefinitionError(
        f"{document.name} is not an OpenAPI document: it has neither `openapi` nor `swagger`"
    )


def read_index(document: Document, problems: dict[str, str]) -> list[Entry]:
    """Return the operations of a document, in its order. What is left out is in `problems`."""
    paths = list(document.names("/paths"))
    if not paths and document.get("paths") not in (None, {}):
        raise DefinitionError(f"{document.name}: `paths` must be an object")
    found: list[Entry] = []
    taken = UniqueNames()
    for path in paths:
        if path.startswith("x-"):
            continue
        try:
            item = document.resolve(document.item("/paths", path))
        except DefinitionError as error:
            problems[path] = error.message
            continue
        if not is_object(item):
            problems[path] = "a path must be an object"
            continue
        for method in METHODS:
            if is_object(item.get(method)):
                if len(found) == _MAX_OPERATIONS:
                    raise DefinitionError(f"it has more than {_MAX_OPERATIONS:,} operations")
                found.append(_read_entry(method, path, item[method], taken))
    return found


def _read_entry(method: str, path: str, operation: JsonObject, taken: UniqueNames) -> Entry:
    declared = operation.get("operationId")
    operation_id = declared if isinstance(declared, str) else ""
    declared_tags: Any = operation.get("tags")
    cleaned = [
        clean_text(tag, _MAX_TAG_CHARS) for tag in (declared_tags if is_list(declared_tags) else ())
    ]
    tags = tuple([tag for tag in cleaned if tag])
    hints = operation.get("x-tooli-annotations")
    return Entry(
        key=_unique_key(_name_of(method, path, operation_id), tags, taken),
        method=method,
        path=path,
        operation_id=operation_id,
        tags=tags,
        summary=_text(operation.get("summary")),
        description=_text(operation.get("description")),
        is_deprecated=operation.get("deprecated") is True,
        is_destructive=is_list(hints) and "destructive" in hints,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def split_words(text: str) -> list[str]:
    """Return the words of a name in lower case: `listUserRepos` is `list`, `user`, `repos`."""
    return [word.lower() for word in _BOUNDARIES.split(text) if word]


def _name_of(method: str, path: str, operation_id: str) -> list[str]:
    return split_words(operation_id) or [method, *split_words(path)]


def _unique_key(words: Sequence[str], tags: Sequence[str], taken: UniqueNames) -> str:
    """Return a name that no other operation has, and add it to those that are taken."""
    tag = split_words(tags[0]) if tags else []
    group = _shorten("-".join(tag), _MAX_GROUP_CHARS)
    if tag and list(words[: len(tag)]) == tag and len(words) > len(tag):
        words = words[len(tag) :]  # `issues/create` in the group `issues`
    room = MAX_NAME_CHARS - len(group) - (1 if group else 0)
    base = _shorten("-".join(words) or "operation", room)
    lead = f"{group}." if group else ""

    def numbered(count: int) -> str:
        ending = f"-{count}"
        return f"{lead}{base[: room - len(ending)]}{ending}"

    return taken.add(f"{lead}{base}", numbered)


def _shorten(name: str, max_chars: int) -> str:
    """Return a name of limited length. Different names stay different."""
    if len(name) <= max_chars:
        return name
    digest = blake2b(name.encode(), digest_size=3).hexdigest()
    return f"{name[: max_chars - 7].rstrip('-')}-{digest}"


# ------------------------------------------------------------------ the selection


def select_entries(
    entries: Sequence[Entry],
    only: Iterable[str] | None,
    exclude: Iterable[str] | None,
    problems: dict[str, str],
) -> Iterator[Entry]:
    """Yield the operations that match one of `only` and none of `exclude`.

    A pattern that matches no operation is a problem: it may be misspelled.
    """
    wanted = None if only is None else _match("only", only, entries, problems)
    unwanted = _match("exclude", exclude or (), entries, problems)
    for entry in entries:
        if (wanted is None or entry.key in wanted) and entry.key not in unwanted:
            yield entry


def _match(
    keyword: str, patterns: Iterable[str], entries: Sequence[Entry], problems: dict[str, str]
) -> set[str]:
    names = {entry.key: _names_of(entry) for entry in entries}
    found: set[str] = set()
    for pattern in patterns:
        matched = [key for key, known in names.items() if _matches(pattern, known)]
        if not matched:
            known = {name: "" for choices in names.values() for name in choices}
            hint = did_you_mean(pattern, known)
            problems[f"{keyword}={pattern!r}"] = f"no operation has this name, tag or path{hint}"
        found.update(matched)
    return found


def _names_of(entry: Entry) -> Mapping[str, bool]:
    """Return the names by which an operation can be selected."""
    names = (entry.key, entry.operation_id, entry.path, entry.label, *entry.tags)
    return dict.fromkeys([name for name in names if name], True)


def _matches(pattern: str, names: Mapping[str, bool]) -> bool:
    if pattern in names:
        return True
    return any([fnmatchcase(name, pattern) for name in names]) if "*" in pattern else False
