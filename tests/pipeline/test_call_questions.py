"""Answers of clients to the questions in the code of a command, and the error without one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import Call, Caller, Options
from tooli.core.peer import Peer, Question
from tooli.errors import ApprovalRequired, InputError
from tooli.pipeline.call_questions import find_answer
from tooli.pipeline.prompt_functions import AskedQuestion


class Color(Enum):
    RED = "red"


class FormPeer(Peer):
    """A client whose user answers each form alike."""

    def __init__(self, answer: Mapping[str, Any], *, can_wait: bool = True) -> None:
        self._answer, self._can_wait = answer, can_wait
        self.schemas: list[Any] = []

    def supports(self, method: str) -> bool:
        return method == "elicitation/create"

    def can_wait(self) -> bool:
        return self._can_wait

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, object]:
        self.schemas += [question.params()["requestedSchema"] for question in questions.values()]
        return dict.fromkeys(questions, self._answer)


def accept(value: object, name: str = "answer") -> dict[str, object]:
    return {"action": "accept", "content": {name: value}}


def make_call(
    peer: Peer | None = None, surface: str = "mcp", arguments: Any = None, **options: Any
) -> Call:
    app = Tooli("app")

    @app.command()
    def remove(target: str, reason: str = "", force: bool = False) -> None: ...

    tool = app.find("remove")
    assert tool is not None
    options["given"] = dict(options)
    return Call(
        tool, arguments or {"target": "x"}, Caller(surface), [], Options(**options), peer=peer
    )


UNFORCED = {"target": "x", "force": False}
SURE = AskedQuestion("Sure?", is_confirmation=True, default=False)
NAME = AskedQuestion("Your name", kind=str)


@pytest.mark.parametrize(
    ("question", "reply", "answer", "field"),
    [
        (SURE, accept(True, "yes"), "y", {"type": "boolean", "title": "Yes", "default": False}),
        (SURE.replace(default=None), accept(False, "yes"), "n", {"type": "boolean"}),
        (SURE, {"action": "decline"}, "n", {"type": "boolean"}),
        (NAME, accept("Ada"), "Ada", {"type": "string", "title": "Your name"}),
        (NAME.replace(kind=int, default=3), accept(5), "5", {"type": "integer", "default": 3}),
        (NAME.replace(kind=float), accept(0.5), "0.5", {"type": "number"}),
        (
            NAME.replace(kind=Color, choices=("red",), default=Color.RED),
            accept("red"),
            "red",
            {"type": "string", "enum": ["red"], "default": "red"},
        ),
        (NAME.replace(default="Bo"), accept(""), "", {"default": "Bo"}),
        (AskedQuestion("Text"), accept(None), "", {"type": "string"}),
    ],
)
def test_form(
    question: AskedQuestion, reply: dict[str, Any], answer: str, field: dict[str, Any]
) -> None:
    peer = FormPeer(reply)
    assert find_answer(make_call(peer), question) == answer
    ((shown,),) = [list(schema["properties"].values()) for schema in peer.schemas]
    assert field.items() <= shown.items()


@pytest.mark.parametrize(
    ("question", "reply", "code"),
    [
        (SURE, {"action": "cancel"}, "E2103"),
        (NAME, {"action": "decline"}, "E2103"),
        (NAME, accept(""), "E1038"),
        (NAME.replace(is_repeated=True), accept("x"), "E1003"),
        (NAME.replace(is_hidden=True), accept("x"), "E1038"),
        (AskedQuestion(), accept("x"), "E1038"),
    ],
)
def test_form_without_an_answer(question: AskedQuestion, reply: dict[str, Any], code: str) -> None:
    with pytest.raises((InputError, ApprovalRequired)) as caught:
        find_answer(make_call(FormPeer(reply)), question)
    assert caught.value.code == code


def test_question_on_the_event_loop_that_reads_the_answer() -> None:
    with pytest.raises(InputError, match="nobody can answer"):
        find_answer(make_call(FormPeer(accept("x"), can_wait=False)), NAME)


@pytest.mark.parametrize(
    ("surface", "question", "arguments", "expected", "fix"),
    [
        ("mcp", SURE, None, {"target": "x", "force": True}, "Pass 'force' to answer yes."),
        (
            "python",
            SURE,
            UNFORCED,
            UNFORCED,
            "yes=Tr",
        ),
        (
            "http",
            AskedQuestion("What is the reason?"),
            UNFORCED,
            {"target": "x", "force": False, "reason": "<reason>"},
            "Pass 'reason' if it is the answer.",
        ),
        (
            "mcp",
            AskedQuestion("How many"),
            UNFORCED,
            None,
            "No argument of this command answers it.",
        ),
    ],
)
def test_error_says_how_to_answer(
    surface: str, question: AskedQuestion, arguments: Any, expected: Any, fix: str
) -> None:
    call = make_call(None, surface, arguments, no_input=True)
    with pytest.raises(InputError) as caught:
        find_answer(call, question)
    error = caught.value
    assert (error.code, error.is_retryable) == ("E1038", False)
    assert error.suggestion is not None
    assert fix in error.suggestion.fix
    target: Any = error.suggestion.target
    assert (None if target is None else target.arguments) == expected


def test_yes_and_approvals_answer_yes(capsys: pytest.CaptureFixture[str]) -> None:
    assert find_answer(make_call(yes=True), SURE) == "y"
    shown = SURE.replace(is_shown=True, last_character=" ", writes_to_stderr=True)
    assert find_answer(make_call().replace(approved=True), shown) == "y"
    assert capsys.readouterr().err == " y\n"


def test_python_reads_the_stdin_of_the_process() -> None:
    assert find_answer(make_call(surface="python"), NAME) is None


def ask() -> None:
    raise EOFError("EOF when reading a line")


def test_end_of_stdin() -> None:
    app = Tooli("app")
    app.command()(ask)

    @app.command()
    def load() -> None:
        raise EOFError("Ran out of input")

    error = app.call("ask").error
    assert error is not None
    assert (error.code, error.message) == (
        "E1038",
        "The command asks for input, and nobody can answer.",
    )
    assert app.call("load").error.code == "E5000"  # type: ignore[union-attr]
