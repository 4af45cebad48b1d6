"""Questions to the client of a call, and a Peer that no surface overrides."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.core.peer import Elicit, InputRequired, Peer, Question, Roots, Sample

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
MESSAGE = {"role": "user", "content": {"type": "text", "text": "Hello"}}


@pytest.mark.parametrize(
    ("question", "method", "params"),
    [
        (
            Elicit("Who?", SCHEMA),
            "elicitation/create",
            {"message": "Who?", "requestedSchema": SCHEMA},
        ),
        (
            Sample((MESSAGE,)),
            "sampling/createMessage",
            {"messages": [MESSAGE], "maxTokens": 1000},
        ),
        (
            Sample([MESSAGE], 5, "Be brief."),
            "sampling/createMessage",
            {"messages": [MESSAGE], "maxTokens": 5, "systemPrompt": "Be brief."},
        ),
        (Roots(), "roots/list", {}),
    ],
)
def test_questions_are_mcp_requests(question: Question, method: str, params: Any) -> None:
    assert (question.method, question.params()) == (method, params)


def test_empty_system_prompt_is_sent() -> None:
    assert Sample([MESSAGE], system="").params()["systemPrompt"] == ""


def test_changed_params_do_not_change_the_schema() -> None:
    Elicit("Who?", SCHEMA).params()["requestedSchema"]["title"] = "changed"
    assert "title" not in SCHEMA


def test_question_subclass_must_implement_params() -> None:
    with pytest.raises(NotImplementedError):
        Question().params()


def test_peer_discards_progress_and_logs() -> None:
    peer = Peer()
    peer.progress(1, None, None)
    peer.log("info", {"a": 1})
    peer.disconnect_client()
    assert not peer.cancelled


async def test_peer_cannot_answer() -> None:
    peer = Peer()
    for question in (Elicit, Sample, Roots):
        assert not peer.supports(question.method)
    with pytest.raises(NotImplementedError):
        peer.ask({"roots": Roots()})
    with pytest.raises(NotImplementedError):
        await peer.ask_async({"roots": Roots()})


async def test_ask_async_uses_ask() -> None:
    class Client(Peer):
        def ask(self, questions):
            return {key: question.method for key, question in questions.items()}

    assert await Client().ask_async({"a": Roots()}) == {"a": "roots/list"}


def test_input_required_is_not_caught_by_except_exception() -> None:
    questions = {"who": Elicit("Who?", SCHEMA), "roots": Roots()}
    with pytest.raises(InputRequired, match="who, roots") as caught:
        try:
            raise InputRequired(questions)
        except Exception:
            pytest.fail("a tool can catch it")
    assert caught.value.questions is questions
