"""Tracebacks without frames of tooli."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tooli
from tooli.cli.tracebacks import skip_internal_frames, without_own_frames

APP = """
import typer
from tooli import Tooli

app = Tooli(pretty_exceptions_enable={enable}, pretty_exceptions_short={short})


def check(value: bool):
    if value:
        raise KeyError("in a callback")
    return value


@app.callback()
def main(check: bool = typer.Option(False, callback=check)): ...


@app.command()
def fail():
    raise KeyError("in a command")


if __name__ == "__main__":
    app()
"""


@pytest.mark.parametrize("arguments", [["fail"], ["--check", "fail"]])
@pytest.mark.parametrize(
    ("enable", "short", "variables"),
    [
        (True, True, {}),
        (True, False, {}),
        (False, True, {}),
        (True, True, {"TYPER_STANDARD_TRACEBACK": "1"}),
    ],
)
def test_traceback_of_a_program_has_no_frames_of_tooli(
    tmp_path: Path, arguments: list[str], enable: bool, short: bool, variables: dict[str, str]
) -> None:
    """Every way in which Typer shows an exception leaves our files out."""
    program = tmp_path / "app.py"
    program.write_text(APP.format(enable=enable, short=short), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "300", "TOOLI_OUTPUT": "text", **variables},
    )
    assert done.returncode == 1
    assert "KeyError: 'in a c" in done.stderr
    assert "app.py" in done.stderr
    assert str(Path(tooli.__file__).parent) not in done.stderr


def test_frames_before_the_guard_are_left_out_of_a_short_traceback() -> None:
    def author() -> None:
        raise KeyError("x")

    def guarded() -> None:
        _rich_traceback_guard = True
        author()

    with pytest.raises(KeyError) as caught:
        guarded()
    trace = caught.value.__traceback__
    for is_short, names in ((True, ["author"]), (False, ["guarded", "author"])):
        found = without_own_frames(trace, is_short=is_short)
        shown: list[str] = []
        while found is not None:
            shown.append(found.tb_frame.f_code.co_name)
            found = found.tb_next
        assert shown[-len(names) :] == names
        assert (shown == names) is is_short


def test_exception_without_frames_of_an_author_is_unchanged() -> None:
    error = KeyError("x")
    assert skip_internal_frames(error) is error
    assert error.__traceback__ is None
