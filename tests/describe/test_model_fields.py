"""The fields of models as flags."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tooli.core.tool import MISSING
from tooli.describe.model_fields import list_fields
from tooli.schema.tool_reader import read_param


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    city: str = Field("Rome", description="The city")


class User(BaseModel):
    name: str = Field(description="The name")
    tags: list[str] = []
    colour: Colour = Colour.RED
    address: Address | None = None
    parent: User | None = None


@dataclass
class Point:
    x: int
    y: float = 0.5


def fields_of(annotation: Any) -> list[tuple[str, str, str]]:
    param = read_param("the_user", annotation, MISSING)
    return [(field.path, field.type_name, field.note) for field in list_fields(param)]


def test_fields_of_nested_models_have_dotted_paths() -> None:
    found = fields_of(User)
    assert found[:5] == [
        ("the-user.name", "str", "The name [required]"),
        ("the-user.tags", "json", "[default: []]"),
        ("the-user.colour", "red|blue", "[default: red]"),
        ("the-user.address.street", "str", "[required]"),
        ("the-user.address.city", "str", "The city [default: Rome]"),
    ]


def test_a_recursive_model_ends() -> None:
    paths = [path for path, _, _ in fields_of(User)]
    assert "the-user.parent.parent.parent" in paths
    assert not any(path.count(".") > 3 for path in paths)


def test_fields_of_a_dataclass() -> None:
    assert fields_of(Point) == [
        ("the-user.x", "int", "[required]"),
        ("the-user.y", "float", "[default: 0.5]"),
    ]


@pytest.mark.parametrize("annotation", [dict, dict[str, int], str])
def test_types_without_declared_fields_have_none(annotation: Any) -> None:
    assert fields_of(annotation) == []
