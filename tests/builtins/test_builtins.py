"""Which commands are built in, how they are found, and their help."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tooli import Tooli
from tooli.testing import invoke


class TestPrecedence:
    def test_command_of_the_app_takes_precedence(self) -> None:
        app = Tooli("shop")
        app.command("mcp")(lambda: "mine")
        app.command("other")(lambda: None)
        assert invoke(app, "mcp", "--json").result == "mine"

    def test_group_of_the_app_takes_precedence(self, app: Tooli) -> None:
        inner = Tooli()
        inner.command("serve")(lambda: "mine")
        inner.command("other")(lambda: None)
        app.add_typer(inner, name="api")
        assert invoke(app, "api", "serve", "--json").result == "mine"

    def test_builtins_exist_only_at_the_top_level(self, app: Tooli) -> None:
        done = invoke(app, "users", "mcp", "--json")
        assert done.envelope["error"]["code"] == "E1001"
        assert done.envelope["error"]["details"]["commands"] == ["create"]

    def test_single_command_keeps_its_arguments(self) -> None:
        app = Tooli("echo")

        @app.command()
        def echo(words: list[str]) -> list[str]:
            return words

        assert invoke(app, "mcp", "export", "--json").result == ["mcp", "export"]

    def test_builtin_runs_if_a_single_command_takes_fewer_arguments(self) -> None:
        app = Tooli("greet")

        @app.command()
        def greet(name: str) -> str:
            return name

        assert invoke(app, "mcp", "--json").result == "mcp"
        tools = json.loads(invoke(app, "mcp", "export").stdout)["tools"]
        assert [tool["name"] for tool in tools] == ["greet"]

    def test_builtins_are_hidden_from_catalog_and_help(self, app: Tooli) -> None:
        assert "search-tools" not in [tool.key for tool in app.catalog]
        assert "mcp" not in invoke(app, "--help", mode="text").stdout

    def test_builtin_runs_through_typer(self, app: Tooli) -> None:
        done = CliRunner().invoke(app, ["search-tools", "user", "--json"])
        assert json.loads(done.stdout)["result"][0]["name"] == "users.create"


class TestHelp:
    def test_help_of_a_group(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "--help", mode="text")
        assert done.exit_code == 0
        assert "serve" in done.stdout and "export" in done.stdout

    def test_help_of_a_command(self, app: Tooli) -> None:
        assert "--transport" in invoke(app, "mcp", "serve", "--help", mode="text").stdout

    def test_misspelled_command_gets_a_suggestion(self, app: Tooli) -> None:
        error = invoke(app, "mcp", "serv", "--json").envelope["error"]
        assert error["suggestion"]["argv"][-2:] == ["mcp", "serve"]

    def test_every_command_and_option_has_help(self, app: Tooli) -> None:
        tools = list(app.builtins().catalog)
        assert len(tools) > 20
        for tool in tools:
            assert tool.doc.summary, tool.key
            assert all(param.help for param in tool.public_params), tool.key


@pytest.mark.parametrize("name", ["mcp", "api", "docs", "skills", "audit", "approvals"])
def test_builtins_of_one_group_contain_only_that_group(app: Tooli, name: str) -> None:
    keys = [tool.key for tool in app.builtins(name).catalog]
    assert keys and all(key.startswith(f"{name}.") for key in keys)
