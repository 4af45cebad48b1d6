"""Messages about values that pydantic rejects."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from tooli.core.tool import ConversionError
from tooli.schema.pydantic_bridge import validate
from tooli.schema.pydantic_messages import UnknownField


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sku: str = Field(min_length=2, max_length=4, pattern="^a")
    count: int = Field(ge=1, le=99)


class Order(BaseModel):
    items: list[Item] = Field(min_length=1, max_length=2)
    kind: Literal["a", "b"] = "a"


def error_of(annotation: Any, value: object) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        validate(annotation, value)
    return caught.value


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (Item, {"sku": "ab"}, "a value is required"),
        (Item, {"sku": "ab", "count": 0}, "0 is less than 1, the smallest allowed"),
        (Item, {"sku": "ab", "count": 100}, "100 is more than 99, the largest allowed"),
        (Item, {"sku": 1, "count": 1}, "text is required"),
        (Item, {"sku": "a", "count": 1}, "the text has fewer than 2 characters"),
        (Item, {"sku": "abcde", "count": 1}, "the text has more than 4 characters"),
        (Item, {"sku": "bb", "count": 1}, "the text does not match ^a"),
        (
            Item,
            {"sku": "ab", "count": 1, "cont": 1},
            "there is no such field; did you mean 'count'?",
        ),
        (
            Item,
            {"sku": "ab", "count": 1, "x": 1},
            "there is no such field: the fields are sku, count",
        ),
        (Item, "x", "an object is required: {sku:str,count:int(1..99)}"),
        (Order, {"items": ["x"]}, "an object is required: {sku:str,count:int(1..99)}"),
        (Order, {"items": []}, "0 items are fewer than 1, the smallest number allowed"),
        (Order, {"items": "x"}, "a list is required"),
        (Order, {"items": [{"sku": "ab", "count": 1}], "kind": "c"}, "the value is not 'a' or 'b'"),
        (dict[str, int], "x", "an object is required: {str:int}"),
        (tuple[int, int], "x", "a list is required"),
        (int, "x", "'x' is not a valid integer"),
        (timedelta, "1h", "'1h' is not a duration (PT1H30M)"),
        (Decimal, "x", "'x' is not a valid number"),
        (Annotated[int, Field(gt=3)], 3, "3 is not more than 3"),
        (Annotated[int, Field(lt=3)], 3, "3 is not less than 3"),
        (Annotated[int, Field(multiple_of=2)], 3, "3 is not a multiple of 2"),
        (None, 3, "null is required"),
    ],
)
def test_message(annotation, value, message) -> None:
    assert error_of(annotation, value).message == message


@pytest.mark.parametrize(
    ("value", "suggested"),
    [
        ({"sku": "ab", "count": 0}, 1),
        ({"sku": "ab", "count": 100}, 99),
        ({"sku": "ab", "count": "x"}, None),
        ({"sku": "ab", "count": 1, "cont": 1}, UnknownField("count")),
        ({"sku": "ab", "count": 1, "zzz": 1}, UnknownField(None)),
    ],
)
def test_suggested_value(value, suggested) -> None:
    assert error_of(Item, value).suggested_value == suggested


def test_text_of_a_secret_is_not_repeated() -> None:
    annotation = Annotated[SecretStr, Field(min_length=20)]
    assert "hunter2" not in error_of(annotation, "hunter2").message
