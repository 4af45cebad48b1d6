"""Paths into records, `owner.name` or `tags[0]`, and what an output schema says stands there."""

from __future__ import annotations

from tooli.contract.jsonable import is_list, is_object, jsonable
from tooli.errors import nearest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    FieldPath: TypeAlias = tuple[str | int, ...]
    Nodes: TypeAlias = list[dict[str, Any]] | None
    """The schemas that may hold at a place; None where nobody can tell."""


class Unfit(ValueError):  # noqa: N818
    """A filter or a selection that does not fit the records; `meant` is what probably would."""

    def __init__(self, message: str, meant: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.meant = meant


class Many(list["Any"]):
    """The values that a path leads to where it passes a list."""

    __slots__ = ()


# ------------------------------------------------------------------ values

PLAIN = frozenset((str, int, float, bool, type(None), dict, list))


def plain_value(value: Any) -> Any:
    """A value as JSON has it."""
    return value if value.__class__ in PLAIN else jsonable(value, [])


def part(value: Any, name: str | int) -> Any:
    """What stands in a value under a name, or at a place of a list; None where nothing does."""
    if value.__class__ is dict:
        return value.get(name)
    if isinstance(name, int):
        if not is_list(value):
            value = plain_value(value)
        return value[name] if is_list(value) and -len(value) <= name < len(value) else None
    if hasattr(value.__class__, "__dataclass_fields__"):
        return getattr(value, name, None)
    value = plain_value(value)
    return value.get(name) if is_object(value) else None


def reader(path: FieldPath) -> Callable[[Any], Any]:
    """What reads the value at a path out of a record, as JSON has it."""
    if not path:
        return plain_value
    if len(path) == 1 and isinstance(path[0], str):
        name = path[0]

        def read_one(record: Any) -> Any:
            value = record.get(name) if record.__class__ is dict else part(record, name)
            return value if value.__class__ in PLAIN else jsonable(value, [])

        return read_one
    return lambda record: _follow(record, path)


def _follow(value: Any, path: FieldPath) -> Any:
    for i, name in enumerate(path):
        if isinstance(name, str) and is_list(value):
            found = Many()
            for item in value:
                below = _follow(item, path[i:])
                found.extend(below if below.__class__ is Many else (below,))
            return found
        value = part(value, name)
        if value is None:
            return None
    return plain_value(value)


# ------------------------------------------------------------------ words


def read_path(text: str) -> FieldPath:
    """A path as it is written; `.` alone is the record itself."""
    if text == ".":
        return ()
    path: list[str | int] = []
    for piece in text.split("."):
        name, *places = piece.split("[")
        if not name or not all([place[-1:] == "]" and _is_place(place[:-1]) for place in places]):
            raise Unfit(f"{text!r} is no field: write name, name.part or name[0]")
        path.append(name)
        path += [int(place[:-1]) for place in places]
    return tuple(path)


def _is_place(text: str) -> bool:
    digits = text[1:] if text[:1] == "-" else text
    return digits.isascii() and digits.isdigit()


def write_path(path: FieldPath) -> str:
    """A path as it is read."""
    text = ""
    for name in path:
        text += f"[{name}]" if isinstance(name, int) else f".{name}"
    return text[1:] or "."


# ------------------------------------------------------------------ schemas


class Fields:
    """What an output schema says about the records of a result."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._definitions: Mapping[str, Any] = (schema or {}).get("$defs", {})
        whole = None if schema is None else self._variants(schema)
        self.listed = whole is None or any([node.get("type") == "array" for node in whole])
        """Whether the result may be a list."""
        self.records = whole if whole is None else self._each(whole)

    def _each(self, nodes: list[dict[str, Any]]) -> Nodes:
        """The records of a result: the items of lists, and what is no list itself."""
        found: list[dict[str, Any]] = []
        for node in nodes:
            if node.get("type") != "array":
                found.append(node)
                continue
            inner = self._items(node)
            if inner is None:
                return None
            found += inner
        return found

    def _items(self, node: Mapping[str, Any]) -> Nodes:
        if "prefixItems" in node:
            return None
        return self._variants(node.get("items", {}))

    def _variants(self, node: Any, above: tuple[str, ...] = ()) -> Nodes:
        """The concrete schemas that a schema allows; None where it allows anything."""
        if not is_object(node):
            return None
        reference = node.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            if name in above or name not in self._definitions:
                return None
            return self._variants(self._definitions[name], (*above, name))
        for word in ("anyOf", "oneOf"):
            if is_list(node.get(word)):
                return self._gathered(node[word], above)
        if isinstance(node.get("type"), str):
            return [node]
        if is_list(node.get("enum")) or "const" in node:
            return [node]
        return None

    def _gathered(self, parts: Sequence[Any], above: tuple[str, ...]) -> Nodes:
        found: list[dict[str, Any]] = []
        for each in parts:
            inner = self._variants(each, above)
            if inner is None:
                return None
            found += inner
        return found

    def at(self, path: FieldPath) -> Nodes:
        """What may stand at a path; raises Unfit where nothing can."""
        nodes = self.records
        for i, name in enumerate(path):
            if nodes is None:
                return None
            nodes = self._below(nodes, name, write_path(path[: i + 1]))
        return nodes

    def _below(self, nodes: list[dict[str, Any]], name: str | int, place: str) -> Nodes:
        found: list[dict[str, Any]] = []
        known: list[str] = []
        there = False
        for node in nodes:
            if node.get("type") == "array":
                inner = self._items(node)
                if inner is None:
                    return None
                if isinstance(name, int):
                    found, there = [*found, *inner], True
                else:
                    nodes = [*nodes, *[one for one in inner if one not in nodes]]
        for node in nodes:
            if node.get("type") != "object" or isinstance(name, int):
                continue
            properties = node.get("properties", {})
            known += [key for key in properties if key not in known]
            inner = self._property(node, name)
            if inner is None:
                return None
            found, there = [*found, *inner], there or bool(inner)
        if there:
            return found
        raise self._unknown(place, known)

    def _property(self, node: Mapping[str, Any], name: str) -> Nodes:
        """What an object holds under a name; nothing where it cannot hold it."""
        properties = node.get("properties", {})
        if name in properties:
            return self._variants(properties[name])
        more = node.get("additionalProperties", not properties)
        if more is True or "patternProperties" in node:
            return None
        return self._variants(more) if is_object(more) else []

    @staticmethod
    def _unknown(place: str, known: Sequence[str]) -> Unfit:
        last = place.rpartition(".")[2]
        meant = nearest(last, known)
        if meant is not None:
            return Unfit(f"There is no field {place!r}; did you mean {meant!r}?", meant)
        has = f"there are {', '.join(known)}" if known else "there are no fields below it"
        return Unfit(f"There is no field {place!r}: {has}")


def kinds(nodes: Nodes) -> set[str] | None:
    """The JSON types that may stand somewhere; None where any may."""
    if nodes is None:
        return None
    found: set[str] = set()
    for node in nodes:
        kind = node.get("type")
        if isinstance(kind, str):
            found.add("number" if kind == "integer" else kind)
        else:
            values = node["enum"] if "enum" in node else [node["const"]]
            found.update([kind_of(value) for value in values])
    return found


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if is_list(value) else "object"


def choices(nodes: Nodes) -> list[Any] | None:
    """The only values that may stand somewhere; None where there is no such list."""
    found: list[Any] = []
    for node in nodes or ():
        if node.get("type") == "null":
            found.append(None)
            continue
        if "enum" not in node and "const" not in node:
            return None
        found += node["enum"] if "enum" in node else [node["const"]]
    return found or None
