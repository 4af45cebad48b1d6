"""Next steps, handoffs and output schemas in `meta`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stages.stage_calls import Files

from tooli import DefinitionError, Next, Tooli
from tooli.testing import invoke


def make_app() -> Tooli:
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
    async def unknown_step() -> Next[str]:
        return Next("done", "nowhere")

    @app.command()
    def undeclared(x: int = 1):
        return Next(x, "two", {"y": 2})

    app.add_typer(users, name="users")
    return app


@pytest.fixture
def app() -> Tooli:
    return make_app()


STEPS = [
    {"argv": ["shop", "two", "3", "--n=-a"], "why": "there is more"},
    {"argv": ["shop", "users", "list"]},
]


def test_command_line_result_has_next_steps_in_meta(app: Tooli) -> None:
    done = invoke(app, "one", "3", "--json")
    assert done.result == {"x": 3}
    assert done.envelope["meta"]["next"] == STEPS


def test_python_result_has_next_steps_in_meta(app: Tooli) -> None:
    done = app.call("one", x=3)
    assert done.unwrap() == {"x": 3}
    assert done.meta["next"] == [
        {"command": "two", "arguments": {"y": 3, "n": "-a"}, "why": "there is more"},
        {"command": "users.list", "arguments": {}},
    ]


def test_result_without_next_steps_has_no_next_field(app: Tooli) -> None:
    assert "next" not in invoke(app, "one", "1", "--json").envelope["meta"]


def test_schema_of_a_next_result_describes_the_inner_result(app: Tooli) -> None:
    schema = invoke(app, "one", "--schema")
    assert '"output_schema":{"type":"object"' in schema.stdout


def test_next_steps_need_no_return_annotation(app: Tooli) -> None:
    done = invoke(app, "undeclared", "--json")
    assert (done.result, done.envelope["meta"]["next"]) == (1, [{"argv": ["shop", "two", "2"]}])


def test_step_with_an_unknown_command_is_a_warning(app: Tooli) -> None:
    meta = invoke(app, "unknown-step", "--json").envelope["meta"]
    assert "next" not in meta
    assert meta["warnings"] == ["The result suggests 'nowhere', but there is no such command."]


def test_handoffs_are_added_with_detailed(app: Tooli) -> None:
    assert "next" not in invoke(app, "users", "list", "--json").envelope["meta"]
    done = invoke(app, "users", "list", "--json", "--response-format", "detailed")
    assert done.envelope["meta"]["next"] == [
        {"argv": ["shop", "users", "make"]},
        {"argv": ["shop", "two", "--help-agent"]},
    ]


def test_steps_of_the_result_replace_handoffs(app: Tooli) -> None:
    done = invoke(app, "one", "3", "--json", "--response-format", "detailed")
    assert done.envelope["meta"]["next"] == STEPS


def test_every_suggested_command_runs(app: Tooli) -> None:
    for step in STEPS:
        assert invoke(app, *step["argv"][1:], "--json").exit_code == 0


def test_failure_has_no_next_steps(app: Tooli) -> None:
    done = invoke(app, "one", "x", "--json", "--response-format", "detailed")
    assert "next" not in done.envelope["meta"]


@pytest.mark.parametrize(
    ("handoffs", "message"),
    [
        ([{"command": "other", "whn": "x"}], "no 'whn'; did you mean 'when'?"),
        ([{"when": "x"}], "a handoff must be the name of a command"),
        ([3], "a handoff must be the name of a command"),
        ([{"command": "other", "when": 3}], "the 'when' of a handoff must be a string"),
        ("other", "must be a list"),
    ],
)
def test_invalid_handoffs_are_rejected_at_registration(handoffs: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message.replace("?", r"\?")):
        Tooli("t").command(handoffs=handoffs)


def test_a_handoff_to_an_unknown_command_is_reported_for_its_command_only() -> None:
    app = Tooli("t")

    @app.command(handoffs=["othr", "other"])
    def find() -> int:
        return 1

    @app.command()
    def other() -> int:
        return 1

    catalog = app.catalog
    assert list(catalog.problems) == ["find"]
    message = str(catalog.problems["find"])
    assert "handoffs= names 'othr', which is not a command of the app" in message
    assert "did you mean 'other'?" in message
    line = find.__code__.co_firstlineno
    assert message.endswith(f"test_result_meta.py:{line})")
    assert [handoff.command for handoff in catalog["find"].guidance.handoffs] == ["other"]
    assert app.call("find").result == 1
    assert app.call("find").meta["warnings"] == [catalog.problems["find"].message]
    assert "warnings" not in app.call("other").meta


def test_handoffs_accept_underscores_and_hyphens() -> None:
    app = Tooli("t")

    @app.command(handoffs=["do_it", "do-it"])
    def find() -> int:
        return 1

    @app.command()
    def do_it() -> int:
        return 1

    assert [h.command for h in app.catalog["find"].guidance.handoffs] == ["do-it", "do-it"]


class TestOutputSchema:
    def test_detailed_adds_the_output_schema(self) -> None:
        def tool() -> list[int]:
            return [1]

        result = Files().add("list", tool).app.options(detailed=True).call("list")
        assert result.meta["output_schema"] == {"type": "array", "items": {"type": "integer"}}
        assert result.result == [1]

    def test_no_schema_without_an_annotation(self) -> None:
        result = Files().add("list").app.options(detailed=True).call("list")
        assert "output_schema" not in result.meta

    def test_no_schema_without_detailed(self) -> None:
        def tool() -> int:
            return 1

        assert "output_schema" not in Files().add("list", tool).app.call("list").meta
