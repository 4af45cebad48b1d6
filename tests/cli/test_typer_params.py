"""Parameters as Typer sees them."""

from __future__ import annotations

import datetime as dt
import enum
import inspect
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest
import typer

from tooli import Context, Option, SecretInput, StdinOr, Tooli
from tooli.cli.typer_params import (
    documents_parameters,
    is_native,
    needs_translation,
    typer_signature,
)
from tooli.core.tool import Param, Tool


class Colour(enum.Enum):
    RED = "red"


def tool_of(fn: Any) -> Tool:
    app = Tooli("t")
    app.command("c")(fn)
    found = app.find("c")
    assert found is not None
    return found


def param_of(annotation: Any, default: Any = inspect.Parameter.empty) -> Param:
    def command(value: Any) -> None: ...

    command.__annotations__ = {"value": annotation, "return": None}
    if default is not inspect.Parameter.empty:
        command.__defaults__ = (default,)
    return tool_of(command).params[0]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, True),
        (Path, True),
        (Colour, True),
        (dt.datetime, True),
        (UUID, True),
        (list[int], True),
        (tuple[int, str], True),
        (Literal["a", "b"], True),
        (list[Literal["a", "b"]], False),
        (list[tuple[int, int]], False),
        (dict[str, int], False),
        (SecretInput[str], False),
        (StdinOr[str], False),
    ],
    ids=str,
)
def test_types_that_typer_supports_are_native(annotation: Any, expected: bool) -> None:
    assert is_native(param_of(annotation)) is expected


def test_custom_parser_is_native() -> None:
    def command(value: dict[str, int] = Option(None, parser=dict)) -> None: ...  # noqa: B008

    assert is_native(tool_of(command).params[0])


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [(int, False), (set[int], True), (dict[str, int], True), (Context, True)],
    ids=str,
)
def test_parameters_that_typer_would_misread_need_translation(
    annotation: Any, expected: bool
) -> None:
    assert needs_translation(param_of(annotation)) is expected


def test_docstring_documents_the_parameters_of_a_command_with_a_result() -> None:
    def plain(x: int) -> int: ...

    def printing(x: int): ...

    def sections(x: int) -> int: ...

    plain.__doc__ = "Only a summary."
    printing.__doc__ = sections.__doc__ = "A summary.\n\nArgs:\n    x: a number\n"
    assert not documents_parameters(tool_of(plain))
    assert not documents_parameters(tool_of(printing)), "Typer shows the whole docstring"
    assert documents_parameters(tool_of(sections))


def test_signature_has_types_that_typer_supports() -> None:
    def command(
        ctx: Context, item: str, data: dict[str, int], tags: set[str] = frozenset(), size: int = 3
    ) -> None:
        """Do it.

        Args:
            item: what it is
        """

    parameters = typer_signature(tool_of(command)).parameters
    assert list(parameters) == ["item", "data", "tags", "size"]
    assert isinstance(parameters["item"].default, typer.models.ArgumentInfo)
    assert parameters["item"].default.help == "what it is"
    assert parameters["data"].annotation == list[str] | None
    assert parameters["data"].default.metavar == "JSON"
    assert parameters["data"].default.help == "[required]"
    assert parameters["tags"].annotation == list[str]
    assert parameters["tags"].default.default == []
    assert isinstance(parameters["size"].default, typer.models.OptionInfo)
    assert parameters["size"].default.default == 3
