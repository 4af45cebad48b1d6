"""Apps of sources."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.source_home import TOOLS, SourceHome

from tooli.core.tool import Tool
from tooli.errors import DefinitionError, DependencyError, InputError, NotFoundError, ToolError
from tooli.providers import Provider
from tooli.sources import loader
from tooli.sources.loader import check_has_tools, derive_name, load_app, load_source
from tooli.sources.source_grammar import SourceOptions, parse_source


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    folder = tmp_path / "desk"
    (folder / "users").mkdir(parents=True)
    (folder / "orders.py").write_text(TOOLS)
    (folder / "users" / "list.py").write_text("def list_users() -> list[str]: return []\n")
    return folder


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (SourceOptions(), ["list-orders", "cancel", "users.list-users"]),
        (SourceOptions(include=("users",)), ["users.list-users"]),
        (SourceOptions(include=("*list*",), exclude=("users.*",)), ["list-orders"]),
        (SourceOptions(exclude=("users", "cancel")), ["list-orders"]),
        (SourceOptions(read_only=True), ["list-orders"]),
    ],
)
def test_selection_of_tools(desk: Path, options: SourceOptions, names: list[str]) -> None:
    app = load_app(f"files:{desk}", options)
    assert sorted(tool.key for tool in app.catalog) == sorted(names)
    assert app._state.reference == (*options.words(), f"files:{desk}")
    assert app.call("list-orders").result == [1, 2] or "list-orders" not in names


def test_selection_without_tools(desk: Path) -> None:
    for options, field in (
        (SourceOptions(include=("zzz",)), "include"),
        (SourceOptions(include=("cancel",), read_only=True), "read_only"),
    ):
        source = parse_source(f"files:{desk}", options)
        with pytest.raises(InputError) as caught:
            check_has_tools(load_source(source), source)
        assert caught.value.field == field
        assert caught.value.suggestion is not None
        assert "list-orders" in caught.value.suggestion.fix


def test_missing_files(tmp_path: Path) -> None:
    for text in ("files:missing", "openapi:missing.json", "sql:missing.sql"):
        with pytest.raises(NotFoundError, match=f"{text}: there is no"):
            load_app(text)
    (tmp_path / "a.json").mkdir()
    with pytest.raises(InputError, match="is not a file"):
        load_app(f"openapi:{tmp_path / 'a.json'}")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a folder"):
        load_app(f"files:{tmp_path / 'file'}")


class Failing(Provider):
    name = "failing"

    def __init__(self, failure: BaseException) -> None:
        self.failure = failure

    def tools(self) -> Iterator[Tool]:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "code", "exit_code", "text"),
    [
        (DependencyError("The server closed the connection."), "E4040", 40, "tooli:http://h: The"),
        (ConnectionRefusedError(111, "Connection refused"), "E4040", 40, "tooli:http://h: "),
        (ValueError("odd"), "E5000", 70, "tooli:http://h: "),
        (InputError("http://h is no app", field="auth"), "E1000", 2, "http://h is no app"),
    ],
)
def test_failure_of_a_provider_names_the_source(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, code: str, exit_code: int, text: str
) -> None:
    monkeypatch.setattr(loader, "make_provider", lambda source: Failing(failure))
    with pytest.raises(Exception) as caught:
        load_app("tooli:http://h")
    error = caught.value
    assert (error.code, error.exit_code) == (code, exit_code)  # type: ignore[attr-defined]
    assert error.message.startswith(text)  # type: ignore[attr-defined]
    assert error.suggestion is not None  # type: ignore[attr-defined]


def test_failure_that_a_definition_error_restates(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = DefinitionError("http://h cannot be read")
    for cause, code in (
        (DependencyError("refused"), "E4040"),
        (FileNotFoundError(2, "No such file"), "E3010"),
        (ValueError("not JSON"), "E1000"),
        (None, "E1000"),
    ):
        failure.__context__ = cause
        monkeypatch.setattr(loader, "make_provider", lambda source: Failing(failure))
        with pytest.raises(ToolError, match="http://h cannot be read") as caught:
            load_app("tooli:http://h")
        assert caught.value.code == code


def test_names_of_apps() -> None:
    for text, name in (
        ("openapi:https://api.example.com/v1.json", "api-example-com"),
        ("tooli:http://127.0.0.1:8000", "127-0-0-1"),
        ("openapi:/x/pet store.yaml", "pet-store"),
        ("mcp:npx -y @scope/server --flag", "provider"),
        ("mcp:https://ada@h.example/mcp", "h-example"),
        ("files:my_tools/", "my-tools"),
        ("exe:/usr/bin/git", "git"),
        ("sql:Fragen.sql", "fragen"),
        ("files:日本", "files"),
    ):
        assert derive_name(parse_source(text), "provider") == name


PROGRAM = """
import argparse

