"""format_signature: a tool as one line, and what is cut if the line is too long."""

# ruff: noqa: UP007, UP045  Optional and Union are tested as well
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from tooli import Context, Option, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.core.tool import Choice, Scalar, Tool
from tooli.providers.signature import format_signature, shape_choices


class Color(Enum):
    red = "red"
    blue = "blue"


class Address(BaseModel):
    street: str
    zip: int = Field(0, alias="zipCode")


@dataclass
class Point:
    x: int


class Row(TypedDict):
    a: int


SHAPES: list[tuple[Any, Any, str]] = [
    (str, ..., "x: str"),
    (int, 3, "x: int = 3"),
    (float, 0.5, "x: float = 0.5"),
    (bool, False, "x: bool = false"),
    (Path, Path("."), 'x: path = "."'),
    (Color, Color.red, 'x: "red"|"blue" = "red"'),
    (Literal["a", "b"], "a", 'x: "a"|"b" = "a"'),
    (Literal[1, 2, 3, 4, 5, 6, 7], ..., "x: 1|2|3|4|5|6|…"),
    (list[str], ..., "x: str[]"),
    (list[Color], ..., 'x: ("red"|"blue")[]'),
    (list[list[int]], ..., "x: int[][]"),
    (list[Address], ..., "x: object[]"),
    (set[int], ..., "x: int[]"),
    (tuple[int, ...], ..., "x: int[]"),
    (tuple[int, str], (1, "a"), 'x: [int, str] = [1, "a"]'),
    (dict[str, int], ..., "x: object"),
    (dict, ..., "x: object"),
    (Optional[int], None, "x?: int"),
    (Optional[int], 4, "x: int|null = 4"),
    (Optional[int], ..., "x: int|null"),
    (Union[int, str], ..., "x: int|str"),
    (int | list[str], ..., "x: int|str[]"),
    (Address, ..., "x: object"),
    (Point, ..., "x: object"),
    (Row, ..., "x: object"),
    (datetime, ..., "x: datetime"),
    (date, date(2020, 1, 2), 'x: date = "2020-01-02"'),
    (UUID, ..., "x: uuid"),
    (Decimal, ..., "x: decimal"),
    (Literal[True, None], ..., "x: true|null"),
    (Annotated[int, Field(gt=0)], ..., "x: int"),
    (Annotated[list[str], Option(default_factory=list)], ..., "x?: str[]"),
    (str, 'a"b\\c\n', r'x: str = "a\"b\\c\u000a"'),
    (str, "long " * 20, "x?: str"),
    (dict, {"a": [1.5, None, True]}, 'x: object = {"a": [1.5, null, true]}'),
    (Any, ..., "x: any"),
]


def tool_of(fn: Any, **settings: Any) -> Tool:
    app = Tooli("one")
    app.command("run", **settings)(fn)
    return next(iter(app.catalog))


@pytest.mark.parametrize(("annotation", "default", "expected"), SHAPES)
def test_parameter_of_every_shape(annotation: Any, default: Any, expected: str) -> None:
    def fn(x): ...

    fn.__annotations__ = {"x": annotation}
    fn.__defaults__ = None if default is ... else (default,)
    assert format_signature(tool_of(fn)) == f"run({expected})"


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, ""),
        (str, " -> str"),
        (list[dict[str, int]], " -> object[]"),
        (Iterator[int], " -> int[]"),
        (Address, " -> object"),
        (Optional[Path], " -> path|null"),
        (Annotated[list[int], "x"], " -> int[]"),
        (object, " -> any"),
        ("Nowhere", ""),
    ],
)
def test_return_type(annotation: Any, expected: str) -> None:
    def fn(): ...

    fn.__annotations__ = {"return": annotation}
    assert format_signature(tool_of(fn)) == f"run(){expected}"


def test_parameters_result_summary_and_labels() -> None:
    def fn(
        context: Context, pattern: str, root: Path = Path(), limit: int | None = None
    ) -> list[str]:
        """Find files
        by pattern.

        More about it.
        """
        return []

    assert format_signature(tool_of(fn, annotations=ReadOnly)) == (
        'run(pattern: str, root: path = ".", limit?: int) -> str[]'
        "  # Find files by pattern. [read-only]"
    )


def test_labels_are_in_brackets() -> None:
    payload = {"annotations": Destructive, "requires_approval": True, "deprecated": True}
    assert format_signature(tool_of(lambda: None, **payload)) == (
        "run()  # [destructive, needs approval, deprecated]"
    )
    assert format_signature(tool_of(lambda: None, human_in_the_loop=True)).endswith(
        "[needs approval]"
    )


def test_hidden_parameter_is_not_shown() -> None:
    def fn(a: str, b: Annotated[int, Option(hidden=True)] = 1): ...

    assert format_signature(tool_of(fn)) == "run(a: str)"


def test_long_signature_omits_optional_parameters_and_text() -> None:
    names = ", ".join(f"{'optional_parameter'}_{i}: int = {i}" for i in range(40))
    space: dict[str, Any] = {}
    exec(f"def fn(needed: str, {names}) -> str: ...", space)
    space["fn"].__doc__ = "Word " * 200
    line = format_signature(tool_of(space["fn"], annotations=Destructive))
    assert len(line) <= 300
    assert line.startswith("run(needed: str, optional_parameter_0: int = 0,")
    assert ", …) -> str  # Word" in line
    assert line.endswith("… [destructive]")
    exec(f"def fn({', '.join(f'needed_{i}: str' for i in range(99))}): ...", space)
    assert len(format_signature(tool_of(space["fn"]))) <= 300


def test_name_includes_the_group() -> None:
    def create(email: str) -> None:
        """Create."""

    app, users = Tooli("work"), Tooli("users")
    users.command()(create)
    app.add_typer(users)
    assert [format_signature(tool) for tool in app.catalog] == [
        "users.create(email: str)  # Create."
    ]


def test_hidden_required_parameter_is_shown() -> None:
    def fn(a: Annotated[int, Option(hidden=True)]): ...

    assert format_signature(tool_of(fn)) == "run(a: int)"


def test_default_that_is_not_json_is_optional() -> None:
    def fn(a: Any = object): ...

    assert format_signature(tool_of(fn)) == "run(a?: any)"


def test_long_name_is_truncated() -> None:
    app = Tooli("one")
    app.command("n" * 120)(lambda: None)
    (tool,) = app.catalog
    assert format_signature(tool) == "n" * 79 + "…()"


def test_choices_of_a_shape() -> None:
    assert shape_choices(Choice((Color.red, Color.blue), Color)) == ("red", "blue")
    assert shape_choices(Scalar(int)) == ()
