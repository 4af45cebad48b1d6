"""Answers to lines that Typer parses in a machine mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import typer

from tooli import Tooli
from tooli.cli import read_invocation
from tooli.cli.typer_answers import problem_from_typer

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


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["--strict", "scale"], "E1002", "'value'"),
        (["--strict", "scale", "x"], "E1003", "not digits"),
        (["--strict", "scale", "1", "--unti", "x"], "E1004", "did you mean 'unit'"),
        (["--strict", "scale", "1", "2"], "E1005", "Too many arguments: 2"),
        (["--strict", "scale", "1", "--unit"], "E1006", "--unit"),
        (["--strict", "scael", "1"], "E1001", "did you mean 'scale'"),
    ],
)
def test_usage_errors(answer: Answer, app: Tooli, argv: list[str], code: str, message: str) -> None:
    exit_code, document = envelope(answer, app, *argv)
    assert exit_code == 2
    assert document["error"]["code"] == code
    assert message in document["error"]["message"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Got unexpected extra argument (x)", "E1005"),
        ("No such command 'x'.", "E1001"),
        ("Missing command.", "E1001"),
        ("Something else.", "E1000"),
    ],
)
def test_typer_error_message_determines_the_error_code(app: Tooli, text: str, code: str) -> None:
    line = read_invocation(app, ["scale", "1"], "typed").line
    assert problem_from_typer(ValueError(text), line).code == code


def test_printed_text_of_a_callback_is_no_envelope(answer: Answer) -> None:
    """A version that a callback prints is text, unless a mode is requested."""
    app = Tooli("typed")

    def print_version(value: bool) -> None:
        if value:
            print("typed 1.2")
            raise typer.Exit

    @app.callback()
    def before(show: bool = typer.Option(False, callback=print_version, is_eager=True)) -> None: ...

    @app.command()
    def names() -> list[str]:
        return []

    assert answer("--show", app=app) == (0, "typed 1.2\n", "")
    code, document = envelope(answer, app, "--show")
    assert code == 0
    assert document["result"] == "typed 1.2"
