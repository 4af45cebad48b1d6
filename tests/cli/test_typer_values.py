"""Single values that Typer converts."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import pytest
import typer

from tooli import Option, Tooli
from tooli.cli.typer_values import convert_with_typer
from tooli.core.tool import Param
from tooli.schema import ConversionError, RawText
from tooli.schema.described import checked_schema, read_params


class Colour(enum.Enum):
    RED = "red"


def param_of(annotation: Any) -> Param:
    def command(value: Any) -> None: ...

    command.__annotations__ = {"value": annotation, "return": None}
    return first_param(command)


def first_param(fn: Any) -> Param:
    app = Tooli("t")
    app.command("c")(fn)
    found = app.find("c")
    assert found is not None
    return found.params[0]


@pytest.mark.parametrize(
    ("annotation", "texts", "expected"),
    [
        (int, ["1_0"], 10),
        (bool, ["on"], True),
        (Colour, ["red"], Colour.RED),
        (list[int], ["1", "2"], [1, 2]),
        (set[int], ["1", "1"], {1}),
        (tuple[int, str], ["1", "a"], (1, "a")),
        (Path, ["a/b"], Path("a/b")),
    ],
    ids=str,
)
def test_text_is_converted_with_typer(annotation: Any, texts: list[str], expected: Any) -> None:
    assert convert_with_typer(param_of(annotation), RawText(texts)) == expected


@pytest.mark.parametrize(
    ("annotation", "text", "message"),
    [
        (int, "x", "'x' is not a valid integer"),
        (float, "x", "'x' is not a valid number"),
        (Colour, "blue", "red"),
    ],
    ids=str,
)
def test_conversion_error_names_the_value_or_the_choices(
    annotation: Any, text: str, message: str
) -> None:
    with pytest.raises(ConversionError, match=message):
        convert_with_typer(param_of(annotation), RawText([text]))


def test_error_of_a_custom_parser_is_raised() -> None:
    def parse(text: str) -> int:
        raise typer.BadParameter("not this one")

    def command(value: int = Option(..., parser=parse)) -> None: ...

    with pytest.raises(ConversionError, match="not this one"):
        convert_with_typer(first_param(command), RawText(["x"]))


def test_text_for_a_property_of_a_schema() -> None:
    (param,) = read_params(checked_schema({"properties": {"n": {"type": "integer"}}}, "tool"))
    assert convert_with_typer(param, RawText(["1_0"])) == 10
