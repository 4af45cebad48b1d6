"""With `from __future__ import annotations` every annotation is text; it reads the same."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Optional

from tooli import Context, Option
from tooli.core.tool import MISSING, Choice, Injected, ListOf, Maybe, PathShape, Scalar
from tooli.schema.tool_reader import read_tool, return_annotation


class Colour(enum.Enum):
    RED = "red"


def paint(
    what: Path,
    colour: Colour,
    coats: Annotated[int, Option("--coats", "-c", min=1)] = 2,
    tags: Optional[list[str]] = None,  # noqa: UP045
    name: str | None = None,
    ctx: Context = None,
) -> list[Colour]:
    return [colour]


def test_every_parameter() -> None:
    tool = read_tool(paint, app="app", path=("paint",), kwargs={})
    assert {p.name: p.shape for p in tool.params} == {
        "what": PathShape(Path),
        "colour": Choice((Colour.RED,), Colour),
        "coats": Scalar(int),
        "tags": Maybe(ListOf(Scalar(str))),
        "name": Maybe(Scalar(str)),
        "ctx": Injected("context"),
    }
    assert tool.param("coats").flags == ("--coats", "-c")
    assert tool.param("coats").settings == {"min": 1}


def test_the_result() -> None:
    tool = read_tool(paint, app="app", path=("paint",), kwargs={})
    assert tool.returns == "list[Colour]"
    assert return_annotation(tool) == list[Colour]


def test_no_result() -> None:
    def silent(): ...

    def says_none() -> None: ...

    assert return_annotation(read_tool(silent, app="a", path=("s",), kwargs={})) is MISSING
    assert return_annotation(read_tool(says_none, app="a", path=("s",), kwargs={})) is None


def test_a_name_of_ones_own_wins_over_the_built_in_one() -> None:
    space = {"str": Colour}
    exec("from __future__ import annotations\ndef tool(x: str): ...", space)
    tool = read_tool(space["tool"], app="a", path=("t",), kwargs={})
    assert tool.params[0].shape == Choice((Colour.RED,), Colour)
