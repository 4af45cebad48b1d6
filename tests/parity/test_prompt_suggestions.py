"""A suggested call never asks the question that the call could not ask."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer

from tooli import Tooli
from tooli.testing import invoke


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def init(
        name: Annotated[str, typer.Option(prompt=True)] = "demo",
        size: Annotated[int, typer.Option(prompt=True)] = 3,
    ) -> str:
        return f"{name} {size}"

    @app.command()
    def clear(really: Annotated[bool, typer.Option(prompt="Really?")] = False) -> bool:
        return really

    @app.command()
    def show(everything: Annotated[bool, typer.Option("--all", prompt=True)] = False) -> bool:
        return everything

    return app


def suggestion_of(*argv: str) -> dict[str, Any]:
    error = invoke(make_app(), *argv).error
    assert error is not None
    return error["suggestion"]


@pytest.mark.parametrize(
    ("command", "flags", "fix"),
    [("clear", ["--no-really"], "--really or --no-really"), ("show", ["--all"], "--all")],
)
def test_flag_that_nobody_gives_is_suggested_without_a_value(
    command: str, flags: list[str], fix: str
) -> None:
    suggestion = suggestion_of(command, "--json")
    assert suggestion["argv"] == ["shop", command, *flags, "--json"]
    assert suggestion["fix"] == f"Give {fix}."
    assert suggestion["applicability"] == "maybe_incorrect"
    assert invoke(make_app(), *suggestion["argv"][1:]).exit_code == 0


def test_answer_that_equals_the_default_is_kept() -> None:
    suggestion = suggestion_of("init", "--name", "demo", "--size", "x", "--json")
    assert suggestion["argv"] == ["shop", "init", "--name", "demo", "--size", "<size>", "--json"]
