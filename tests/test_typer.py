"""tooli.typer: the names of the module `typer`, which is imported only if it is needed."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
import typer as real_typer

from tooli import Argument, Option, Tooli, typer


def test_typer_option_and_argument_are_those_of_tooli() -> None:
    assert typer.Typer is Tooli
    assert (typer.Option, typer.Argument) == (Option, Argument)


@pytest.mark.parametrize("name", ["Exit", "Context", "prompt", "style", "colors", "BadParameter"])
def test_other_names_are_those_of_typer(name: str) -> None:
    assert getattr(typer, name) is getattr(real_typer, name)


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = typer.no_such_name


def test_dir_contains_every_name_of_typer() -> None:
    names = dir(typer)
    assert set(dir(real_typer)) <= set(names)
    assert set(typer.__all__) <= set(names)
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("arguments", "out", "err"),
    [
        ({"message": "héllo"}, "héllo\n", ""),
        ({"message": "a", "nl": False}, "a", ""),
        ({"message": "a", "err": True}, "", "a\n"),
        ({"message": ""}, "\n", ""),
        ({}, "\n", ""),
        ({"message": 3}, "3\n", ""),
        ({"message": b"bytes"}, "bytes\n", ""),
        ({"message": "\x1b[31mred\x1b[0m"}, "red\n", ""),
        ({"message": "\x1b[31mred\x1b[0m", "color": True}, "\x1b[31mred\x1b[0m\n", ""),
        ({"message": "a", "color": True, "err": True, "nl": False}, "", "a"),
    ],
    ids=repr,
)
def test_echo_writes_the_same_as_typer(
    arguments: dict[str, object], out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    real_typer.echo(**arguments)
    assert tuple(capsys.readouterr()) == (out, err)
    typer.echo(**arguments)
    assert tuple(capsys.readouterr()) == (out, err)


def test_echo_writes_to_a_given_file(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    typer.echo("a", file=file)
    typer.echo("b", file=file, err=True)
    typer.echo(3, file=file)
    assert file.getvalue() == "a\nb\n3\n"
    assert tuple(capsys.readouterr()) == ("", "")


def test_typer_is_not_imported_for_the_names_of_tooli() -> None:
    code = (
        "import sys\n"
        "from tooli import typer\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def run(count: int = typer.Option(1, min=1)) -> None: ...\n"
        "typer.echo('text')\n"
        "print('typer' in sys.modules)\n"
        "typer.Exit\n"
        "print('typer' in sys.modules, isinstance(app, sys.modules['typer'].Typer))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n") == ["text", "False", "True True", ""], done.stderr
