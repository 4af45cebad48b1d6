"""An app whose only tool comes from a provider works with and without the name of the tool."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer
from tests.providers.provided import ToolList
from typer.testing import CliRunner

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.providers import FileSystemProvider, LocalProvider, Provider, described_tool
from tooli.testing import invoke

if TYPE_CHECKING:
    from pathlib import Path

    from tooli.core.tool import Tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "json": {"type": "boolean"},
        "filter": {"type": "string"},
    },
    "required": ["city"],
}


def make_tool(name: str = "forecast") -> Tool:
    return described_tool(name, dict, description="F.", input_schema=SCHEMA, annotations=ReadOnly)


def read_error(app: Tooli, *argv: str) -> dict[str, Any]:
    done = invoke(app, *argv, "--json")
    assert done.error is not None, done.stdout
    return done.error


def make_app(*providers: Provider, namespace: str | None = None) -> Tooli:
    app = Tooli("app", version="1")
    default: tuple[Provider, ...] = (ToolList(make_tool()),)
    for provider in providers or default:
        app.add_provider(provider, namespace)
    return app


def make_local_app() -> Tooli:
    math = LocalProvider("math")

    @math.tool(annotations=ReadOnly)
    def join(words: list[str], separator: str = " ") -> str:
        return separator.join(words)

    return make_app(math)


@pytest.mark.parametrize("name", [[], ["forecast"]])
@pytest.mark.parametrize("words", [["--city", "Paris"], ["--city=Paris", "--text"]])
def test_name_can_be_left_out(name: list[str], words: list[str]) -> None:
    done = invoke(make_app(), *name, *words)
    assert done.exit_code == 0 and "Paris" in done.stdout


@pytest.mark.parametrize(
    ("argv", "result"),
    [
        (["a", "b"], "a b"),
        (["join", "a"], "a"),
        (["join", "join"], "join"),
        (["--separator", "-", "a", "b"], "a-b"),
        (["--", "--odd", "b"], "--odd b"),
        (["--quiet", "--", "config"], "config"),
    ],
)
def test_words_are_arguments_of_the_tool(argv: list[str], result: str) -> None:
    assert invoke(make_local_app(), *argv).result == result


def test_flag_before_the_arguments_belongs_to_the_tool() -> None:
    done = invoke(make_app(), "--json", "--city", "Paris")
    assert done.result == {"json": True, "city": "Paris"}
    done = invoke(make_app(), "--filter", "a", "--city", "Paris")
    assert done.result == {"filter": "a", "city": "Paris"}


def test_missing_arguments_are_reported() -> None:
    assert read_error(make_app())["field"] == "city"
    assert read_error(make_app(), "--quiet")["field"] == "city"


def test_builtin_commands_and_descriptions_stay_those_of_the_app() -> None:
    app = make_local_app()
    assert invoke(app, "config", "show", "--json").ok
    assert json.loads(invoke(app, "--schema").stdout)["app"] == "app"
    assert "Commands:" in invoke(app, "--help").stdout
    assert invoke(app, "--version").stdout.strip() == "app 1"
    assert "separator" in invoke(app, "a", "--help").stdout
    provider = ToolList(make_tool())
    provider.name = "forecast.py"
    assert "--city" in invoke(make_app(provider), "--help").stdout  # a program


def test_tool_that_is_left_out_is_not_an_argument() -> None:
    app = make_local_app()
    app.add_transform(lambda tool: tool)
    assert read_error(app, "split")["code"] == "E1001"
    assert invoke(app, "--separator", "-", "join").result == "join"


def test_word_that_no_tool_takes_is_an_unknown_command() -> None:
    error = read_error(make_app(), "fortcast", "--city", "Paris")
    assert error["code"] == "E1001" and "did you mean 'forecast'?" in error["message"]


@pytest.mark.parametrize(
    "app",
    [
        make_app(ToolList(make_tool(), make_tool("other"))),
        make_app(ToolList(make_tool("users.get"))),
        make_app(namespace="weather"),
        make_app(ToolList()),
    ],
)
def test_other_apps_need_the_name(app: Tooli) -> None:
    assert invoke(app, "--city", "Paris", "--json").exit_code == 2
    assert read_error(app, "Paris")["code"] == "E1001"


def test_tool_that_is_missing_is_not_an_argument(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("def join(words: list[str]) -> str:\n    return words[0]\n")
    (tmp_path / "bad.py").write_text("import nonexistent_package\n")
    app = make_app(FileSystemProvider(tmp_path))
    assert read_error(app, "split")["code"] == "E1001"
    assert invoke(app, "join", "a", "--yes", "--json").result == "a"


def test_command_of_the_author_keeps_its_name() -> None:
    app = make_app(ToolList())

    @app.command()
    def local(words: list[str]) -> str:
        return words[0]

    assert invoke(app, "local", "a", "--yes", "--json").result == "a"
    assert read_error(app, "a", "--yes")["code"] == "E1001"


# ------------------------------------------------------------------ Typer


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("namespace", [None, "weather"])
def test_typer_makes_a_group(namespace: str | None, is_late: bool) -> None:
    app = Tooli("app")
    if is_late:
        assert app.registered_commands == []  # Typer is initialized
    app.add_provider(ToolList(make_tool()), namespace)
    command = typer.main.get_command(app)
    path = ["forecast"] if namespace is None else [namespace, "forecast"]
    result = CliRunner().invoke(app, [*path, "--city", "Paris"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["result"] == {"city": "Paris"}
    assert command.name == "app" and not app.tree().typer_reason
    if namespace is None:
        assert CliRunner().invoke(app, ["--city", "Paris"]).exit_code == 0


def test_callback_of_the_author_replaces_the_mark() -> None:
    app = make_app()
    assert app.registered_callback is not None
    seen: list[str] = []

    @app.callback()
    def main(name: str = "x") -> None:
        seen.append(name)

    assert invoke(app, "--name", "y", "forecast", "--city", "Paris", "--json").ok
    assert seen == ["y"]


def test_program_takes_its_own_words(tmp_path: Path) -> None:
    script = tmp_path / "greet.py"
    script.write_text(
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('name')\n"
        "parser.add_argument('--polite', action='store_true')\n"
        "print(vars(parser.parse_args()))\n"
    )
    (tmp_path / "app.py").write_text(
        "from tooli import Tooli\n"
        "from tooli.providers import CLIProvider\n"
        f"app = Tooli('greet')\napp.add_provider(CLIProvider({str(script)!r}))\napp()\n"
    )
    for argv in (["--polite", "Ada"], ["greet", "Ada", "--polite"], ["--yes", "--polite", "Ada"]):
        line = [sys.executable, str(tmp_path / "app.py"), *argv, "--yes", "--json"]
        done = subprocess.run(line, capture_output=True, check=False, text=True)
        assert "'name': 'Ada', 'polite': True" in json.loads(done.stdout)["result"], done.stdout
