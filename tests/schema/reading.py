"""Helpers that read a function or one parameter, and types for parameters."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import pydantic

from tooli.core.tool import MISSING, Param, Tool
from tooli.schema.convert_values import convert_argument
from tooli.schema.tool_reader import read_param, read_tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Size(pydantic.BaseModel):
    width: int


class User(pydantic.BaseModel):
    name: str


@dataclasses.dataclass
class Point:
    x: int


def param(annotation: Any, default: Any = MISSING) -> Param:
    """Return a parameter with an annotation."""
    return read_param("x", annotation, default)


def value(annotation: Any, given: Any) -> Any:
    """Convert a value to the type of an annotation."""
    return convert_argument(param(annotation), given)


def read(fn: Any, **kwargs: Any) -> Tool:
    """Return the Tool of a function that is registered with these keywords."""
    return read_tool(fn, app="app", path=("tool",), kwargs=kwargs, version="1.0")


def read_one(annotation: Any = MISSING, default: Any = MISSING) -> Param:
    """Return the Param of a function with one parameter, called `the_name`."""
    fn = (lambda the_name: None) if default is MISSING else (lambda the_name=default: None)
    if annotation is not MISSING:
        fn.__annotations__["the_name"] = annotation
    return read(fn).params[0]
