"""Models are encoded by pydantic's serializer with the same result as by `to_jsonable`."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    SecretStr,
    computed_field,
    field_serializer,
)

from tooli.text.json_encoder import encode
from tooli.text.model_encoder import encode_models


class Color(Enum):
    red = "red"


class Part(BaseModel):
    name: str = "part"
    weight: float = 0.5


class Everything(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    text: str = 'quote " and \n newline ü'
    number: int = 2**70
    ratio: float | None = None
    flag: bool = True
    color: Color = Color.red
    day: date = date(2026, 1, 2)
    moment: datetime = datetime(2026, 1, 2, tzinfo=timezone.utc)
    span: timedelta = timedelta(days=1, seconds=3)
    price: Decimal = Decimal("1.50")
    key: UUID = UUID(int=7)
    where: Path = Path("a/b")
    data: bytes = b"abc"
    kind: Literal["a", 1] = "a"
    items: list[Part] = Field(default_factory=lambda: [Part()])
    table: dict[str, float] = {"a": 1.5}
    anything: Any = None
    renamed: int = Field(1, serialization_alias="reNamed")
    password: SecretStr = SecretStr("hidden")


class Serialized(BaseModel):
    when: int = 1

    @field_serializer("when")
    def write_when(self, value: int) -> str:
        return f"<{value}>"

    @computed_field
    def ratio(self) -> float:
        return self.when / 2


class Node(BaseModel):
    value: float = 1.0
    children: list[Node] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Constants(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")

    value: float = 1.0


class Root(RootModel[list[float]]):
    pass


MODELS = [
    Everything(),
    Serialized(),
    Node(children=[Node(), Node(children=[Node()])]),
    Open.model_validate({"a": 1, "b": [None, 2.5]}),
    Constants(),
    Root([1.0, 2.0]),
]


def convert_step_by_step(value: object) -> object:
    """Return the JSON value as the encoder writes it without pydantic's serializer."""
    return json.loads(encode(value, []))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_same_json_as_step_by_step(model: BaseModel) -> None:
    for value in (model, [model], [model, model]):
        data = encode_models(value)
        assert data is not None
        assert json.loads(data) == convert_step_by_step(value)


NOT_FINITE = [
    Everything(ratio=math.nan),
    Everything(items=[Part(weight=math.inf)]),
    Everything(table={"a": -math.inf}),
    Everything(anything={"deep": [math.nan]}),
    Node(children=[Node(value=math.nan)]),
    Open.model_validate({"extra": math.inf}),
    Constants(value=math.nan),
    Root([math.nan]),
    Serialized.model_construct(when=math.nan),
]


@pytest.mark.parametrize("model", NOT_FINITE, ids=lambda model: type(model).__name__)
def test_nan_and_infinity_are_left_to_the_converter(model: BaseModel) -> None:
    assert encode_models(model) is None
    assert encode_models([model]) is None


def test_wrong_type_of_a_field_is_left_to_the_converter() -> None:
    assert encode_models(Part.model_construct(name=1, weight="heavy")) is None


def test_value_that_pydantic_cannot_write_is_left_to_the_converter() -> None:
    assert encode_models(Everything(anything=object())) is None
    assert encode_models(Everything(text="\ud800")) is None


def test_own_model_dump_is_left_to_the_converter() -> None:
    class Own(BaseModel):
        def model_dump(self, **_: object) -> dict[str, Any]:
            return {"own": True}

    assert encode_models(Own()) is None


@pytest.mark.parametrize("value", [[], [Part(), Node()], [1], "text", {"a": Part()}])
def test_other_values_are_not_encoded(value: object) -> None:
    assert encode_models(value) is None
