"""Parts of values: items, attributes and slots."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from tooli.core.record import Record
from tooli.text.traverse import iter_children


@dataclass
class Plain:
    one: Any


@dataclass(slots=True)
class Slotted:
    one: Any


class Below(Slotted):
    __slots__ = ("__two",)

    def __init__(self, one: Any, two: Any) -> None:
        super().__init__(one)
        self.__two = two


class Empty:
    __slots__ = ("never",)


class Model(BaseModel, extra="allow"):
    one: Any


class Kept(Record):
    one: Any


class Pair(NamedTuple):
    one: Any
    two: Any


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ([1, 2], [1, 2]),
        ({"a": 1}, ["a", 1]),
        ({1}, [1]),
        (deque([1]), [1]),
        (Pair(1, 2), [1, 2]),
        (Plain(1), [1]),
        (Slotted(1), [1]),
        (Below(1, 2), [2, 1]),
        (Kept(1), [1]),
        (Empty(), []),
        ("text", []),
        (b"bytes", []),
        (7, []),
        (None, []),
        (Plain, []),
        (iter([1]), []),
        (lambda: 1, []),
    ],
)
def test_parts(value: Any, parts: list[Any]) -> None:
    assert list(iter_children(value)) == parts


def test_a_model_with_extra_fields() -> None:
    found = list(iter_children(Model.model_validate({"one": 1, "more": 2})))
    assert 1 in found
    assert {"more": 2} in found
