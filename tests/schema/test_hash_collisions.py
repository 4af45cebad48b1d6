"""Values with equal hashes are refused before pydantic builds a set or a dict of them."""

import collections
import dataclasses
import json
import typing
import uuid
from collections.abc import Mapping, Set
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network

import pydantic
import pytest

from tooli.schema import ConversionError
from tooli.schema.hash_collisions import MAX_EQUAL_HASHES
from tooli.schema.pydantic_bridge import validate

COUNT = 5000
PRIME = 2**61 - 1
NUMBERS = [i * PRIME for i in range(1, COUNT)]
"""Integers with the hash 0."""


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int


class Frozen(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    number: int


class Model(pydantic.BaseModel):
    numbers: set[int] = set()
    by_number: dict[int, str] = {}
    children: list["Model"] = []
    names: list[str] = []


class TypedModel(typing.TypedDict):
    numbers: frozenset[int]


class Pair(typing.NamedTuple):
    numbers: set[int]
    name: str


COLLIDING: list[tuple[typing.Any, typing.Any]] = [
    (set[int], NUMBERS),
    (set[int], tuple(NUMBERS)),
    (set[int], [*NUMBERS, "x"]),
    (set[int], [str(number) for number in NUMBERS]),
    (set[int] | None, NUMBERS),
    (frozenset[int], NUMBERS),
    (Set[int], NUMBERS),
    (set, NUMBERS),
    (set[typing.Any], NUMBERS),
    (typing.Annotated[set[int], pydantic.Field(min_length=1)], NUMBERS),
    (list[set[int]], [[1], NUMBERS]),
    (dict[str, set[int]], {"a": NUMBERS}),
    (set[int] | str, NUMBERS),
    (set[int | str], NUMBERS),
    (dict[int, str], {str(number): "" for number in NUMBERS}),
    (Mapping[int, str], {str(number): "" for number in NUMBERS}),
    (collections.Counter[int], {str(number): 1 for number in NUMBERS}),
    (collections.defaultdict[int, int], {str(number): 1 for number in NUMBERS}),
    (collections.OrderedDict[int, int], {str(number): 1 for number in NUMBERS}),
    (set[uuid.UUID], [str(uuid.UUID(int=number)) for number in NUMBERS]),
    (set[Decimal], [str(number) for number in NUMBERS]),
    (set[Decimal], [f"{number}.0" for number in NUMBERS]),
    (set[IPv6Network], [f"{IPv6Network(number)}" for number in NUMBERS]),
    (set[tuple[int, int]], [[number, 1] for number in NUMBERS]),
    (set[frozenset[int]], [[number] for number in NUMBERS]),
    (set[Point], [{"x": number, "y": 1} for number in NUMBERS]),
    (set[Frozen], [{"number": number} for number in NUMBERS]),
    (Model, {"numbers": NUMBERS}),
    (Model, {"by_number": {str(number): "" for number in NUMBERS}}),
    (Model, {"children": [{"children": [{"numbers": NUMBERS}]}]}),
    (list[Model], [{"numbers": NUMBERS}]),
    (TypedModel, {"numbers": NUMBERS}),
    (Pair, {"numbers": NUMBERS, "name": "a"}),
    (Pair, [NUMBERS, "a"]),
    (pydantic.Json[set[int]], json.dumps(NUMBERS)),
    (dict[str, pydantic.Json[set[int]]], {"a": json.dumps(NUMBERS)}),
]


@pytest.mark.parametrize(("annotation", "value"), COLLIDING, ids=range(len(COLLIDING)))
def test_equal_hashes_are_refused(annotation: object, value: object) -> None:
    with pytest.raises(ConversionError, match="have the same hash"):
        validate(annotation, value)


ORDINARY: list[tuple[typing.Any, typing.Any, int]] = [
    (set[int], list(range(COUNT)), COUNT),
    (set[int], [7] * COUNT, 1),
    (set[int], [0, PRIME] * COUNT, 2),
    (set[int], NUMBERS[:MAX_EQUAL_HASHES], MAX_EQUAL_HASHES),
    (set[int], [2**i for i in range(2000)], 2000),
    (set[float], [i / 7 for i in range(COUNT)], COUNT),
    (set[str], [str(number) for number in NUMBERS], COUNT - 1),
    (list[int], NUMBERS, COUNT - 1),
    (dict[str, int], {str(number): 1 for number in NUMBERS}, COUNT - 1),
    (dict[int, int], {str(i): 1 for i in range(COUNT)}, COUNT),
    (set[uuid.UUID], [str(uuid.uuid4()) for _ in range(COUNT)], COUNT),
    (set[IPv4Network], [f"10.0.{i // 200}.{i % 200}/32" for i in range(COUNT)], COUNT),
    (pydantic.Json[set[int]], json.dumps([*range(COUNT)]), COUNT),
]


@pytest.mark.parametrize(("annotation", "value", "length"), ORDINARY, ids=range(len(ORDINARY)))
def test_other_values_are_converted(annotation: object, value: object, length: int) -> None:
    converted: typing.Any = validate(annotation, value)
    assert len(converted) == length


def test_errors_of_other_items_are_reported() -> None:
    with pytest.raises(ConversionError, match="valid integer") as caught:
        validate(Model, {"numbers": [*range(500), "x"]})
    assert caught.value.location == ("numbers", 500)


def test_cyclic_value_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(ConversionError):
        validate(list[set[int]], value)


compared: list[object] = []


@dataclasses.dataclass(frozen=True, eq=False)
class Counted:
    number: int

    def __hash__(self) -> int:
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        compared.append(other)
        return isinstance(other, Counted) and self.number == other.number


@pytest.mark.parametrize("step", [PRIME, 1])
def test_number_of_comparisons(step: int) -> None:
    compared.clear()
    items = [{"number": i * step} for i in range(COUNT)]
    try:
        validate(set[Counted], items)
    except ConversionError:
        assert step == PRIME
    assert len(compared) <= MAX_EQUAL_HASHES**2 + COUNT
