"""Questions of a server: for an MCP client, for a person at the terminal, or for nobody."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.mcp_client.fakes import AnsweringPeer

from tooli import Tooli
from tooli.core.call import Call, Caller
from tooli.core.peer import Elicit
from tooli.pipeline.context import Context
from tooli.providers.mcp_client import caller_questions
from tooli.providers.mcp_client.caller_questions import (
    answer_question,
    build_question,
    can_answer,
    decline,
    unanswered_error,
)

ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"


def make_context(peer: Any = None) -> Context:
    app = Tooli("app")

    @app.command()
    def run() -> None:
        """Run."""

    tool = app.find("run")
    assert tool is not None
    return Context(Call(tool, {}, Caller("cli"), [], peer=peer))


def form(properties: dict[str, Any], **more: Any) -> Any:
    schema = {"type": "object", "properties": properties, **more}
    return build_question(ELICIT, {"message": "Fill in", "requestedSchema": schema}, "The server")


def test_words_are_cleaned() -> None:
    params = {
        "message": "a\x1b[31mb",
        "requestedSchema": {"properties": {"x": {"title": "\u202ey"}}},
    }
    question = build_question(ELICIT, {**params, "_meta": {"a": 1}}, "The server")
    assert question.params()["message"] == "The server asks: ab"
    assert question.params()["requestedSchema"]["properties"] == {"x": {"title": "y"}}
    assert question.params()["requestedSchema"]["type"] == "object"


@pytest.mark.parametrize("params", [{}, {"message": 7, "requestedSchema": 5}])
def test_malformed_form(params: dict[str, Any]) -> None:
    question = build_question(ELICIT, params, "The server")
    assert question.params()["requestedSchema"] == {"type": "object", "properties": {}}


def test_sampling_keeps_its_parameters() -> None:
    params = {"messages": [{"role": "user"}], "temperature": 1, "tools": [], "_meta": {}}
    question = build_question(SAMPLE, params, "The server")
    assert question.params() == {
        "messages": [{"role": "user"}],
        "maxTokens": 1000,
        "temperature": 1,
    }


def test_who_can_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_questions, "can_ask_human", lambda call: True)
    elicit, sample = form({}), build_question(SAMPLE, {}, "The server")
    assert can_answer(make_context(), elicit) and not can_answer(make_context(), sample)
    assert not can_answer(make_context(AnsweringPeer()), elicit)
    peer = AnsweringPeer({ELICIT: {"action": "cancel"}, SAMPLE: "nonsense"})
    assert can_answer(make_context(peer), sample)
    assert answer_question(make_context(peer), "k", elicit) == {"action": "cancel"}
    assert answer_question(make_context(peer), "k", sample) == {}
    monkeypatch.setattr(caller_questions, "can_ask_human", lambda call: False)
    assert not can_answer(make_context(), elicit)


def test_nobody_can_answer() -> None:
    assert decline(form({})) == {"action": "decline"}
    assert decline(build_question(SAMPLE, {}, "s")) is None
    error = unanswered_error("The server", {SAMPLE, ELICIT}, "a result")
    assert error.code == "E2102" and error.details == {
        "asked": [ELICIT, SAMPLE],
        "result": "a result",
    }


# ------------------------------------------------------------------ the terminal


def fill_in(
    question: Any, lines: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, list[str]]:
    """Answer the prompts with lines; None is Ctrl-D. Returns the answer and the prompts."""
    prompts: list[str] = []
    rest = iter(lines)

    def ask_line(prompt: str) -> str:
        prompts.append(prompt)
        line = next(rest)
        if line is None:
            raise EOFError
        return line

    monkeypatch.setattr(caller_questions, "ask_line", ask_line)
    monkeypatch.setattr(caller_questions, "can_ask_human", lambda call: True)
    answer = answer_question(make_context(), "key", question)
    assert next(rest, "end") == "end"
    return answer, prompts


def test_form_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = form(
        {
            "name": {"type": "string", "title": "Your\nname", "description": "first"},
            "age": {"type": "integer", "minimum": 1, "maximum": 9},
            "ratio": {"type": "number"},
            "sure": {"type": "boolean"},
            "also": {"type": "boolean"},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "size": {"oneOf": [{"const": "S", "title": "small"}, {"const": "L"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "later": {"type": "string", "default": "soon"},
            "empty": {"type": "string"},
            "odd": 7,
        },
        required=["name"],
    )
    lines = [
        "",
        "Ada",
        "x",
        "10",
        "3",
        "1.5",
        "maybe",
        "y",
        "No",
        "green",
        "red",
        "L",
        "a, b",
        "",
        "",
        "",
    ]
    answer, prompts = fill_in(question, [*lines], monkeypatch)
    assert answer == {
        "action": "accept",
        "content": {
            "name": "Ada",
            "age": 3,
            "ratio": 1.5,
            "sure": True,
            "also": False,
            "color": "red",
            "size": "L",
            "many": ["a", "b"],
            "later": "soon",
        },
    }
    assert prompts[0] == "Your name (first): "
    assert "color [red/blue]: " in prompts and "later (default: soon): " in prompts
    shown = capsys.readouterr().err
    assert "The server asks: Fill in" in shown
    for problem in (
        "name is required",
        "age must be a number",
        "between 1 and 9",
        "must be y or n",
    ):
        assert problem in shown
    assert "color must be one of: red, blue" in shown


def test_declined_form(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, _ = fill_in(form({"name": {"type": "string"}}), [None], monkeypatch)
    assert answer == {"action": "decline"}


@pytest.mark.parametrize(("line", "action"), [("y", "accept"), ("", "decline"), ("no", "decline")])
def test_form_without_fields(monkeypatch: pytest.MonkeyPatch, line: str, action: str) -> None:
    assert fill_in(form({}), [line], monkeypatch)[0]["action"] == action


def test_elicit_is_a_question_of_tooli() -> None:
    assert isinstance(form({}), Elicit)
