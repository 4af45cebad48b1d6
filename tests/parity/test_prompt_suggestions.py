"""A suggested call never asks the question that the call could not ask."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
import typer

from tooli import Tooli
from tooli.testing import Case, assert_parity, interfaces, invoke


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def init(
        name: Annotated[str, typer.Option(prompt=True)] = "demo",
        size: Annotated[int, typer.Option(prompt=True)] = 3,
    ) -> str:
        return f"{name} {size}"

    @app.command()
    def clear(really: Annotated[bool, typer.Option(prompt="Really?")] = False) -> bool:
        return really

    @app.command()
    def show(everything: Annotated[bool, typer.Option("--all", prompt=True)] = False) -> bool:
        return everything

    return app


def suggestion_of(*argv: str) -> dict[str, Any]:
    error = invoke(make_app(), *argv).error
    assert error is not None
    return error["suggestion"]


@pytest.mark.parametrize(
    ("command", "flags", "fix"),
    [("clear", ["--no-really"], "--really or --no-really"), ("show", ["--all"], "--all")],
)
def test_flag_that_nobody_gives_is_suggested_without_a_value(
    command: str, flags: list[str], fix: str
) -> None:
    suggestion = suggestion_of(command, "--json")
    assert suggestion["argv"] == ["shop", command, *flags, "--json"]
    assert suggestion["fix"] == f"Give {fix}."
    assert suggestion["applicability"] == "maybe_incorrect"
    assert invoke(make_app(), *suggestion["argv"][1:]).exit_code == 0


def test_answer_that_equals_the_default_is_kept() -> None:
    suggestion = suggestion_of("init", "--name", "demo", "--size", "x", "--json")
    assert suggestion["argv"] == ["shop", "init", "--name", "demo", "--size", "<size>", "--json"]


@pytest.mark.parametrize("prompt_required", [True, False])
def test_default_of_a_question_is_never_taken_without_an_answer(prompt_required: bool) -> None:
    app = Tooli("shop")

    question: Any = typer.Option("demo", prompt="Your name", prompt_required=prompt_required)

    @app.command()
    def init(
        name: str = question,
        size: Annotated[int, typer.Option(prompt="How many?")] = 3,
    ) -> str:
        return f"{name} {size}"

    required = ["name", "size"] if prompt_required else ["size"]
    complete = assert_parity(app, Case("init", {"name": "Ada", "size": 2}))
    assert complete["result"] == "Ada 2"
    partial = assert_parity(app, Case("init", {"size": 2}))
    assert partial["ok"] is not prompt_required
    missing = assert_parity(app, Case("init"))["error"]
    assert (missing["code"], missing["field"]) == ("E1002", required[0])
    schema = json.loads(invoke(app, "init", "--schema").stdout)["input_schema"]
    assert schema["required"] == required
    assert ("default" in schema["properties"]["name"]) is not prompt_required
    shown = "--name=<str>" if prompt_required else "[--name=demo:str]"
    assert f"{shown} --size=<int>" in invoke(app, "init", "--help-agent").stdout


def test_flag_of_a_question_is_shown_as_required() -> None:
    assert "clear --really|--no-really" in invoke(make_app(), "clear", "--help-agent").stdout
    assert "show --all" in invoke(make_app(), "show", "--help-agent").stdout


@pytest.mark.parametrize(
    ("command", "name", "value"), [("clear", "really", False), ("show", "everything", True)]
)
def test_missing_flag_is_suggested_alike(command: str, name: str, value: bool) -> None:
    """Every interface suggests what a command line can express."""
    for interface in interfaces(make_app()):
        suggestion = interface.send_case(Case(command)).envelope["error"]["suggestion"]
        assert suggestion["applicability"] == "maybe_incorrect"
        if "arguments" in suggestion:
            assert suggestion["arguments"] == {name: value}


class TestCallback:
    """Options of a callback that have a prompt."""

    @pytest.fixture
    def app(self) -> Tooli:
        app = Tooli("shop")

        @app.callback()
        def main(
            token: Annotated[str, typer.Option(prompt=True, envvar="SHOP_TOKEN")] = "default",
            force: Annotated[bool, typer.Option(prompt="Force?")] = True,
        ) -> None:
            print(token)

        @app.command()
        def show(count: int = 1) -> int:
            return count

        return app

    def test_default_is_not_taken(self, app: Tooli) -> None:
        for interface in interfaces(app):
            error = interface.send_case(Case("show", {"force": True})).envelope["error"]
            assert error["code"] == "E1002", interface.name
            assert "token" in error["message"]

    def test_variable_gives_the_value(self, app: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_TOKEN", "x")
        for interface in interfaces(app):
            assert interface.send_case(Case("show", {"force": True})).envelope["ok"], interface.name

    def test_suggested_line_answers(self, app: Tooli) -> None:
        argv = ["--token", "default", "--force", "show", "--count", "x", "--json"]
        error = invoke(app, *argv).error
        assert error is not None
        assert error["suggestion"]["argv"][1:6] == [
            "--token",
            "default",
            "--force",
            "show",
            "--count",
        ]
