"""What a value is made of, whatever it is kept in: for those who look for something inside it."""

from __future__ import annotations

import sys

from tooli.text.jsonable import is_list, is_object, is_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ATOMIC_TYPES = (str, int, float, bool, bytes, type(None), type)


class _SlotSample:
    __slots__ = ("one",)


_SLOT_DESCRIPTOR: Any = type(vars(_SlotSample)["one"])  # pyright: ignore[reportUnknownVariableType]  not of `types`


def iter_children(value: Any) -> Iterator[Any]:
    """Keys and items of a collection; what an object keeps, in its `__dict__` and in slots.

    What can be had but once, as of an iterator, is left alone.
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
                except AttributeError:  # nothing was put into it
                    continue


def _is_deque(value: Any) -> bool:
    collections_module = sys.modules.get("collections")  # whoever has one has imported that
    return collections_module is not None and isinstance(value, collections_module.deque)
