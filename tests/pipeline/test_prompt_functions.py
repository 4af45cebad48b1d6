"""What code asks, and who answers in processes that run many calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Literal

import pytest
import typer
from rich.prompt import Confirm, IntPrompt, Prompt

from tooli import Tooli
from tooli.core.call import Call, Caller, Options
from tooli.core.current_call import current_call
from tooli.pipeline.prompt_functions import AskedQuestion, read_question
from tooli.pipeline.question_routing import route_questions


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[AskedQuestion]]:
    """Yield the questions that are asked in a call; their answers are in `ANSWERS`."""
    questions: list[AskedQuestion] = []

    def find_answer(call: Call, question: AskedQuestion) -> str:
        questions.append(question)
        return ANSWERS.pop(0)

    monkeypatch.setattr("tooli.pipeline.call_questions.find_answer", find_answer)
    end = route_questions()
    token = current_call.set(make_call("mcp"))
    yield questions
    current_call.reset(token)
    end()


ANSWERS: list[str] = []


def make_call(surface: str, **options: Any) -> Call:
    app = Tooli("app")

    @app.command()
    def ask() -> None: ...

    tool = app.find("ask")
    assert tool is not None
    return Call(tool, {}, Caller(surface), [], Options(**options))


def ask_secret() -> str:
    import getpass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", getpass.GetPassWarning)
        return getpass.getpass("Secret: ")


@pytest.mark.parametrize(
    ("ask", "answers", "expected"),
    [
        (lambda: input(), ["x"], AskedQuestion()),
        (lambda: input("Name: "), ["x"], AskedQuestion("Name")),
        (ask_secret, ["x"], AskedQuestion("Secret", is_hidden=True)),
        (lambda: typer.prompt("Age", type=int), ["3"], AskedQuestion("Age", kind=int)),
        (
            lambda: typer.prompt("Age", default=3, err=True),
            ["3"],
            AskedQuestion("Age", default=3, kind=int, writes_to_stderr=True),
        ),
        (
            lambda: typer.prompt("Color", type=Color),
            ["red"],
            AskedQuestion("Color", choices=("red", "blue"), kind=Color),
        ),
        (
            lambda: typer.confirm("Sure?"),
            ["y"],
            AskedQuestion("Sure?", is_confirmation=True, default=False),
        ),
        (lambda: Prompt.ask("Which", choices=["a"]), ["a"], AskedQuestion("Which", choices=("a",))),
        (lambda: IntPrompt.ask("Many", default=3), ["1"], AskedQuestion("Many", default=3)),
        (lambda: Confirm.ask("Sure?"), ["y"], AskedQuestion("Sure?", is_confirmation=True)),
    ],
)
def test_what_code_asks(
    asked: list[AskedQuestion],
    ask: Callable[[], object],
    answers: list[str],
    expected: AskedQuestion,
) -> None:
    ANSWERS[:] = answers
    ask()
    (question,) = asked
    names = ("text", "is_hidden", "is_confirmation", "default", "choices", "writes_to_stderr")
    for name in names:
        assert getattr(question, name) == getattr(expected, name), name
    assert expected.kind is None or question.kind is expected.kind
    assert not question.is_repeated


def test_hidden_prompt_of_typer(asked: list[AskedQuestion]) -> None:
    ANSWERS[:] = ["x", "y", "x", "x"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    assert [(q.text, q.is_hidden, q.is_repeated) for q in asked] == [
        ("Password", True, False),
        ("Password", True, False),
        ("Password", True, True),
        ("Password", True, True),
    ]


def test_question_after_an_invalid_answer_is_repeated(asked: list[AskedQuestion]) -> None:
    ANSWERS[:] = ["many", "3", "perhaps", "y", "c", "a"]
    assert typer.prompt("Age", type=int) == 3
    assert typer.confirm("Sure?")
    assert Prompt.ask("Which", choices=["a"]) == "a"
    assert [question.is_repeated for question in asked] == [False, True] * 3


def test_choices_of_other_types() -> None:
    def prompt() -> AskedQuestion:
        return read_question("input", ())

    scope = {"__name__": "click.termui", "read_question": read_question}
    exec("def prompt(text, type):\n    return read_question('input', ())", scope)
    ask: Any = scope["prompt"]
    assert ask("Which", Literal["a", "b"]).choices == ("a", "b")
    assert ask("Which", type("Choice", (), {"choices": ["x"]})).choices == ("x",)
    assert ask("Which", str).choices == ()
    assert prompt() == AskedQuestion()
