"""Iterate over the parts of any value: items, attributes and slots."""

from __future__ import annotations

import sys

from tooli.text.jsonable import is_list, is_object, is_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ATOMIC_TYPES = (str, int, float, bool, bytes, type(None), type)


class _SlotSample:
    __slots__ = ("slot",)


_SLOT_DESCRIPTOR: Any = type(vars(_SlotSample)["slot"])  # pyright: ignore[reportUnknownVariableType]


def iter_children(value: Any) -> Iterator[Any]:
    """Yield the keys and items of a collection, and the attributes and slots of an object.

    Iterators are skipped, because they can be read only once.
    """
    kind = value.__class__
    if isinstance(value, _ATOMIC_TYPES) or hasattr(kind, "__next__"):
        return
    if is_object(value):
        yield from value
        yield from value.values()
    elif is_list(value) or is_set(value) or _is_deque(value):
        yield from value
    yield from getattr(value, "__dict__", {}).values()
    for cls in kind.__mro__:
        for slot in cls.__dict__.values() if "__slots__" in cls.__dict__ else ():
            if type(slot) is _SLOT_DESCRIPTOR:
                try:
                    yield slot.__get__(value)
                except AttributeError:  # the slot is empty
                    continue


def _is_deque(value: Any) -> bool:
    collections_module = sys.modules.get("collections")  # loaded if a deque exists
    return collections_module is not None and isinstance(value, collections_module.deque)
