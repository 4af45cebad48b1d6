"""Tools of providers on a command line: flags, help, completion, the Typer path."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.provided import ToolList, echo_tool

from tooli import Tooli
from tooli.testing import CommandResult, invoke


def make_app(namespace: str | None = "remote", commands: int = 1) -> Tooli:
    app = Tooli("app")
    for i in range(commands):

        @app.command(f"local{i}")
        def local() -> str:
            """Do it here."""
            return "local"

    description = "Echo [bold] words.\n\nAs [they] are."
    provider = ToolList(echo_tool(description=description), echo_tool("users.get"))
    app.add_provider(provider, namespace)
    return app


def show(app: Tooli, *line: str) -> CommandResult:
    """Run a line as Typer does for people."""
    return invoke(app, *line, env={"TOOLI_OUTPUT": "text"})


LINES: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["--filter", "x"], {"$filter": "x"}),
    (["--max-results=3"], {"max_results": 3}),
    (["--from", "2026-01-31"], {"from": "2026-01-31"}),
    (["--tags", "a", "--tags", "b"], {"tags": ["a", "b"]}),
    (["--ratio", "2"], {"ratio": 2}),
    (["--no-deep"], {"deep": False}),
    (["--deep", "--note", "n"], {"deep": True, "note": "n"}),
    (["--user", '{"name":"Ada"}'], {"user": {"name": "Ada"}}),
    (["--user.name", "Ada", "--user.age", "36"], {"user": {"name": "Ada", "age": 36}}),
    (["--user.name", "7", "--user.tags", "1"], {"user": {"name": "7", "tags": [1]}}),
    (["--target", "5"], {"target": 5}),
    (["--target", "five"], {"target": "five"}),
    (["--target", "a=b"], {"target": "a=b"}),
    (["--target", "@five"], {"target": "@five"}),
    (["--target", "{five"], {"target": "{five"}),
    (["--target", "true"], {"target": "true"}),
    (["--arg-help", "me"], {"help": "me"}),
    (["--timeout", "9"], {"timeout": 9}),
    (["--tooli-timeout", "60"], {}),
]


@pytest.mark.parametrize(("words", "expected"), LINES, ids=lambda value: " ".join(value))
def test_flags_on_both_paths(words: list[str], expected: dict[str, Any]) -> None:
    app = make_app()
    line = ["remote", "echo", "--kind", "a", *words]
    assert invoke(app, *line, "--json").result == {"kind": "a", **expected}
    typer_app = make_app()
    typer_app.callback()(lambda: print(end=""))  # Typer parses every line of the app
    answer = invoke(typer_app, *line, "--json").envelope
    assert answer.get("result") == {"kind": "a", **expected}, answer


@pytest.mark.parametrize("commands", [0, 1, 2])
@pytest.mark.parametrize("namespace", [None, "remote"])
def test_help_for_people_lists_the_tools(namespace: str | None, commands: int) -> None:
    app = make_app(namespace, commands)
    path = [] if namespace is None else [namespace]
    shown = show(app, *path, "--help")
    assert shown.exit_code == 0, shown.stdout + shown.stderr
    assert "Echo [bold] words." in (shown.stdout + shown.stderr)
    assert "users" in (shown.stdout + shown.stderr)
    command = show(app, *path, "echo", "--help")
    assert command.exit_code == 0, command.stdout
    assert "As [they] are." in command.stdout
    assert "The [kind]." in command.stdout
    for flag in ("--filter", "--from", "--no-deep", "--arg-help"):
        assert flag in command.stdout
    group = show(app, *path, "users", "--help")
    assert "get" in group.stdout


def test_help_of_the_app_asks_no_provider_with_a_namespace() -> None:
    app = make_app()
    (mount,) = app._state.mounts
    shown = show(app, "--help")
    assert "Listed [tools]." in (shown.stdout + shown.stderr)
    assert not mount.is_loaded


def test_usage_error_for_people_names_the_flag() -> None:
    shown = show(make_app(), "remote", "echo")
    assert shown.exit_code == 2
    assert "--kind" in (shown.stdout + shown.stderr)


def test_tools_of_an_inner_app() -> None:
    outer = Tooli("outer")
    outer.mount(make_app(), namespace="inner")
    line = ["inner", "remote", "echo", "--kind", "a"]
    assert invoke(outer, *line, "--json").result == {"kind": "a"}
    shown = show(outer, *line[:-2], "--help")
    assert "--filter" in (shown.stdout + shown.stderr), shown.stdout + shown.stderr
