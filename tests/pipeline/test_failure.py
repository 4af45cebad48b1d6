"""Conversion of exceptions to errors and outcomes."""

from __future__ import annotations

import errno
from collections import UserDict

import click
import pytest
import typer

from tooli import Tooli
from tooli.core.call import Failed, Ok
from tooli.errors import (
    AuthError,
    CommandExited,
    ConflictError,
    DependencyError,
    InputError,
    InternalError,
    Interrupted,
    NotFoundError,
    TimeoutExceeded,
)
from tooli.pipeline.failure import (
    as_tool_error,
    is_translated_error,
    requested_exit_code,
    to_outcome,
    with_item_count,
)
from tooli.testing import invoke


class EmptyMessage(Exception):
    pass


@pytest.mark.parametrize(
    ("exc", "kind", "code", "exit_code", "message"),
    [
        (SystemExit(3), CommandExited, "E4001", 3, "The command ended with exit code 3."),
        (SystemExit("bye"), CommandExited, "E4001", 1, "bye"),
        (SystemExit(2.5), CommandExited, "E4001", 1, "The command ended with exit code 1."),
        (typer.Exit(4), CommandExited, "E4001", 4, "The command ended with exit code 4."),
        (typer.Abort(), CommandExited, "E4001", 1, "Aborted."),
        (
            click.exceptions.Exit(5),
            CommandExited,
            "E4001",
            5,
            "The command ended with exit code 5.",
        ),
        (click.Abort(), CommandExited, "E4001", 1, "Aborted."),
        (typer.BadParameter("not that"), InputError, "E1003", 2, "Invalid value: not that"),
        (click.UsageError("not so"), InputError, "E1003", 2, "not so"),
        (click.ClickException("broken"), CommandExited, "E4001", 1, "broken"),
        (click.FileError("f", "gone"), CommandExited, "E4001", 1, "Could not open file 'f': gone"),
        (KeyboardInterrupt(), Interrupted, "E4130", 130, "Interrupted."),
        (GeneratorExit(), Interrupted, "E4130", 130, "Stopped by GeneratorExit."),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "a.txt"),
            NotFoundError,
            "E3010",
            10,
            "No such file: a.txt",
        ),
        (FileNotFoundError("gone"), NotFoundError, "E3010", 10, "gone"),
        (FileExistsError(), ConflictError, "E3020", 20, "FileExistsError"),
        (PermissionError("no"), AuthError, "E2030", 30, "no"),
        (TimeoutError("slow"), TimeoutExceeded, "E4050", 50, "slow"),
        (ConnectionRefusedError("shut"), DependencyError, "E4040", 40, "shut"),
        (ValueError("x"), InternalError, "E5000", 70, "ValueError: x"),
        (EmptyMessage(), InternalError, "E5000", 70, "EmptyMessage"),
        (RecursionError("deep"), InternalError, "E5000", 70, "RecursionError: deep"),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, BaseException) else None,
)
def test_exception_becomes_a_tool_error(exc, kind, code, exit_code, message) -> None:
    error = as_tool_error(exc)
    assert type(error) is kind
    assert (error.code, error.exit_code) == (code, exit_code)
    assert error.message == message
    assert error.__cause__ is exc
    assert is_translated_error(error, exc)


def test_abort_caused_by_keyboard_interrupt_is_interrupted() -> None:
    abort = typer.Abort()
    abort.__cause__ = KeyboardInterrupt()
    assert isinstance(as_tool_error(abort), Interrupted)


def test_exception_whose_str_raises_is_named_by_its_class() -> None:
    class BrokenStr(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert as_tool_error(BrokenStr()).message == "BrokenStr"


def test_bad_parameter_sets_the_field() -> None:
    param = click.Option(["--size"])
    assert as_tool_error(click.BadParameter("no", param=param)).field == "size"


def test_tool_error_is_not_converted() -> None:
    error = NotFoundError("gone")
    assert as_tool_error(error) is error
    assert to_outcome(error) == Failed(error)
    assert not is_translated_error(error, error)


@pytest.mark.parametrize("exc", [SystemExit(0), SystemExit(None), SystemExit(), typer.Exit()])
def test_exit_with_code_0_is_ok(exc) -> None:
    assert to_outcome(exc) == Ok(None)


@pytest.mark.parametrize(
    ("exc", "code"), [(SystemExit(7), 7), (typer.Exit(7), 7), (ValueError(), None)]
)
def test_requested_exit_code_is_read_from_the_exception(exc, code) -> None:
    assert requested_exit_code(exc) == code


def test_exit_class_of_another_library_is_an_exception() -> None:
    class Exit(Exception):
        exit_code = 3

    assert requested_exit_code(Exit()) is None
    assert isinstance(as_tool_error(Exit()), InternalError)


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        ("suggestion", 5, "must be a Suggestion, a text or a dict"),
        ("details", 5, "must be a dict"),
        ("details", UserDict(a=1), None),
    ],
)
def test_wrong_fields_of_an_error_are_warnings(name: str, value: object, warning: object) -> None:
    app = Tooli("shop")

    @app.command()
    def fail() -> int:
        error = NotFoundError("gone")
        setattr(error, name, value)
        raise error

    envelope = invoke(app, "fail", mode="json").envelope
    assert envelope["error"]["message"] == "gone"
    if warning is None:
        assert envelope["error"]["details"] == {"a": 1}
    else:
        assert any(str(warning) in text for text in envelope["meta"]["warnings"])


class TestItemCount:
    def test_count_is_added_to_the_details(self) -> None:
        assert with_item_count(ValueError("x"), 3).details == {"items_before_failure": 3}

    def test_item_count_keeps_other_details(self) -> None:
        error = NotFoundError("gone", details={"a": 1})
        assert with_item_count(error, 3).details == {"a": 1, "items_before_failure": 3}

    def test_count_of_zero_does_not_change_the_error(self) -> None:
        error = ValueError("x")
        assert with_item_count(error, 0) is error

    def test_exit_with_code_0_is_not_changed(self) -> None:
        success = typer.Exit(0)
        assert with_item_count(success, 3) is success
