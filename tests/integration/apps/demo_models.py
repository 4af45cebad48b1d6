"""The demo's commands with models: loaded only when one of them is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from pydantic import BaseModel, Field


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    number: int = Field(ge=1)


class User(BaseModel):
    """Somebody."""

    name: str
    age: int = 0
    tags: list[str] = []
    address: Address | None = None


@dataclass
class Point:
    """A place."""

    x: int
    y: float = 0.5


class Box(TypedDict):
    """A few fields."""

    width: int
    label: str


def model(user: User, point: Point | None = None, box: Box | None = None) -> dict:
    """Objects."""
    return dict(locals())


def people(users: list[User]) -> list[User]:
    """Many objects."""
    return users


def two(word: str, user: User | None = None) -> dict:
    """In a group in a group."""
    return {"word": word, "user": user}
