"""The fields that pydantic ignores are found, and no field that a type accepts."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from tooli.core.tool import MAX_PROBLEMS
from tooli.schema.ignored_fields import IgnoredFieldFinder


class Address(BaseModel):
    street: str = ""
    zip_code: int = 0


class Order(BaseModel):
    sku: str = ""
    gift: bool = False
    address: Address | None = None
    lines: list[Address] = []
    by_name: dict[str, Address] = {}
    labels: dict[str, str] = {}
    pair: tuple[int, Address] = (0, Address())
    any_value: Any = None


class Node(BaseModel):
    value: int = 0
    children: list[Node] = []


class Aliased(BaseModel):
    is_gift: bool = Field(False, alias="isGift")
    name: str = Field("", validation_alias=AliasChoices("nm", AliasPath("names", 0)))
    first: str = Field("", validation_alias=AliasPath("parts", 0))


class Paths(BaseModel):
    street: str = Field("", validation_alias=AliasPath("address", "street"))
    city: str = Field("", validation_alias=AliasPath("address", "city", "name"))
    item: str = Field("", validation_alias=AliasPath("items", 0))
    whole: str = Field("", validation_alias=AliasChoices("w", AliasPath("box", "w")))
    box: dict[str, int] = {}


class ByName(Aliased):
    model_config = ConfigDict(populate_by_name=True)


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")
    address: Address | None = None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    address: Address | None = None


class Before(BaseModel):
    sku: str = ""

    @pydantic.model_validator(mode="before")
    @classmethod
    def rename(cls, data: Any) -> Any:
        return {"sku": data["code"]} if "code" in data else data


class After(BaseModel):
    sku: str = ""

    @pydantic.model_validator(mode="after")
    def check(self) -> After:
        return self


class OwnInit(BaseModel):
    sku: str = ""

    def __init__(self, code: str = "", **data: Any) -> None:
        super().__init__(sku=code, **data)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    bark: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    length: int = dataclasses.field(default=0, init=False)


class Movie(TypedDict, total=False):
    title: str
    place: Address


class FreeMovie(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    title: str


class Rows(pydantic.RootModel[list[Address]]):
    pass


def find(annotation: Any, value: Any) -> list[tuple[str, str | None]]:
    found = IgnoredFieldFinder(pydantic.TypeAdapter(annotation)).find(value)
    return [(".".join(map(str, field.location)), field.closest) for field in found]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Order, {"gft": True}, [("gft", "gift")]),
        (Order, {"xyzzy": 1, "skuu": 2}, [("xyzzy", None), ("skuu", "sku")]),
        (Order, {"address": {"zipcode": 1}}, [("address.zipcode", "zip_code")]),
        (Order, {"lines": [{}, {"stret": ""}]}, [("lines.1.stret", "street")]),
        (Order, {"by_name": {"a": {"stret": ""}}}, [("by_name.a.stret", "street")]),
        (Order, {"pair": [1, {"stret": ""}]}, [("pair.1.stret", "street")]),
        (list[Order], [{"gft": 1}], [("0.gft", "gift")]),
        (tuple[Order, ...], [{"gft": 1}], [("0.gft", "gift")]),
        (Order | None, {"gft": 1}, [("gft", "gift")]),
        (Annotated[Order, Field(description="x")], {"gft": 1}, [("gft", "gift")]),
        (Order | int | str, {"gft": 1}, [("gft", "gift")]),
        (
            Node,
            {"children": [{"children": [{"valu": 1}]}]},
            [("children.0.children.0.valu", "value")],
        ),
        (Aliased, {"is_gift": 1}, [("is_gift", "isGift")]),
        (Aliased, {"isgift": 1, "first": ""}, [("isgift", "isGift"), ("first", None)]),
        (ByName, {"isgift": 1}, [("isgift", "isGift")]),
        (Paths, {"address": {"stret": "", "street": ""}}, [("address.stret", "street")]),
        (Paths, {"address": {"city": {"nam": ""}}}, [("address.city.nam", "name")]),
        (Free, {"address": {"stret": ""}}, [("address.stret", "street")]),
        (Strict, {"address": {"stret": ""}}, [("address.stret", "street")]),
        (After, {"skuu": ""}, [("skuu", "sku")]),
        (Cat | Dog, {"live": 1}, [("live", "lives")]),
        (Cat | Dog, {"kind": "dog", "barc": 1}, [("barc", "bark")]),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            {"kind": "dog", "lives": 1, "bark": 2},
            [("lives", None)],
        ),
        (Point, {"x": 1, "Y": 2}, [("Y", "y")]),
        (Movie, {"titel": ""}, [("titel", "title")]),
        (Movie, {"place": {"stret": ""}}, [("place.stret", "street")]),
        (Rows, [{"stret": ""}], [("0.stret", "street")]),
        (Order, {1: 2}, [("1", None)]),
    ],
)
def test_ignored_fields_are_found(annotation: Any, value: Any, expected: Any) -> None:
    assert find(annotation, value) == expected


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Order, {"sku": "", "gift": 1, "labels": {"a": ""}, "any_value": {"x": {"y": 1}}}),
        (Order, "text"),
        (Order, Order()),
        (list[Order], [Order(), 3, None]),
        (Aliased, {"isGift": 1, "nm": "", "names": [""], "parts": [""]}),
        (ByName, {"is_gift": 1, "name": "", "first": ""}),
        (Paths, {"address": {"street": "", "city": {"name": ""}}, "items": {"any": 1}}),
        (Paths, {"address": "text", "box": {"any": 1}}),
        (Free, {"other": 1}),
        (Strict, {"other": 1}),  # pydantic reports it
        (Before, {"code": ""}),
        (OwnInit, {"code": ""}),
        (FreeMovie, {"other": 1}),
        (Cat | dict[str, int], {"other": 1}),
        (Cat | Dog, {"bark": 1}),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": ["x"], "bark": 1}),
        (dict[str, int], {"a": 1}),
        (dict, {"a": {"b": 1}}),
        (list[int], [1]),
        (tuple[int, str], [1, "a"]),
        (tuple[int, ...], [1]),
        (Any, {"a": 1}),
    ],
)
def test_accepted_fields_are_not_reported(annotation: Any, value: Any) -> None:
    assert find(annotation, value) == []


def test_number_of_reported_fields_is_limited() -> None:
    assert len(find(Order, {f"field{i}": i for i in range(10_000)})) == MAX_PROBLEMS + 1
    assert len(find(list[Order], [{"gft": 1}] * 10_000)) == MAX_PROBLEMS + 1


def test_deeply_nested_value_is_left_to_the_validation() -> None:
    value: Any = {}
    for _ in range(5000):
        value = {"children": [value]}
    assert find(Node, value) == []
