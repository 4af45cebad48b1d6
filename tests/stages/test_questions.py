"""The options `yes` and `no_input` of calls from Python."""

from __future__ import annotations

import asyncio

import pytest
import typer

from tooli import Tooli


@pytest.fixture
def app() -> Tooli:
    app = Tooli("app")

    @app.command()
    def remove() -> bool:
        return typer.confirm("Sure?")

    @app.command()
    def name() -> str:
        return input("Name: ")

    return app


def test_yes_answers_confirmations(app: Tooli) -> None:
    assert app.call("remove", yes=True).unwrap() is True
    assert asyncio.run(app.acall("remove", yes=True)).unwrap() is True


def test_no_input_refuses_questions(app: Tooli) -> None:
    for command, question in (("remove", "Sure?"), ("name", "Name")):
        error = app.call(command, no_input=True).error
        assert error is not None
        assert error.code == "E1038"
        assert repr(question) in error.message
