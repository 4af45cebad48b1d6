"""Refuse values whose hashes collide, before pydantic puts them into a set or a dict.

The hash of an integer is its remainder modulo 2**61 - 1. So a caller can choose integers that all
have the same hash, and adding each of them to a set compares it with all others. pydantic does this
without releasing the GIL: 40,000 such integers would stop a server for half a minute. The hashes of
UUIDs, decimals and tuples are calculated from integers and can be chosen as well. The hashes of
texts cannot, because Python makes them different in each process.
"""

from __future__ import annotations

from tooli.core.tool import ConversionError
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from pydantic import TypeAdapter

    from tooli.core.protocols import JsonObject

MAX_EQUAL_HASHES = 100
"""How many different items with the same hash a set may have. Smaller sets are not checked."""

_SAFE_SCHEMAS = frozenset(
    ("str", "bytes", "bool", "none", "literal", "enum", "date", "datetime", "time", "url")
)
"""pydantic's schemas of values whose hashes cannot be chosen, or that have few values."""


class HashChecker:
    """Checks values that are to be converted to one type."""

    def __init__(self, type_adapter: TypeAdapter[Any]) -> None:
        self._type_adapter = type_adapter
        self._item_validators: list[Callable[[Any], Any]] | None = None
        self._parses_json = False

    def check(self, value: object) -> None:
        """Raise a ConversionError if items of the value have the same hash after conversion.

        The types of a value's parts are not known yet: a list in it may become a set or stay a
        list. Each long list and dict is checked as the content of every set and dict in the type.
        """
        if self._item_validators == []:
            return
        parse_json = self._parses_json or self._item_validators is None
        for items in _iter_long_containers(value, parse_json=parse_json):
            if self._item_validators is None:
                self._read_schema()
                self.check(value)
                return
            for validate_item in self._item_validators:
                _check_hashes(items, validate_item)

    def _read_schema(self) -> None:
        from pydantic_core import SchemaValidator

        root: Any = self._type_adapter.core_schema
        found: list[JsonObject] = []
        definitions: list[Any] = []
        for schema in _iter_schemas(root):
            self._parses_json |= schema["type"] == "json"
            definitions += schema["definitions"] if schema["type"] == "definitions" else ()
            item = _hashed_item_schema(schema)
            if item is not None and item["type"] not in _SAFE_SCHEMAS and item not in found:
                found.append(item)
        self._item_validators = []
        for item in found:
            schema: Any = item
            if definitions:
                schema = {"type": "definitions", "schema": item, "definitions": definitions}
            self._item_validators.append(SchemaValidator(schema).validate_python)


def _iter_schemas(node: object) -> Iterator[JsonObject]:
    """Iterate over the schemas in one of pydantic's core schemas."""
    pending: list[Any] = [node]
    visited_ids: set[int] = set()
    while pending:
        node = pending.pop()
        if is_object(node):
            if id(node) in visited_ids:
                continue
            visited_ids.add(id(node))
            if isinstance(node.get("type"), str):
                yield node
            # Serialization does not convert what a caller sends.
            pending += [part for name, part in node.items() if name != "serialization"]
        elif is_list(node) or isinstance(node, tuple):
            pending += node


def _hashed_item_schema(schema: JsonObject) -> JsonObject | None:
    """Return the schema of the items of a set, or of the keys of a dict. None for other types."""
    if schema["type"] in ("set", "frozenset"):
        return schema.get("items_schema") or {"type": "any"}
    if schema["type"] == "dict":
        return schema.get("keys_schema") or {"type": "any"}
    return schema.get("keys_schema")  # a Counter, an OrderedDict and others


def _iter_long_containers(value: object, *, parse_json: bool) -> Iterator[Iterable[object]]:
    """Iterate over the lists and dicts in a value that are long enough to be checked."""
    pending: list[Any] = [value]
    visited_ids: set[int] = set()
    while pending:
        part: Any = pending.pop()
        if parse_json and part.__class__ is str:
            part = _parse_json(part)
        kind = part.__class__
        if kind not in (list, tuple, dict) or id(part) in visited_ids:
            continue
        visited_ids.add(id(part))
        if len(part) > MAX_EQUAL_HASHES:
            yield part
        children = part.values() if kind is dict else part
        nested_kinds = (list, tuple, dict, str) if parse_json else (list, tuple, dict)
        pending += [child for child in children if child.__class__ in nested_kinds]


def _parse_json(text: str) -> Any:
    """Return the list or dict in a text for `pydantic.Json`. None for other or short text."""
    if len(text) <= MAX_EQUAL_HASHES or text.lstrip()[:1] not in ("[", "{"):
        return None
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # pydantic reports it
        return None


def _check_hashes(items: Iterable[object], validate_item: Callable[[Any], Any]) -> None:
    converted: list[Any] = []
    hashes: list[int] = []
    counts: dict[int, int] = {}
    for item in items:
        try:
            valid = validate_item(item)
            item_hash = hash(valid)
        except Exception:  # validators of the author may raise any error; pydantic reports it
            continue
        converted.append(valid)
        hashes.append(item_hash)
        counts[item_hash] = counts.get(item_hash, 0) + 1
    frequent = {item_hash for item_hash, count in counts.items() if count > MAX_EQUAL_HASHES}
    if frequent:
        _check_frequent_hashes(converted, hashes, frequent)


def _check_frequent_hashes(items: Sequence[Any], hashes: Sequence[int], frequent: set[int]) -> None:
    """Raise a ConversionError unless the items with a frequent hash are equal."""
    different: dict[int, list[Any]] = {item_hash: [] for item_hash in frequent}
    for item, item_hash in zip(items, hashes, strict=True):
        if item_hash not in frequent or item in different[item_hash]:
            continue
        different[item_hash].append(item)
        if len(different[item_hash]) > MAX_EQUAL_HASHES:
            raise ConversionError(
                f"more than {MAX_EQUAL_HASHES} different items have the same hash, "
                "so a set or a dict of them would be too slow; remove such items"
            )
