"""Tracebacks are those of Typer: they have no frames of tooli, and lose none of Typer's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.app_process import environment

from tooli.cli.tracebacks import skip_own_frames, without_own_frames

APP = """
import typer
from {module} import {name}

app = {name}(pretty_exceptions_enable={enable}, pretty_exceptions_short={short})


def check(value: bool):
    if value:
        raise KeyError("in a callback")
    return value


@app.command()
def fail(times: int = 1):
    raise KeyError("in a command")


@app.command()
def chain():
    try:
        fail()
    except KeyError as error:
        raise ValueError("in a command") from error


@app.command()
def foreign():
    import click  # not part of Typer: Typer does not handle its exceptions

    raise click.Abort("in a command")


if {has_callback}:

    @app.callback()
    def main(check: bool = typer.Option(False, callback=check)): ...


if __name__ == "__main__":
    app()
"""


@pytest.mark.parametrize(
    ("line", "has_callback"),
    [
        ("fail --times 2", False),
        ("chain", False),
        ("foreign", False),
        ("fail", True),
        ("--check fail", True),
    ],
)
@pytest.mark.parametrize(
    ("enable", "short", "variables"),
    [
        (True, True, {}),
        (True, False, {}),
        (True, True, {"TYPER_USE_RICH": "0"}),
        (True, False, {"TYPER_USE_RICH": "0"}),
        (True, True, {"TYPER_STANDARD_TRACEBACK": "1"}),
        (False, True, {}),
    ],
)
def test_traceback_of_a_program_is_that_of_typer(
    tmp_path: Path,
    line: str,
    has_callback: bool,
    enable: bool,
    short: bool,
    variables: dict[str, str],
) -> None:
    """Every way in which Typer shows an exception shows the same frames with tooli."""
    program = tmp_path / "app.py"
    shown: list[str] = []
    for module, name in (("typer", "Typer"), ("tooli", "Tooli")):
        text = APP.format(
            module=module, name=name, enable=enable, short=short, has_callback=has_callback
        )
        program.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(program), *line.split()],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "COLUMNS": "300", "TOOLI_OUTPUT": "text", **variables},
        )
        assert done.returncode == 1
        shown.append(done.stderr.replace(name, "Typer"))
    assert "in a c" in shown[0]
    assert shown[0] == shown[1]


def test_traceback_of_a_line_that_typer_cannot_parse(tmp_path: Path) -> None:
    """Typer's parser cannot read the arguments that `--input` passes."""
    program = tmp_path / "app.py"
    text = APP.format(module="tooli", name="Tooli", enable=False, short=False, has_callback=False)
    program.write_text(text.replace("times: int = 1", "times: int"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program), "fail", "--input", '{"times": 2}'],
        capture_output=True,
        text=True,
        env=environment(PATH="/usr/bin:/bin", TOOLI_OUTPUT="text"),
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("KeyError: 'in a command'\n")


@pytest.mark.parametrize("has_guards", [True, False])
def test_guards_of_rich_remain_if_rich_shows_the_traceback(has_guards: bool) -> None:
    own_code = compile(
        "def guarded(author):\n    _rich_traceback_guard = True\n    author()\n",
        sys.modules[without_own_frames.__module__].__file__ or "",
        "exec",
    )
    names: dict[str, object] = {}
    exec(own_code, names)
    guarded = names["guarded"]
    assert callable(guarded)

    def author() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError) as caught:
        guarded(author)
    found = without_own_frames(caught.value.__traceback__, has_guards=has_guards)
    shown: list[str] = []
    while found is not None:
        shown.append(found.tb_frame.f_code.co_name)
        found = found.tb_next
    assert shown[1:] == (["guarded", "author"] if has_guards else ["author"])


def test_exception_without_frames_of_an_author_is_unchanged() -> None:
    error = KeyError("x")
    assert skip_own_frames(error) is error
    assert error.__traceback__ is None
