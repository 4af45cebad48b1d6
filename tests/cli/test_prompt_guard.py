"""Questions that a command asks itself."""

from __future__ import annotations

import builtins
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tests.integration.app_process import PROCESS_TIMEOUT, environment, parse_json

from tooli import Tooli
from tooli.cli import CommandOutput, read_invocation
from tooli.cli import prompt_guard as guard
from tooli.errors import InputError
from tooli.pipeline.prompt_functions import AskedQuestion

ASKING_APP = """
from tooli import Tooli
app = Tooli("asking")

@app.command()
def late() -> int:
    import getpass
    return len(getpass.getpass("Secret: "))

@app.command()
def line() -> str:
    return input("Name: ")

app()
"""


@pytest.fixture
def app() -> Tooli:
    app = Tooli("asking")

    @app.command()
    def ask(force: bool = False) -> None: ...

    @app.command(context_settings={"allow_extra_args": True})
    def run() -> None: ...

    return app


@pytest.fixture
def stdin_pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Make a pipe the stdin; yield the end to write to."""
    reading, writing = os.pipe()
    with open(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(guard, "_piped_answer_seen", False)
        yield writing


@pytest.mark.parametrize(
    ("argv", "env", "expected"),
    [
        (["ask", "--json"], {}, False),
        (["ask", "--text"], {}, True),
        (["ask", "--text", "--no-input"], {}, False),
        (["ask"], {"CI": "true"}, False),
    ],
)
def test_can_answer(
    app: Tooli,
    argv: list[str],
    env: dict[str, str],
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(guard, "has_piped_answer", lambda: False)
    assert guard.can_answer(read_invocation(app, argv)) is expected


def test_piped_answer(stdin_pipe: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "PIPE_GRACE_SECONDS", 0)
    assert not guard.has_piped_answer()
    os.write(stdin_pipe, b"y\n")
    assert guard.has_piped_answer()
    sys.stdin.readline()
    assert guard.has_piped_answer()  # more answers may be in the buffer of stdin
    os.close(stdin_pipe)


def test_closed_pipe_has_no_answer(stdin_pipe: int) -> None:
    os.close(stdin_pipe)
    assert not guard.has_piped_answer()


def test_file_has_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_piped_answer_seen", False)
    path = tmp_path / "answers"
    path.write_text("")
    for text in ("", "y\n"):
        path.write_text(text)
        with path.open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert guard.has_piped_answer() is bool(text)
    monkeypatch.setattr(guard, "_piped_answer_seen", False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # it has no descriptor
    assert not guard.has_piped_answer()


def test_error_suggests_a_flag_and_a_pipe(app: Tooli) -> None:
    invocation = read_invocation(app, ["ask", "--json"], "asking")
    error = guard.unanswered_error(invocation, AskedQuestion("Sure?"))
    assert (error.code, error.exit_code) == ("E1038", 2)
    assert error.message == "The command asks 'Sure?', and nobody can answer."
    assert error.suggestion is not None
    assert "--force" in error.suggestion.fix
    assert error.suggestion.example == "echo <answer> | asking ask --text"


def test_error_of_a_command_that_passes_arguments_on(app: Tooli) -> None:
    error = guard.unanswered_error(read_invocation(app, ["run", "x"], "asking"), AskedQuestion())
    assert error.suggestion is not None
    assert error.suggestion.example == "echo <answer> | asking run x --tooli-text"
    assert "--force" not in error.suggestion.fix


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["ask", "--json"], ["ask", "--json", "--force"]),
        (["ask", "--force", "--no-input"], ["ask", "--force", "--yes"]),
        (["run", "--", "x"], ["run", "--tooli-yes", "--", "x"]),
    ],
)
def test_error_of_a_confirmation(app: Tooli, argv: list[str], expected: list[str]) -> None:
    question = AskedQuestion("Sure?", is_confirmation=True)
    error = guard.unanswered_error(read_invocation(app, argv, "asking"), question)
    assert error.suggestion is not None
    assert error.suggestion.argv == ["asking", *expected]
    assert error.suggestion.action == "ask_human"
    assert not error.is_retryable


@pytest.mark.parametrize(("text", "name"), [("Your name", "--name"), ("Which file?", "'file'")])
def test_error_names_the_parameter_that_answers(text: str, name: str) -> None:
    app = Tooli("asking")

    @app.command()
    def ask(file: str = typer.Argument(""), name: str = "") -> None: ...

    invocation = read_invocation(app, ["--json"], "asking")
    error = guard.unanswered_error(invocation, AskedQuestion(text))
    assert error.suggestion is not None
    assert f"{name} if it is the answer" in error.suggestion.fix


def test_yes_answers_a_confirmation(app: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", sys.__stdin__)
    output = CommandOutput(read_invocation(app, ["ask", "--json", "--yes"]))
    output.guard_prompts()
    assert typer.confirm("Sure?")
    output.release()


def test_functions_are_replaced_until_release(app: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    import getpass

    monkeypatch.setattr(sys, "stdin", sys.__stdin__)
    originals = builtins.input, getpass._raw_input, sys.meta_path  # type: ignore[attr-defined]
    output = CommandOutput(read_invocation(app, ["ask", "--json"]))
    output.guard_prompts()
    with pytest.raises(InputError, match="asks 'Name'"):
        input("Name: ")
    with pytest.raises(InputError, match="asks 'Secret'"):
        getpass._raw_input("Secret: ")  # type: ignore[attr-defined]
    output.release()
    assert (builtins.input, getpass._raw_input, sys.meta_path) == originals  # type: ignore[attr-defined]


def test_stdin_of_a_test_answers(app: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Ada\n"))
    output = CommandOutput(read_invocation(app, ["ask", "--json"]))
    output.guard_prompts()
    assert input() == "Ada"
    output.release()


@pytest.mark.parametrize(("command", "question"), [("late", "Secret"), ("line", "Name")])
def test_app_that_has_not_loaded_getpass(tmp_path: Path, command: str, question: str) -> None:
    """The functions are replaced if the command imports getpass when it runs."""
    path = tmp_path / "asking.py"
    path.write_text(ASKING_APP)
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, str(path), command, "--json"],
            stdin=reading,
            capture_output=True,
            env=environment(),
            start_new_session=True,
            timeout=PROCESS_TIMEOUT,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 2
    assert f"asks '{question}'" in parse_json(done.stdout)["error"]["message"]
