"""Messages about values that pydantic rejects."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, HttpUrl, SecretStr

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
        (Order, {"items": []}, "the number of items is 0; at least 1 are required"),
        (Order, {"items": "x"}, "a list is required"),
        (Order, {"items": [{"sku": "ab", "count": 1}], "kind": "c"}, "the value is not 'a' or 'b'"),
        (dict[str, int], "x", "an object is required: {str:int}"),
        (tuple[int, int], "x", "a list is required"),
        (int, "x", "'x' is not a valid integer"),
        (timedelta, "1h", "'1h' is not a duration (PT1H30M)"),
        (Decimal, "x", "'x' is not a valid number"),
        (Decimal, None, "a valid number is required"),
        (int, None, "a valid integer is required"),
        (datetime, "soon", "'soon' is not a date and time (YYYY-MM-DDTHH:MM:SS)"),
        (datetime, "2026-13-01", "'2026-13-01' is not a date and time (YYYY-MM-DDTHH:MM:SS)"),
        (date, "2026-02-30", "'2026-02-30' is not a date (YYYY-MM-DD)"),
        (time, "noon", "'noon' is not a time (HH:MM:SS)"),
        (UUID, "abc", "'abc' is not a UUID (123e4567-e89b-12d3-a456-426614174000)"),
        (UUID, 5, "5 is not a UUID (123e4567-e89b-12d3-a456-426614174000)"),
        (Path, 5, "5 is not a path"),
        (HttpUrl, "x", "'x' is not a URL (https://example.com/page)"),
        (AwareDatetime, "2026-01-01T00:00:00", "the time needs a time zone (2026-01-31T12:00:00Z)"),
        (int | date, "x", "'x' is not a valid integer or a date (YYYY-MM-DD)"),
        (list[int] | None, ["x", "y"], "'x' is not a valid integer"),
        (dict[str, int] | None, {"a": "x", "b": "y"}, "'x' is not a valid integer"),
        (int | date | None, [], "a valid integer or a date (YYYY-MM-DD) is required"),
        (Annotated[Decimal, Field(max_digits=2)], "1.23", "the number has more than 2 digits"),
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
