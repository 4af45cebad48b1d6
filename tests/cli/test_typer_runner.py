"""Command lines that the real Typer parses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import typer

from tooli import Tooli
from tooli.cli import CommandOutput, read_invocation
from tooli.cli.typer_runner import problem_from_typer, raise_through_typer

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


def test_exit_code_of_typer_is_kept(answer: Answer, app: Tooli) -> None:
    code, document = envelope(answer, app, "--strict", "stop")
    assert code == 7
    assert document["ok"] is False


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
