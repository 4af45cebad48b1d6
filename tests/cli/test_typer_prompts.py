"""Prompts of Typer's options, with and without a person."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from tooli import Tooli


def command_of(app: Tooli) -> typer.core.TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    return command


def test_prompt_is_kept_after_a_run_without_a_person(
    shop: Tooli, capsys: pytest.CaptureFixture[str]
) -> None:
    @shop.command()
    def ask(name: str = typer.Option(..., prompt="Your name")) -> str:
        return f"hello {name}"

    command = command_of(shop)
    with pytest.raises(SystemExit):
        command.main(["ask", "--json"], prog_name="shop")
    assert "E1002" in capsys.readouterr().out
    (option,) = [param for param in command.commands["ask"].params if param.name == "name"]
    assert vars(option)["prompt"] == "Your name"


def test_prompt_is_answered_by_stdin_of_a_test(shop: Tooli) -> None:
    @shop.command()
    def ask(name: str = typer.Option(..., prompt=True)) -> str:
        return f"hello {name}"

    result = CliRunner().invoke(shop, ["ask", "--text"], input="ada\n")
    assert "hello ada" in result.output