parser = argparse.ArgumentParser(description="Greet.")
parser.add_argument("name")
parser.add_argument("--times", type=int, default=1)
args = parser.parse_args()
print(f"hi {args.name} " * args.times)
"""
CLICK = """
import click


@click.group()
def cli(): pass


@cli.command()
@click.argument("name")
def hi(name): click.echo(f"hi {name}")
"""


def test_programs(tmp_path: Path) -> None:
    home = SourceHome(tmp_path)
    (tmp_path / "greet.py").write_text(PROGRAM)
    (tmp_path / "grouped.py").write_text(CLICK)
    for words in (["Ada"], ["greet", "Ada"]):
        done = home("run", "exe:greet.py", *words, "--times", "2", "--yes")
        assert done["result"].split() == ["hi", "Ada", "hi", "Ada"]
    assert "NAME" in home.start("run", "exe:greet.py", "--help").stdout
    assert home("run", "exe:greet.py", "Ada")["error"]["code"] == "E1010"
    assert home("run", "grouped:cli", "hi", "Ada", "--yes")["result"] == "hi Ada"
    error = home("tools", "grouped.py:cli")["error"]
    assert error["suggestion"]["example"] == "exe:grouped.py"
    assert home("run", "--include", "hi", "grouped:cli", "by")["error"]["code"] == "E1001"
    assert home("tools", "exe:no-such-program")["error"]["code"] == "E3010"
    (tmp_path / "greet.sh").write_text("#!/bin/sh\n")
    error = home("tools", "exe:greet.sh")["error"]
    assert error["suggestion"]["fix"].endswith("write exe:./greet.sh.")
    kept = home("adopt", "greet", "exe:greet.py", "--install", "--bin-dir", "bin")["result"]
    assert kept["source"] == f"exe:{tmp_path / 'greet.py'}"
    done = subprocess.run(
        [kept["program"], "Ada", "--yes"], capture_output=True, text=True, env=home.env, timeout=60
    )
    assert json.loads(done.stdout)["result"].split() == ["hi", "Ada"]


def test_run_makes_typer_apps_those_of_tooli(tmp_path: Path) -> None:
    home = SourceHome(tmp_path)
    (tmp_path / "plain.py").write_text(
        "import typer\napp = typer.Typer()\n@app.command()\ndef hi(name: str): print(name)\n"
        "@app.command()\ndef by(): ...\n"
    )
    assert home("adopt", "plain", "plain.py")["result"]["tools"] == 2
    assert home("run", "@plain", "hi", "Ada")["result"] == "Ada"
    done = home.start("run", "@plain", "hi", "Ada")
    assert done.stdout == "Ada\n"
    manifest = json.loads(home.start("--read-only", "@desk", "mcp", "export", "--json").stdout)
    assert manifest["error"]["code"] == "E3010"


def test_documents_quote_a_source_with_spaces(tmp_path: Path) -> None:
    home = SourceHome(tmp_path)
    (tmp_path / "desk").rename(tmp_path / "my desk")
    source = "files:my desk"
    for words in (
        ["run", source, "--help"],
        ["run", source, "cancel", "--help"],
        ["run", source, "docs", "--help"],
        ["run", source, "--help-agent"],
        ["docs", "llms", source],
        ["generate-skill", source],
        ["generate-agents-md", source],
    ):
        text = home.start(*words).stdout
        assert "my desk'" in text and "tooli run files:" not in text, words


def test_tools_that_are_left_out_are_warnings(tmp_path: Path) -> None:
    home = SourceHome(tmp_path)
    (tmp_path / "desk" / "broken.py").write_text("import sys\nsys.exit(3)\n")
    found = home("tools", "files:desk")
    assert [tool["name"] for tool in found["result"]] == ["list-orders", "cancel"]
    (warning,) = found["meta"]["warnings"]
    assert warning == "the provider 'desk': broken.py: SystemExit: 3 (files:desk)"
    assert home("doctor", "files:desk")["result"]["problems"] == [warning]


def test_file_that_fails_is_one_envelope(tmp_path: Path) -> None:
    home = SourceHome(tmp_path)
    (tmp_path / "bad.py").write_text("import no_such_package\n")
    for words in (["tools", "bad.py"], ["run", "bad.py", "x"], ["docs", "llms", "bad.py"]):
        error = home(*words)["error"]
        assert error["code"] == "E4040" and error["message"].startswith("bad.py cannot be loaded")
