"""Capture of printed text, for each call in a process that runs many calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import pytest
import typer

from tooli import Tooli
from tooli.core.call import PYTHON_CALLER, Call, Caller, Failed, Ok
from tooli.errors import CommandExited, InternalError
from tooli.pipeline import stdout_capture
from tooli.pipeline.stdout_capture import (
    MAX_ERROR_CHARS,
    StdoutCapture,
    StdoutRouter,
    add_printed_text,
    attach_output,
    route_stdout,
)
from tooli.testing import Case
from tooli.testing.app_interfaces import interfaces


@contextmanager
def routed() -> Iterator[None]:
    """Route stdout inside a test. A fixture cannot: pytest replaces stdout after fixtures run."""
    restore = route_stdout()
    try:
        yield
    finally:
        restore()


def call() -> Call:
    app = Tooli("app")
    app.command("tool")(lambda: None)
    (tool,) = app.catalog
    return Call(tool, {}, Caller("mcp"), [])


def test_text_is_captured_for_the_call_that_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    with routed():
        with StdoutCapture() as outer:
            print("a")
            with StdoutCapture() as inner:
                sys.stdout.buffer.write(b"b\xff\n")
            print("c", flush=True)
        print("outside")
        assert not sys.stdout.isatty()
    assert outer.text() == "a\nc"
    assert inner.text() == "b\ufffd"
    assert capsys.readouterr().err == "outside\n"


def test_second_router_is_not_installed() -> None:
    before = sys.stdout
    restore = route_stdout()
    assert isinstance(sys.stdout, StdoutRouter)
    route_stdout()()
    assert isinstance(sys.stdout, StdoutRouter)
    restore()
    assert sys.stdout is before


def test_stdout_is_captured_without_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    with routed():
        monkeypatch.setattr(sys, "stderr", None)
        assert sys.stdout.write("x") == 1
        assert add_printed_text(Ok(1), "x", call()) == Ok(1)


def test_text_beyond_the_limit_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdout_capture, "MAX_PRINTED_CHARS", 3)
    printed = StdoutCapture()
    for text in ("ab", "cd", "ef"):
        printed.write(text)
    printing_call = call()
    assert add_printed_text(Ok(None), printed.text(), printing_call) == Ok("abc")
    assert printing_call.warnings == ["the printed text was cut after 3 characters"]


def test_printed_text_is_added_to_the_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    assert add_printed_text(Ok(None), "printed text", call()) == Ok("printed text")
    assert add_printed_text(Ok(7), "extra", call()) == Ok(7)
    assert capsys.readouterr().err == "extra\n"
    error = InternalError("no", details={"a": 1})
    add_printed_text(Failed(error), "printed text", call())
    assert error.details == {"a": 1, "printed": "printed text"}


# ------------------------------------------------------------------ stderr


def failing_app() -> Tooli:
    app = Tooli("failing")

    @app.command()
    def number() -> int:
        typer.echo("Error: no such item", err=True)
        raise typer.Exit(1)

    @app.command()
    def text():
        print("some text")
        typer.echo("┌─ Error ─┐\n│ no such item │\n└─────────┘", err=True)
        raise typer.Abort

    @app.command()
    def message() -> int:
        typer.echo("a note", err=True)
        raise click.ClickException("it is broken")

    @app.command()
    def crash() -> int:
        typer.echo("a note", err=True)
        raise ValueError("wrong")

    return app


def send(tool: str, interface: str) -> dict[str, Any]:
    app = failing_app()
    found = next(each for each in interfaces(app) if each.name == interface)
    return found.send_case(Case(tool)).envelope["error"]


@pytest.mark.parametrize("interface", ["cli", "http", "mcp", "mcp-stateless"])
def test_stderr_of_a_command_that_exits_is_in_the_error(interface: str) -> None:
    error = send("number", interface)
    assert error["message"] == "The command ended with exit code 1: Error: no such item"
    assert error["details"] == {"stderr": "Error: no such item"}
    error = send("text", interface)
    assert error["message"] == "Aborted: │ no such item │"
    assert error["details"]["printed"] == "some text"
    error = send("message", interface)
    assert (error["message"], error["details"]) == ("it is broken", {"stderr": "a note"})
    assert "details" not in send("crash", interface)
    assert "write" not in vars(sys.stderr)


def test_stderr_of_a_worker_process_is_in_the_error() -> None:
    app = failing_app()
    found = next(each for each in interfaces(app) if each.name == "http")
    error = found.send_case(Case("number", {}, {"timeout": 60})).envelope["error"]
    assert error["details"] == {"stderr": "Error: no such item"}


def test_only_the_end_of_a_long_text_is_kept() -> None:
    with StdoutCapture() as printed:
        for number in range(3000):
            printed.write_error(f"line {number}\n")
    failed = Failed(CommandExited("The command ended with exit code 1.", exit_code=1))
    call = Call(failing_app().find("number"), {}, PYTHON_CALLER, [])  # type: ignore[arg-type]
    outcome = attach_output(failed, "", printed.stderr_texts, call)
    assert isinstance(outcome, Failed)
    assert outcome.error.details is not None
    text = outcome.error.details["stderr"]
    assert len(text) <= MAX_ERROR_CHARS
    assert text.endswith("line 2999")


def test_nested_captures_keep_stderr_in_the_outer_one() -> None:
    restore = route_stdout()
    try:
        with StdoutCapture() as outer, StdoutCapture() as inner:
            print("x", file=sys.stderr)
    finally:
        restore()
    assert (list(inner.stderr_texts), "".join(outer.stderr_texts)) == ([], "x\n")


def test_copied_text_is_printed_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    stop = stdout_capture.tee_stdout()
    sys.stdout.write("a")
    sys.stdout.writelines(["b", "c"])
    assert stop() == "abc"
    print("d")
    assert capsys.readouterr().out == "abcd\n"


def test_text_that_a_call_does_not_keep_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Callbacks print within the capture of a call whose result is not its printed text."""
    outer = stdout_capture.StdoutCapture(keeps_stdout=False)
    with outer, stdout_capture.CallbackOutput() as output:
        output.write("a")
        output.write_of_child("b")
        assert output.is_passed_on
    assert output.raw_text() == "ab"
    assert capsys.readouterr().err == "ab"
