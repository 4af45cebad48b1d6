"""Limits on the time that a check against a JSON Schema takes.

A small schema can refer to its parts so that every check takes years: each of 40 definitions is
`allOf` of the next one, twice. A schema may come from an external source, so the number of
references that a check may follow is limited.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

from tooli.schema.pattern_search import MAX_STEPS, count_steps
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tooli.core.protocols import JsonObject

MIN_REFERENCES, REFERENCES_PER_VALUE = 10_000, 100
"""How many references a check may follow: this many, and for each value in the arguments."""
MAX_NESTED_REFERENCES = 100
"""Maximum number of references inside each other: each needs several levels of Python's stack."""
MAX_NESTED_PARTS = 60
"""Maximum number of parts of a schema inside each other that apply to one value."""
MAX_EXPANSION = 10_000
"""Maximum number of parts of a schema with `unevaluatedProperties` that apply to one value."""

_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_NAME_CHARS = 500
_counts: ContextVar[list[int]] = ContextVar("reference_counts")
"""How many references a check may still follow, and how many are inside each other."""


class ReferenceLimit(Exception):  # noqa: N818
    """A check follows too many references."""


class SchemaTooComplex(ValueError):  # noqa: N818
    """A check against a schema would take too long."""


@contextmanager
def limit_references(value: object) -> Generator[None]:
    """Limit the references that the check of a value may follow."""
    limit = MIN_REFERENCES + REFERENCES_PER_VALUE * _count_values(value)
    token = _counts.set([limit, 0])
    try:
        yield
    finally:
        _counts.reset(token)


@contextmanager
def count_reference() -> Generator[None]:
    """Count a reference that a check follows; raise ReferenceLimit if there are too many."""
    counts = _counts.get(None)
    if counts is None:
        yield
        return
    counts[0] -= 1
    counts[1] += 1
    try:
        if counts[0] < 0 or counts[1] > MAX_NESTED_REFERENCES:
            raise ReferenceLimit
        yield
    finally:
        counts[1] -= 1


def _count_values(value: object) -> int:
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        count += 1
        if is_list(item):
            waiting += item
        elif is_object(item):
            waiting += item.values()
    return count


def check_expansion(schema: JsonObject) -> None:
    """Raise SchemaTooComplex for a schema with which jsonschema does not end in a limited time.

    To find unevaluated properties, it follows references and searches names without our limits.
    """
    checked: set[int] = set()
    for part in _parts(schema):
        _check_end(part, schema, checked, ())
    if not any([keyword in part for part in _parts(schema) for keyword in _UNEVALUATED]):
        return
    sizes: dict[int, int] = {}
    for part in _parts(schema):
        for keyword in ("$ref", "$dynamicRef"):
            if str(part.get(keyword, "#"))[:2] not in ("#", "#/"):
                raise SchemaTooComplex(f"{part[keyword]!r:.80} is not like '#/$defs/Name'")
        if _expansion(part, schema, sizes, ()) > MAX_EXPANSION:
            raise SchemaTooComplex("its unevaluated properties depend on too many parts")
        patterns = part.get("patternProperties")
        for pattern in patterns if is_object(patterns) else ():
            if count_steps(pattern, _NAME_CHARS) > MAX_STEPS:
                raise SchemaTooComplex(f"the pattern {pattern[:80]!r} may need too much time")


def _parts(node: object) -> Iterator[JsonObject]:
    """Iterate over the objects in a schema."""
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if is_list(item):
            waiting += item
        elif is_object(item):
            yield item
            waiting += item.values()


def _check_end(
    schema: object, root: JsonObject, checked: set[int], inside: tuple[int, ...]
) -> None:
    """Raise SchemaTooComplex if a schema applies itself to the same value, again and again."""
    if not is_object(schema) or id(schema) in checked:
        return
    if id(schema) in inside:
        raise SchemaTooComplex("a part of it consists of itself")
    if len(inside) > MAX_NESTED_PARTS:
        raise SchemaTooComplex("its references are nested too deeply")
    outer = (*inside, id(schema))
    for part in _parts_in_place(schema, root):
        _check_end(part, root, checked, outer)
    checked.add(id(schema))


def _parts_in_place(schema: JsonObject, root: JsonObject) -> Iterator[object]:
    """Yield the parts of a schema that apply to the same value."""
    for keyword in _IN_PLACE:
        branches = schema.get(keyword)
        yield from branches if is_list(branches) else [branches]
    for keyword in ("$ref", "$dynamicRef"):
        reference = schema.get(keyword)
        if isinstance(reference, str):
            yield find_reference(reference, root)


def _expansion(
    schema: object, root: JsonObject, sizes: dict[int, int], inside: tuple[int, ...]
) -> int:
    """Return how many parts of a schema apply to one value, each as often as it applies."""
    if not is_object(schema) or id(schema) in inside:
        return 1
    if id(schema) not in sizes:
        outer = (*inside, id(schema))
        parts = _parts_in_place(schema, root)
        total = 1 + sum([_expansion(part, root, sizes, outer) for part in parts])
        sizes[id(schema)] = min(total, MAX_EXPANSION + 1)
    return sizes[id(schema)]


def find_reference(reference: str, root: JsonObject) -> JsonObject | None:
    """Return the part of a schema that a reference such as `#/$defs/User` names, or None."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    node: object = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if is_object(node) else None
    return node if is_object(node) else None
