"""The commands that every app has in addition to its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import validate
from tests.integration.outside import environment
from typer.testing import CliRunner

from tooli import Tooli
from tooli.testing import invoke


@pytest.fixture
def app() -> Tooli:
    app, users = Tooli("shop", version="2.0", description="Sell things."), Tooli()

    @app.command()
    def find_items(text: str, limit: int = 10) -> list[str]:
        """Find items by text."""
        return [text] * limit

    @users.command()
    def create(name: str) -> dict[str, str]:
        """Create a user."""
        return {"name": name}

    app.add_typer(users, name="users")
    return app


class TestExports:
    def test_mcp_definitions_stand_alone(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "export")
        assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == [
            "find_items",
            "users_create",
        ]
        assert done.exit_code == 0

    def test_in_an_envelope_where_one_is_asked_for(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "export", "--json")
        assert done.envelope["meta"]["tool"] == "shop.mcp.export"
        assert len(done.result["tools"]) == 2

    def test_deferred(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "export", "--defer-loading", "--json")
        assert [tool["name"] for tool in done.result["tools"]] == ["search_tools", "run_tool"]

    def test_openapi(self, app: Tooli) -> None:
        document = json.loads(invoke(app, "api", "export-openapi").stdout)
        validate(document)
        assert (document["info"]["title"], document["info"]["version"]) == ("shop", "2.0")
        assert "/tools/users/create" in document["paths"]


class TestSearch:
    def test_best_first(self, app: Tooli) -> None:
        found = invoke(app, "search-tools", "make a user", "--json").result
        assert found[0]["name"] == "users.create"
        assert found[0]["signature"].startswith("users.create(name: str)")

    def test_schema_on_demand(self, app: Tooli) -> None:
        found = invoke(app, "search-tools", "items", "--with-schema", "--json").result
        jsonschema.Draft202012Validator.check_schema(found[0]["input_schema"])

    def test_nothing(self, app: Tooli) -> None:
        done = invoke(app, "search-tools", "zzzz", "--json")
        assert (done.exit_code, done.result) == (0, [])


class TestWhoseCommand:
    def test_an_apps_own_wins(self) -> None:
        app = Tooli("shop")
        app.command("mcp")(lambda: "mine")
        app.command("other")(lambda: None)
        assert invoke(app, "mcp", "--json").result == "mine"

    def test_a_group_of_that_name_wins(self, app: Tooli) -> None:
        inner = Tooli()
        inner.command("serve")(lambda: "mine")
        inner.command("other")(lambda: None)
        app.add_typer(inner, name="api")
        assert invoke(app, "api", "serve", "--json").result == "mine"

    def test_only_at_the_top(self, app: Tooli) -> None:
        done = invoke(app, "users", "mcp", "--json")
        assert done.envelope["error"]["code"] == "E1001"
        assert done.envelope["error"]["details"]["commands"] == ["create"]

    def test_an_app_of_one_command_keeps_its_words(self) -> None:
        app = Tooli("echo")

        @app.command()
        def echo(words: list[str]) -> list[str]:
            return words

        assert invoke(app, "mcp", "export", "--json").result == ["mcp", "export"]

    def test_an_app_of_one_command_with_no_room_for_them(self) -> None:
        app = Tooli("greet")

        @app.command()
        def greet(name: str) -> str:
            return name

        assert invoke(app, "mcp", "--json").result == "mcp"
        tools = json.loads(invoke(app, "mcp", "export").stdout)["tools"]
        assert [tool["name"] for tool in tools] == ["greet"]

    def test_they_are_in_no_list(self, app: Tooli) -> None:
        assert "search-tools" not in [tool.key for tool in app.catalog]
        assert "mcp" not in invoke(app, "--help", mode="text").stdout

    def test_below_typer(self, app: Tooli) -> None:
        done = CliRunner().invoke(app, ["search-tools", "user", "--json"])
        assert json.loads(done.stdout)["result"][0]["name"] == "users.create"


class TestHelp:
    def test_of_a_group(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "--help", mode="text")
        assert done.exit_code == 0
        assert "serve" in done.stdout and "export" in done.stdout

    def test_of_a_command(self, app: Tooli) -> None:
        assert "--transport" in invoke(app, "mcp", "serve", "--help", mode="text").stdout

    def test_a_near_miss(self, app: Tooli) -> None:
        error = invoke(app, "mcp", "serv", "--json").envelope["error"]
        assert error["suggestion"]["argv"][-2:] == ["mcp", "serve"]


class TestServing:
    def test_a_wrong_transport(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "serve", "--transport", "carrier-pigeon")
        assert done.exit_code == 2
        assert "stdio" in done.stderr and "sse" in done.stderr

    @pytest.mark.parametrize("words", [("--port", "abc"), ("--transprt", "http")])
    def test_a_wrong_word_is_an_envelope_where_json_is_asked_for(
        self, app: Tooli, words: tuple[str, str]
    ) -> None:
        done = invoke(app, "mcp", "serve", *words, "--json")
        assert (done.exit_code, done.envelope["meta"]["tool"]) == (2, "shop.mcp.serve")

    def test_an_address_that_cannot_be_served(self, app: Tooli) -> None:
        done = invoke(app, "api", "serve", "--host", "0.0.0.0", "--json")
        assert (done.exit_code, done.envelope["error"]["code"]) == (2, "E1020")

    def test_as_the_app_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []
        app = Tooli("shop", mcp_transport="sse", defer_loading=True)
        app.command("a")(lambda: None)
        app.command("b")(lambda: None)
        monkeypatch.setattr(
            "tooli.http.http_server.serve_http", lambda *a, **k: asked.append((a[1:], k))
        )
        assert invoke(app, "mcp", "serve", "--port", "0").exit_code == 0
        ((address, settings),) = asked
        assert (address, settings["display_path"], settings["tools"]) == (
            ("127.0.0.1", 0),
            "/sse",
            False,
        )
        assert settings["mounts"][""].server.service.deferred


class TestLauncher:
    def run(self, *words: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-c", "from tooli.launcher import main; main()"]
        return subprocess.run(
            [*program, *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment(),
            timeout=60,
        )

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "plain.py").write_text(
            "import typer\n"
            "cli = typer.Typer()\n"
            "@cli.command()\n"
            "def greet(name: str, loud: bool = False):\n"
            "    print(name.upper() if loud else name)\n"
            "@cli.command()\n"
            "def leave(): ...\n"
            "if __name__ == '__main__': cli()\n"
        )
        (tmp_path / "two.py").write_text(
            "from tooli import Tooli\none, other = Tooli('one'), Tooli('other')\n"
            "other.command('run')(lambda: 'ran')\n"
        )
        (tmp_path / "none.py").write_text("x = 1\n")
        (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
        return tmp_path

    def test_an_app_that_knows_nothing_of_it(self, folder: Path) -> None:
        call = {"name": "greet", "arguments": {"name": "ann", "loud": True}}
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        lines = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        ]
        done = self.run("serve", "plain.py", folder=folder, stdin="\n".join(map(json.dumps, lines)))
        assert done.returncode == 0, done.stderr
        first, second = map(json.loads, done.stdout.splitlines())
        assert first["result"]["serverInfo"]["name"] == "plain"
        assert second["result"]["content"] == [{"type": "text", "text": "ANN"}]

    @pytest.mark.parametrize("which", ["plain.py", "plain.py:cli", "plain:cli", "plain"])
    def test_ways_to_name_it(self, folder: Path, which: str) -> None:
        done = self.run("tools", which, "--json", folder=folder)
        found = json.loads(done.stdout)["result"]
        assert [tool["name"] for tool in found] == ["greet", "leave"]

    @pytest.mark.parametrize(
        ("which", "code", "message"),
        [
            ("missing.py", 10, "no file"),
            ("missing.mod:app", 10, "no module"),
            ("two.py", 2, "one, other"),
            ("two.py:third", 2, "one, other"),
            ("none.py", 2, "no app"),
        ],
    )
    def test_what_cannot_be_found(self, folder: Path, which: str, code: int, message: str) -> None:
        done = self.run("tools", which, "--json", folder=folder)
        assert (done.returncode, message in json.loads(done.stdout)["error"]["message"]) == (
            code,
            True,
        )

    def test_an_app_that_breaks(self, folder: Path) -> None:
        done = self.run("tools", "broken.py", "--json", folder=folder)
        assert "nothing_of_this_name" in json.loads(done.stdout)["error"]["message"]

    def test_help(self, folder: Path) -> None:
        assert "serve" in self.run("--help", "--text", folder=folder).stdout
