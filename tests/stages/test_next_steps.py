"""Handoffs, and results that say what to run next."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import DefinitionError, Next, Tooli
from tooli.testing import invoke


def make() -> Tooli:
    app, users = Tooli("shop"), Tooli("users")

    @app.command(handoffs=["users.list", {"command": "two", "when": "x is small"}])
    def one(x: int) -> Next[dict[str, int]]:
        found = Next({"x": x})
        if x > 1:
            found.then("two", {"y": x, "n": "-a"}, why="there is more").then("users list")
        return found

    @app.command()
    def two(y: int, n: str = "q") -> int:
        return y

    @users.command("list", handoffs=["make", "two"])
    def list_users() -> list[str]:
        return []

    @users.command()
    def make(n: int = 1) -> int:
        return n

    @app.command()
    async def lost() -> Next[str]:
        return Next("done", "nowhere")

    @app.command()
    def undeclared(x: int = 1):
        return Next(x, "two", {"y": 2})

    app.add_typer(users, name="users")
    return app


@pytest.fixture
def app() -> Tooli:
    return make()


MORE = [
    {"argv": ["shop", "two", "3", "--n=-a"], "why": "there is more"},
    {"argv": ["shop", "users", "list"]},
]


def test_a_result_that_leads_on(app: Tooli) -> None:
    done = invoke(app, "one", "3", "--json")
    assert done.result == {"x": 3}
    assert done.envelope["meta"]["next"] == MORE


def test_the_same_from_python(app: Tooli) -> None:
    done = app.call("one", x=3)
    assert done.unwrap() == {"x": 3}
    assert done.meta["next"] == MORE


def test_a_result_that_does_not(app: Tooli) -> None:
    assert "next" not in invoke(app, "one", "1", "--json").envelope["meta"]


def test_the_result_decides_the_schema(app: Tooli) -> None:
    schema = invoke(app, "one", "--schema")
    assert '"output_schema":{"type":"object"' in schema.stdout


def test_without_an_annotation(app: Tooli) -> None:
    done = invoke(app, "undeclared", "--json")
    assert (done.result, done.envelope["meta"]["next"]) == (1, [{"argv": ["shop", "two", "2"]}])


def test_a_step_to_nowhere_is_a_warning(app: Tooli) -> None:
    meta = invoke(app, "lost", "--json").envelope["meta"]
    assert "next" not in meta
    assert meta["warnings"] == ["The result suggests 'nowhere', and there is no such command."]


def test_handoffs_where_they_are_asked_for(app: Tooli) -> None:
    assert "next" not in invoke(app, "users", "list", "--json").envelope["meta"]
    done = invoke(app, "users", "list", "--json", "--response-format", "detailed")
    assert done.envelope["meta"]["next"] == [
        {"argv": ["shop", "users", "make"]},
        {"argv": ["shop", "two", "--help-agent"]},
    ]


def test_what_the_result_says_wins_over_handoffs(app: Tooli) -> None:
    done = invoke(app, "one", "3", "--json", "--response-format", "detailed")
    assert done.envelope["meta"]["next"] == MORE


def test_every_suggestion_is_a_line_that_parses(app: Tooli) -> None:
    for step in MORE:
        assert invoke(app, *step["argv"][1:], "--json").exit_code == 0


def test_a_failure_leads_nowhere(app: Tooli) -> None:
    done = invoke(app, "one", "x", "--json", "--response-format", "detailed")
    assert "next" not in done.envelope["meta"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (["nowhere"], "handoffs= names 'nowhere', and the app has no such command"),
        ([{"command": "other", "whn": "x"}], "no 'whn'; did you mean 'when'?"),
        ([{"when": "x"}], "a handoff is the name of a command"),
        ([3], "a handoff is the name of a command"),
        ("other", "handoffs= is a list"),
    ],
)
def test_handoffs_that_are_wrong(said: Any, message: str) -> None:
    app = Tooli("t")

    @app.command(handoffs=said)
    def find() -> int:
        return 1

    @app.command()
    def other() -> int:
        return 1

    with pytest.raises(DefinitionError, match=message.replace("?", r"\?")):
        _ = app.catalog


def test_handoffs_by_any_spelling() -> None:
    app = Tooli("t")

    @app.command(handoffs=["do_it", "do-it"])
    def find() -> int:
        return 1

    @app.command()
    def do_it() -> int:
        return 1

    assert [h.command for h in app.catalog["find"].guidance.handoffs] == ["do-it", "do-it"]
