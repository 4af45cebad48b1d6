"""Which commands are built in, how they are found, and their help."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

from tooli import Tooli
from tooli.testing import invoke


@pytest.fixture
def finder() -> Tooli:
    """Return an app with a single command, which returns its result."""
    app = Tooli("finder")

    @app.command()
    def find_files(pattern: str, root: str = ".") -> dict[str, str]:
        """Find files."""
        return {"pattern": pattern, "root": root}

    return app


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

    def test_name_of_a_builtin_is_read_as_the_builtin(self, finder: Tooli) -> None:
        tools = json.loads(invoke(finder, "mcp", "export").stdout)["tools"]
        assert [tool["name"] for tool in tools] == ["find_files"]
        assert invoke(finder, "generate-skill").stdout.startswith("---\nname: finder")
        assert invoke(finder, "--json", "detect-context").result["category"]

    def test_builtin_with_invalid_arguments_is_not_an_argument(self, finder: Tooli) -> None:
        error = invoke(finder, "docs", "--json").error
        assert error is not None and error["details"]["commands"] == ["llms", "man", "check"]

    @pytest.mark.parametrize("argv", [["--", "docs"], ["--root", "src", "docs"], ["./docs"]])
    def test_name_of_a_builtin_can_be_an_argument(self, finder: Tooli, argv: list[str]) -> None:
        assert invoke(finder, "--json", *argv).result["pattern"] == argv[-1]

    def test_tooli_alone_is_an_argument_of_a_single_command(self, finder: Tooli) -> None:
        assert invoke(finder, "tooli", "--json").result["pattern"] == "tooli"
        assert invoke(finder, "tooli", "docs", "llms").stdout.startswith(
            "# file: llms.txt\n# finder"
        )

    def test_printing_command_gets_the_words_that_typer_gives_it(self) -> None:
        app = Tooli("echo")

        @app.command()
        def echo(word: str) -> None:
            print(word)

        assert invoke(app, "docs", mode="text").stdout == "docs\n"
        assert invoke(app, "docs", "--json").result == "docs"
        assert invoke(app, "docs", "llms").stdout.startswith(
            "# file: llms.txt\n# echo"
        )  # Typer rejects two words
        assert "TOOLS: list[Tool] = " in invoke(app, "export", "--target", "openai").stdout
        assert invoke(app, "tooli", "generate-skill").stdout.startswith("---\nname: echo")

    def test_typer_decides_with_tooli_output_text(self, finder: Tooli) -> None:
        assert "pattern" in invoke(finder, "docs", mode="text").stdout
        assert invoke(finder, "docs", "llms", mode="text").stdout.startswith(
            "# file: llms.txt\n# finder"
        )

    def test_word_tooli_leads_to_the_builtins_behind_the_commands_of_the_app(self) -> None:
        app = Tooli("shop")
        app.command("docs")(lambda: "mine")
        app.command("other")(lambda: None)
        assert invoke(app, "docs", "--json").result == "mine"
        assert "# shop\n" in invoke(app, "tooli", "docs", "llms").stdout
        error = invoke(app, "tooli", "docs", "lms", "--json").error
        assert error is not None
        assert error["suggestion"]["argv"] == ["shop", "tooli", "docs", "llms", "--json"]
        page = invoke(app, "tooli", "--help", "--plain").stdout
        assert page.startswith("Usage: shop tooli COMMAND") and "generate-skill" in page

    def test_command_called_tooli_takes_precedence(self) -> None:
        app = Tooli("shop")
        app.command("tooli")(lambda: "mine")
        app.command("other")(lambda: None)
        assert invoke(app, "tooli", "--json").result == "mine"

    def test_custom_group_class_keeps_every_word(self) -> None:
        class Commands(TyperGroup):
            def get_command(self, ctx: Any, cmd_name: str) -> Any:
                return super().get_command(ctx, "show")

        app = Tooli("shop", cls=Commands)
        app.command("show")(lambda: print("mine"))
        app.command("other")(lambda: None)
        assert invoke(app, "docs", mode="text").stdout == "mine\n"

    def test_builtins_are_hidden_from_the_catalog(self, app: Tooli) -> None:
        assert "search-tools" not in [tool.key for tool in app.catalog]

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
        assert error["suggestion"]["argv"][-3:] == ["mcp", "serve", "--json"]

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
