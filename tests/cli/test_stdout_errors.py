"""Failed writes to stdout."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from tests.cli.test_open_files import run_python

from tooli import Tooli
from tooli.cli import CommandOutput, read_invocation
from tooli.cli.process import StdoutClosed
from tooli.cli.stdout_errors import StdoutErrorScope


@pytest.fixture
def output(shop: Tooli) -> CommandOutput:
    return CommandOutput(read_invocation(shop, ["price", "x", "--text"], "shop", False))


@pytest.mark.parametrize("failure", [BrokenPipeError(), SystemExit(1)])
def test_closed_pipe_ends_the_run_silently(
    output: CommandOutput,
    failure: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tooli.cli.stdout_errors.redirect_to_devnull", lambda _: None)
    with pytest.raises(StdoutClosed), StdoutErrorScope(output):
        raise failure
    assert output.exit.code == 0
    assert capsys.readouterr().err == ""


def test_full_disk_is_reported(
    output: CommandOutput, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tooli.cli.stdout_errors.redirect_to_devnull", lambda _: None)
    with pytest.raises(StdoutClosed), StdoutErrorScope(output):
        raise OSError(28, "No space left on device")
    assert output.exit.code == 70
    message = "The result could not be written to stdout: No space left on device\n"
    assert capsys.readouterr().err == message


def test_exceptions_other_than_write_errors_are_raised(output: CommandOutput) -> None:
    with pytest.raises(ValueError, match="other"), StdoutErrorScope(output):
        raise ValueError("other")


def test_missing_stdout_ends_the_run(
    output: CommandOutput, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tooli.cli.stdout_errors.redirect_to_devnull", lambda _: None)
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(StdoutClosed), StdoutErrorScope(output):
        pytest.fail("nothing can be written")
    assert "it is closed" in capsys.readouterr().err


def test_unencodable_text_is_escaped(
    output: CommandOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(data, "ascii", "strict"))
    with StdoutErrorScope(output):
        sys.stdout.write("é \udcff €")
        sys.stdout.flush()
    assert data.getvalue() == b"\\xe9 \xff \\u20ac"


def test_stdout_with_a_reader_is_not_closed() -> None:
    code = "from tooli.cli.stdout_errors import is_stdout_closed; print(is_stdout_closed())"
    assert run_python(code) == "False"


def test_stdout_without_a_reader_is_closed() -> None:
    code = (
        "import os, sys\n"
        "from tooli.cli.stdout_errors import is_stdout_closed\n"
        "sys.stdin.read(1); sys.exit(3 if is_stdout_closed() else 4)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 3
