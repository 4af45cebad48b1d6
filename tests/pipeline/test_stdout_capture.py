"""Capture of printed text, for each call in a process that runs many calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tooli import Tooli
from tooli.core.call import Call, Caller, Failed, Ok
from tooli.errors import InternalError
from tooli.pipeline import stdout_capture
from tooli.pipeline.stdout_capture import (
    StdoutCapture,
    StdoutRouter,
    add_printed_text,
    route_stdout,
)


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
