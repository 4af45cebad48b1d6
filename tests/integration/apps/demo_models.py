"""Lazy commands of the demo app, with pydantic models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from pydantic import BaseModel, Field


class Address(BaseModel):
    """A postal address."""

    street: str
    number: int = Field(ge=1)


class User(BaseModel):
    """A user."""

    name: str
    age: int = 0
    tags: list[str] = []
    address: Address | None = None


@dataclass
class Point:
    """A point."""

    x: int
    y: float = 0.5


class Box(TypedDict):
    """A TypedDict."""

    width: int
    label: str


def model(user: User, point: Point | None = None, box: Box | None = None) -> dict:
    """Structured values."""
    return dict(locals())


def people(users: list[User]) -> list[User]:
    """A list of models."""
    return users


def two(word: str, user: User | None = None) -> dict:
    """A command in a nested group."""
    return {"word": word, "user": user}
