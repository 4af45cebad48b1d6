"""Command lines that the real Typer parses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import typer

from tooli import Tooli
from tooli.cli import CommandOutput, read_invocation
from tooli.cli.typer_runner import raise_through_typer

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture
def app() -> Tooli:
    app = Tooli("typed", version="1")

    def parse(text: str) -> int:
        if not text.isdigit():
            raise typer.BadParameter("not digits")
        return int(text) * 10

    @app.command()
    def scale(value: int = typer.Argument(..., parser=parse), *, unit: str = "m") -> str:
        print("working")
        return f"{value} {unit}"

    @app.command()
    def stop() -> None:
        raise typer.Exit(7)

    @app.callback()
    def before(strict: bool = False) -> None: ...

    return app


def envelope(answer: Answer, app: Tooli, *argv: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = answer("--json", *argv, app=app)
    return code, json.loads(out)


def test_result_is_an_envelope(answer: Answer, app: Tooli) -> None:
    code, document = envelope(answer, app, "--strict", "scale", "3", "--unit", "km")
    assert (code, document["result"]) == (0, "30 km")


def test_result_in_text_mode(answer: Answer, app: Tooli) -> None:
    code, out, _ = answer("--strict", "scale", "3", "--text", app=app)
    assert code == 0
    assert out.splitlines()[-1] == "30 m"


def test_value_is_returned_if_not_standalone(app: Tooli) -> None:
    argv = ["--strict", "scale", "2", "--text"]
    assert app(argv, prog_name="typed", standalone_mode=False) == "20 m"


def test_exit_code_of_typer_is_kept(answer: Answer, app: Tooli) -> None:
    code, document = envelope(answer, app, "--strict", "stop")
    assert code == 7
    assert document["ok"] is False


def test_custom_completion_variable_runs_typer_without_tooli(
    app: Tooli, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app(["stop"], prog_name="typed", complete_var="_TYPED_COMPLETE")
    assert capsys.readouterr().out == ""


def test_exception_is_raised_through_typer(app: Tooli) -> None:
    app._initialize_typer()
    output = CommandOutput(read_invocation(app, [], "typed"))
    with pytest.raises(RuntimeError, match="outside of a call"):
        raise_through_typer(output, RuntimeError("outside of a call"))


def test_exception_of_a_command_is_raised_in_text_mode(app: Tooli) -> None:
    @app.command()
    def fail() -> None:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        app(["--strict", "fail", "--text"], prog_name="typed")
