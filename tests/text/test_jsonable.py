"""Conversion of any value to JSON types, without an exception."""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import itertools
import json
import math
import pathlib
import subprocess
import sys
import types
import uuid
from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pydantic
import pytest
from pydantic import BaseModel
from tests.integration.app_process import environment

from tooli.core import Record
from tooli.text.jsonable import (
    MAX_JSON_DEPTH,
    convert_one_step,
    iter_children,
    map_strings,
    to_jsonable,
)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(str, enum.Enum):
    A = "a"


@dataclasses.dataclass
class Size:
    width: int
    unit: ClassVar[str] = "cm"
    label: str = dataclasses.field(init=False)


class User(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName")
    born: dt.date


class Holder(pydantic.BaseModel, arbitrary_types_allowed=True):
    thing: Any


class Row(collections.namedtuple("Row", "a b")):
    pass


class Mapped:
    def keys(self):
        return ["a"]

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, key):
        return key * 2


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class BrokenIterable:
    def __iter__(self):
        raise RuntimeError("no items")


class Pathlike:
    def __init__(self, path) -> None:
        self.path = path

    def __fspath__(self):
        return self.path


class Thing:
    def __str__(self) -> str:
        return "a thing"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(v, v) for v in (None, True, 3, 1.5, "x", [1, [2]], {"a": {"b": 1}})],
        ((1, 2), [1, 2]),
        (Row(1, 2), [1, 2]),
        ({2, 1}, [1, 2]),
        ({"b", 1}, [1, "b"]),
        (frozenset({"a"}), ["a"]),
        ({frozenset({"b"}), frozenset({"a", "c"})}, [["a", "c"], ["b"]]),
        (b"text", "text"),
        (bytearray(b"text"), "text"),
        (memoryview(b"text"), "text"),
        (b"\xff\xfe", "//4="),
        (Colour.RED, "red"),
        (Level.LOW, 1),
        (Word.A, "a"),
        (dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone.utc), "2024-01-02T03:00:00Z"),
        (dt.datetime(2024, 1, 2, 3), "2024-01-02T03:00:00"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (dt.time(3, 4), "03:04:00"),
        (dt.timedelta(days=1, seconds=2), "P1DT2S"),
        (decimal.Decimal("1.10"), "1.10"),
        (ipaddress.ip_network("192.0.2.0/24"), "192.0.2.0/24"),
        (ipaddress.ip_network("2001:db8::/120"), "2001:db8::/120"),
        (ipaddress.ip_interface("2001:db8::1/64"), "2001:db8::1/64"),
        (ipaddress.ip_address("192.0.2.1"), "192.0.2.1"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (Pathlike("a"), "a"),
        (Pathlike(b"a"), "a"),
        (Size(3), {"width": 3}),
        (
            User(fullName="Ada", born=dt.date(1815, 12, 10)),
            {"fullName": "Ada", "born": "1815-12-10"},
        ),
        (Holder(thing=Colour.RED), {"thing": "red"}),
        (Mapped(), {"a": "aa"}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.deque([1]), [1]),
        (range(3), [0, 1, 2]),
        (map(str, [1]), ["1"]),
        ({"a": 1}.values(), [1]),
        ([pathlib.PurePosixPath("a")], ["a"]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_lossless_conversion_has_no_warning(value, expected) -> None:
    warnings: list[str] = []
    assert to_jsonable(value, warnings) == expected
    assert not warnings
    json.dumps(expected, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "expected", "warning"),
    [
        (math.nan, None, "NaN or infinity was written as null"),
        ([math.inf, -math.inf], [None, None], "NaN or infinity was written as null"),
        (Thing(), "a thing", "a Thing was written as its text"),
        (Thing, str(Thing), "a type was written as its text"),
        (Broken(), "<Broken>", "a Broken was written as its text"),
        (BrokenIterable(), None, "a BrokenIterable could not be written: no items"),
        (Holder(thing=Thing()), {"thing": "a thing"}, "a Thing was written as its text"),
        (10**5000, hex(10**5000), "a very large integer was written in hexadecimal, as text"),
        (1j, "1j", "a complex was written as its text"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_lossy_conversion_has_a_warning(value, expected, warning) -> None:
    warnings: list[str] = []
    assert to_jsonable(value, warnings) == expected
    assert warnings == [warning]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a", "a"),
        (Word.A, "a"),
        (1, "1"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        (Level.LOW, "1"),
        (Colour.RED, "red"),
        ((1, 2), "(1, 2)"),
        (pathlib.PurePosixPath("a"), "a"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (b"a", "a"),
        (frozenset({1}), "[1]"),
        (10**5000, hex(10**5000)),
        (BrokenIterable(), "<BrokenIterable>"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_keys_become_strings(key, expected) -> None:
    assert to_jsonable({key: 1}, []) == {expected: 1}


def test_circular_value_is_null_with_a_warning() -> None:
    circular: dict[str, Any] = {"a": 1}
    circular["self"] = circular
    warnings: list[str] = []
    assert to_jsonable(circular, warnings) == {"a": 1, "self": None}
    assert warnings == ["a part that contains itself was left out"]


def test_repeated_value_is_not_circular() -> None:
    part = {"a": 1}
    warnings: list[str] = []
    assert to_jsonable([part, part], warnings) == [part, part]
    assert not warnings


def test_parts_below_the_maximum_depth_are_left_out() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    warnings: list[str] = []
    found = to_jsonable(deep, warnings)
    depth = 0
    while found is not None:
        found, depth = found[0], depth + 1
    assert depth == MAX_JSON_DEPTH
    assert warnings == [f"parts nested deeper than {MAX_JSON_DEPTH} were left out"]


def test_warnings_are_unique() -> None:
    warnings: list[str] = []
    to_jsonable([math.nan] * 10, warnings)
    assert len(warnings) == 1


def test_numpy_array_becomes_a_list() -> None:
    class Array:
        def tolist(self):
            return [1, 2]

    Array.__module__ = "numpy.core"
    assert convert_one_step(Array(), []) == [1, 2]
    Array.__module__ = "elsewhere"
    assert convert_one_step(Array(), []).startswith("<")


def test_set_order_is_deterministic() -> None:
    """The order does not depend on the hash seed of the process."""
    code = (
        "from tooli.text.jsonable import to_jsonable; "
        "sets = {frozenset('ab'), frozenset('bc'), frozenset('xy')}; "
        "print(to_jsonable([{'a', 'b', 'c', 1}, sets], []))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment(PYTHONHASHSEED=seed),
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_endless_conversion_is_cut() -> None:
    class SelfIterable:
        def __iter__(self):
            return itertools.repeat(SelfIterable(), 1)

    warnings: list[str] = []
    to_jsonable(SelfIterable(), warnings)
    assert warnings == [f"parts nested deeper than {MAX_JSON_DEPTH} were left out"]


# ------------------------------------------------------------------ iter_children


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
    ("value", "children"),
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
def test_iter_children_yields_keys_items_and_fields(value: Any, children: list[Any]) -> None:
    assert list(iter_children(value)) == children


def test_iter_children_yields_extra_fields_of_a_model() -> None:
    found = list(iter_children(Model.model_validate({"one": 1, "more": 2})))
    assert 1 in found
    assert {"more": 2} in found


def test_map_strings_changes_keys_and_values() -> None:
    value = {"a": ["b", 1, None, {"c": ("d", True)}]}
    assert map_strings(value, str.upper) == {"A": ["B", 1, None, {"C": ["D", True]}]}


class TextEnum(str, enum.Enum):
    A = "a"


class NumberEnum(int, enum.Enum):
    ONE = 1


def test_enum_members_that_are_text_or_numbers_are_written_as_their_value() -> None:
    converted = to_jsonable({"text": TextEnum.A, TextEnum.A: [NumberEnum.ONE]}, [])
    assert [str(part) for part in (converted["text"], *converted, converted["a"][0])] == [
        *("a", "text", "a", "1"),
    ]
