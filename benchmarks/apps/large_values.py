"""The large results that the servers return: 2,000 models, and a text of one megabyte."""

from datetime import datetime, timezone
from enum import Enum

from pydantic import BaseModel


class Color(str, Enum):
    """The color of an item."""

    red = "red"
    blue = "blue"


class Tag(BaseModel):
    """A tag of an item."""

    name: str
    weight: float


class Item(BaseModel):
    """An item of the shop."""

    id: int
    name: str
    price: float
    in_stock: bool
    color: Color
    created: datetime
    tags: list[Tag]
    note: str | None = None


ITEMS = [
    Item(
        id=number,
        name=f"item number {number}",
        price=number * 1.5,
        in_stock=number % 2 == 0,
        color=Color.red,
        created=datetime(2026, 1, 1, tzinfo=timezone.utc),
        tags=[Tag(name="a", weight=0.5), Tag(name="b", weight=1.5)],
    )
    for number in range(2000)
]
TEXT = "The quick brown fox jumps over the lazy dog, twice a day.\n" * 17_000
