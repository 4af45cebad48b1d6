from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from tooli.providers.programs.reader.python_types import (
    clean_help,
    plain_default,
    schema_of_choices,
    schema_of_type,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    A = 1
    B = "b"


class Word(str):
    pass


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (
            Optional[float],  # noqa: UP045
            {"type": "number"},
        ),
        (bool | None, {"type": "boolean"}),
        (Annotated[int | None, "note"], {"type": "integer"}),
        (
            Union[int, str],  # noqa: UP007
            {"type": "string"},
        ),
        (Path, {"type": "string"}),
        (Word, {"type": "string"}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Mixed, {"type": "string", "enum": ["1", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (object(), {"type": "string"}),
    ],
)
def test_types(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of_type(hint) == schema


def test_choices() -> None:
    assert schema_of_choices([]) == {}
    assert schema_of_choices(range(10**9)) == {"type": "string"}
    assert schema_of_choices([Color.RED, "x"]) == {"type": "string", "enum": ["RED", "x"]}
    assert schema_of_choices([True]) == {"type": "string", "enum": ["True"]}


def test_help() -> None:
    assert clean_help("\n    A.\n\n    \b\n    B\n      C\n    \fhidden") == "A.\n\nB\n  C"
    assert (clean_help(None), clean_help(5)) == ("", "5")


def test_defaults() -> None:
    assert plain_default(Color.RED) == "red"
    assert plain_default((1, "a")) == [1, "a"]
    assert plain_default(Path("a")) == "a"
    for value in (None, [], [object()], object(), b"x"):
        assert plain_default(value) is None
