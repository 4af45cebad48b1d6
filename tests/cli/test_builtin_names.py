"""Built-in commands in completions, in the help and in suggestions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer.core

from tooli import Option, Tooli
from tooli.core import BUILTIN_COMMANDS
from tooli.core.options import BUILTIN_GROUPS
from tooli.testing import invoke


def make_app(**settings: object) -> Tooli:
    app = Tooli("shop", **settings)  # pyright: ignore[reportArgumentType]

    @app.command()
    def price(item: str) -> str:
        return item

    @app.command()
    def docs() -> str:
        return "mine"

    return app


def complete(app: Tooli, line: str) -> list[str]:
    words = line.split(" ")
    name = words[0].upper()
    env = {f"_{name}_COMPLETE": "complete_bash", "COMP_WORDS": line}
    done = invoke(app, env={**env, "COMP_CWORD": str(len(words) - 1)})
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("shop ", ["price", "docs"]),
        ("shop gen", ["generate-agents-md", "generate-skill"]),
        ("shop d", ["docs", "detect-context", "doctor"]),
        ("shop mcp ", ["serve", "export", "add", "remove", "list"]),
        ("shop mcp serve --tr", ["--transport"]),
        ("shop docs l", []),
        ("shop tooli docs l", ["llms"]),
        ("shop tooli se", ["search-tools"]),
    ],
)
def test_completion(line: str, found: list[str]) -> None:
    assert complete(make_app(), line) == found


@dataclass
class Settings:
    database: str = "db"
    debug: bool = False
    inner: Annotated[str, Option(hidden=True)] = ""


@pytest.mark.parametrize("is_shown", [True, False])
def test_completion_of_the_settings(is_shown: bool) -> None:
    app = make_app(settings=Settings, framework_help=is_shown)
    assert complete(app, "shop price --da") == ["--database"]
    assert complete(app, "shop --da") == ["--database"]
    assert complete(app, "shop price --deb") == ["--debug"]
    assert complete(app, "shop price --no-de") == ["--no-debug"]
    assert complete(app, "shop price --inn") == []
    assert ("--json" in complete(app, "shop price --")) is is_shown
    assert complete(make_app(), "shop price --da") == []


def test_list_arguments_of_builtins_have_no_default() -> None:
    """Before Typer 0.26, such a default is an error when Typer builds the command."""
    params = [param for tool in make_app().builtins(None).catalog for param in tool.params]
    lists = [param for param in params if param.kind == "argument" and param.is_multiple]
    assert {param.name for param in lists} >= {"command", "paths"}
    assert [param.name for param in lists if not param.required and param.default is not None] == []


def test_completion_after_a_builtin_of_an_app_with_one_command() -> None:
    app = Tooli("only")

    @app.command()
    def find(pattern: str) -> str:
        return pattern

    assert complete(app, "only mcp s") == ["serve"]


def test_no_completion_without_the_help_of_the_framework() -> None:
    app = make_app(framework_help=False)
    assert complete(app, "shop gen") == []
    assert "serve" not in complete(app, "shop mcp ")


def test_no_completion_with_a_custom_group_class() -> None:
    class Commands(typer.core.TyperGroup):
        pass

    assert complete(make_app(cls=Commands), "shop gen") == []


# ------------------------------------------------------------------ help


def test_groups_contain_every_builtin_once() -> None:
    names = [name for names in BUILTIN_GROUPS.values() for name in names]
    assert sorted([*names, "tooli"]) == sorted(BUILTIN_COMMANDS)


@pytest.mark.parametrize("flags", [["--help"], ["--help", "--plain"]])
def test_help_lists_the_builtins_in_one_panel(flags: list[str]) -> None:
    page = invoke(make_app(), *flags, mode="text").stdout
    assert page.count("Built-in commands") == 1
    assert "Serve      mcp, api" in page
    assert "tooli docs" in page  # the app has a command docs
    assert "shop tooli --help" in page
    assert "Built-in commands" not in invoke(make_app(), "price", *flags, mode="text").stdout
    assert "Built-in commands" not in invoke(make_app(), "mcp", *flags, mode="text").stdout
    assert "Built-in commands" not in invoke(make_app(), "tooli", *flags, mode="text").stdout


def test_panel_is_part_of_the_help_of_the_framework() -> None:
    page = invoke(make_app(framework_help=False), "--help", mode="text").stdout
    assert "Built-in commands" not in page


@pytest.mark.parametrize("flags", [["--help"], ["--help", "--plain"]])
def test_only_command_that_prints_has_no_panel(flags: list[str]) -> None:
    returning, printing = Tooli("only"), Tooli("only")

    @returning.command()
    def find(pattern: str) -> str:
        return pattern

    @printing.command()
    def show(pattern: str) -> None:
        print(pattern)

    assert "Built-in commands" in invoke(returning, *flags, mode="text").stdout
    assert "Built-in commands" not in invoke(printing, *flags, mode="text").stdout


# ------------------------------------------------------------------ suggestions


@pytest.mark.parametrize(
    ("name", "suggested"), [("generate-skills", "generate-skill"), ("search_tools", "search-tools")]
)
def test_unknown_command_suggests_a_builtin(name: str, suggested: str) -> None:
    error = invoke(make_app(), name, "--json").error
    assert error is not None
    assert error["message"] == f"There is no command {name!r}; did you mean {suggested!r}?"
    assert error["suggestion"]["argv"] == ["shop", suggested, "--json"]
    text = " ".join(invoke(make_app(), name, mode="text").stderr.split())
    assert f"Did you mean {suggested!r}?" in text


def test_own_command_is_suggested_first() -> None:
    app = make_app()
    app.command("generate-skil")(lambda: None)
    error = invoke(app, "generate-skills", "--json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["shop", "generate-skil", "--json"]


def test_app_written_for_typer_gets_the_message_of_typer() -> None:
    app = Tooli("shop")
    app.command("one")(lambda: None)
    app.command("two")(lambda: None)
    assert "Did you mean" not in invoke(app, "generate-skills", mode="text").stderr


def test_groups_suggest_no_builtin() -> None:
    app, users = make_app(), Tooli("users")
    users.command("create")(lambda: None)
    users.command("drop")(lambda: None)
    app.add_typer(users, name="users")
    envelope = json.loads(invoke(app, "users", "generate-skills", "--json").stdout)
    assert "did you mean" not in envelope["error"]["message"]
