"""Who answers the questions of code, in processes that run many calls."""

from __future__ import annotations

import builtins
import io
import sys

import pytest
import typer
from tests.pipeline.test_prompt_functions import ask_secret, make_call

from tooli.core.current_call import current_call
from tooli.errors import InputError
from tooli.pipeline import question_routing
from tooli.pipeline.question_routing import route_questions


@pytest.fixture(autouse=True)
def _no_other_route(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Start without the route of another test, whose server runs until the process ends."""
    monkeypatch.setattr(question_routing, "_routes", [])
    monkeypatch.setattr(question_routing, "_users", 0)


def test_functions_work_as_always_outside_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.input
    monkeypatch.setattr("typer._click.termui._getchar", None)
    end, end_too = route_questions(), route_questions()
    monkeypatch.setattr(sys, "stdin", io.StringIO("Ada\nBo\nx"))
    assert input() == "Ada"
    token = current_call.set(make_call("python"))
    assert input() == "Bo"  # the pipe of the process answers
    current_call.reset(token)
    assert typer._click.termui._getchar(False) == "x"  # type: ignore[attr-defined]
    end()
    end()
    assert builtins.input is not original
    end_too()
    assert builtins.input is original


@pytest.mark.parametrize(("surface", "options"), [("mcp", {}), ("python", {"no_input": True})])
def test_question_of_a_call_that_nobody_answers(surface: str, options: dict[str, bool]) -> None:
    end = route_questions()
    token = current_call.set(make_call(surface, **options))
    try:
        with pytest.raises(InputError, match="asks 'Name'") as caught:
            input("Name: ")
    finally:
        current_call.reset(token)
        end()
    assert caught.value.code == "E1038"


def test_getpass_that_is_imported_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "getpass", raising=False)
    end = route_questions()
    token = current_call.set(make_call("mcp"))
    try:
        with pytest.raises(InputError, match="asks 'Secret'"):
            ask_secret()
    finally:
        current_call.reset(token)
        end()
