"""The words that name a source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tooli.errors import InputError
from tooli.sources.source_grammar import (
    NO_OPTIONS,
    SourceOptions,
    command_words,
    join_words,
    parse_source,
    split_reference,
    with_absolute_paths,
)


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("app.py", "app", "app.py"),
        ("app.py:cli", "app", "app.py:cli"),
        ("pkg.mod:cli", "app", "pkg.mod:cli"),
        ("mytool", "app", "mytool"),
        ("exe:black", "exe", "black"),
        ("openapi:api.json", "openapi", "api.json"),
        ("openapi:https://h.example/api", "openapi", "https://h.example/api"),
        (r"openapi:C:\api.json", "openapi", r"C:\api.json"),
        ("mcp:npx -y server", "mcp", "npx -y server"),
        ("mcp:HTTPS://h.example/mcp", "mcp", "HTTPS://h.example/mcp"),
        ("tooli:http://127.0.0.1:8000", "tooli", "http://127.0.0.1:8000"),
        ("sql:queries.sql", "sql", "queries.sql"),
        ("files:tools", "files", "tools"),
        ("@shop", "@", "shop"),
        (r"C:\app.py:cli", "app", r"C:\app.py:cli"),
        ("files: tools ", "files", "tools"),
    ],
)
def test_kinds_of_sources(text: str, kind: str, target: str) -> None:
    source = parse_source(text)
    assert (source.kind, source.target) == (kind, target)
    assert parse_source(source.text) == source


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("openapi:", "does not name an OpenAPI document", "openapi:FILE or openapi:URL"),
        ("@", "does not name a name", "Write @NAME"),
        ("", "does not name an app", "app.py, package.module:app"),
        ("mcp:  ", "does not name an MCP server", "mcp:COMMAND"),
        ("tooli:shop.example", "must be the URL", "tooli:http://HOST:PORT"),
        ("opnapi:api.json", "unknown prefix; did you mean 'openapi'?", "exe:, openapi:, mcp:"),
        ("file:./tools", "unknown prefix; did you mean 'files'?", "files:"),
        ("https://h.example/api.json", "is a URL", "openapi:https://h.example/api.json"),
        ("api.YAML", "is not an app", "Use openapi:api.YAML"),
        ("queries.sql", "is not an app", "Use sql:queries.sql"),
    ],
)
def test_words_that_name_no_source(text: str, message: str, fix: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_source(text)
    assert message in caught.value.message
    assert caught.value.field == "source"
    assert caught.value.suggestion is not None and fix in caught.value.suggestion.fix


def test_folder_is_not_an_app(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder") as caught:
        parse_source(str(tmp_path))
    assert caught.value.suggestion is not None
    assert caught.value.suggestion.example == f"files:{tmp_path}"


def test_a_package_is_an_app_although_its_folder_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_source("shop").kind == "app"


def test_options_that_a_source_does_not_have() -> None:
    for text, options, flag in (
        ("app.py", SourceOptions(headers=(("A", "b"),)), "--header"),
        ("sql:q.sql", SourceOptions(base_url="http://h"), "--base-url"),
        ("openapi:a.json", SourceOptions(database="a.db"), "--database"),
        ("files:tools", SourceOptions(trusted=True), "--trusted"),
        ("tooli:http://h", SourceOptions(env=(("A", "b"),)), "--env"),
        ("sql:q.sql", SourceOptions(no_sandbox=True), "--no-sandbox"),
    ):
        with pytest.raises(InputError, match=f"{flag} is an option of") as caught:
            parse_source(text, options)
        assert caught.value.field != "source"
    parse_source("app.py", SourceOptions(include=("a",), exclude=("b",), read_only=True))


def test_options_of_mcp_commands_and_urls() -> None:
    for text, options, field in (
        ("mcp:http://h/mcp", SourceOptions(env=(("A", "b"),)), "env"),
        ("mcp:server", SourceOptions(headers=(("A", "b"),)), "headers"),
    ):
        with pytest.raises(InputError, match="cannot be given with mcp:") as caught:
            parse_source(text, options)
        assert caught.value.field == field


def test_words_of_a_source() -> None:
    options = SourceOptions(
        include=("a", "b.*"),
        read_only=True,
        headers=(("X-Key", "env:KEY"),),
        auth="@token",
        base_url="http://h",
    )
    source = parse_source("openapi:api file.json", options)
    assert source.words == (
        *("--include", "a", "--include", "b.*", "--read-only", "--header", "X-Key=env:KEY"),
        *("--auth", "@token", "--base-url", "http://h", "openapi:api file.json"),
    )
    assert join_words(source.words[-1:]) == "'openapi:api file.json'"
    assert parse_source("@shop", NO_OPTIONS).words == ("@shop",)


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "npx").touch()
    (tmp_path / "local_module.py").touch()
    for text, absolute in (
        ("local_module:app", f"{tmp_path / 'local_module.py'}:app"),
        ("app.py:cli", f"{tmp_path / 'app.py'}:cli"),
        ("app.py", f"{tmp_path / 'app.py'}"),
        ("pkg.mod:cli", "pkg.mod:cli"),
        ("mytool", "mytool"),
        ("openapi:api.json", f"openapi:{tmp_path / 'api.json'}"),
        ("openapi:http://h/api.json", "openapi:http://h/api.json"),
        ("sql:q.sql", f"sql:{tmp_path / 'q.sql'}"),
        ("files:tools", f"files:{tmp_path / 'tools'}"),
        ("exe:black", "exe:black"),
        ("exe:./run.sh", f"exe:{tmp_path / 'run.sh'}"),
        ("mcp:npx -y data", "mcp:npx -y data"),
        (
            "mcp:python server.py ./data --x=1 missing/file .",
            f"mcp:python {tmp_path}/server.py {tmp_path}/data --x=1 missing/file {tmp_path}",
        ),
        ("mcp:http://h/mcp", "mcp:http://h/mcp"),
    ):
        assert with_absolute_paths(parse_source(text)).text == absolute


def test_paths_of_options_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = SourceOptions(headers=(("A", "@key"), ("B", "env:KEY")), auth="@key")
    changed = with_absolute_paths(parse_source("openapi:a.json", options)).options
    assert changed.headers == (("A", f"@{tmp_path / 'key'}"), ("B", "env:KEY"))
    assert changed.auth == f"@{tmp_path / 'key'}"
    for database, expected in (
        ("shop.db", str(tmp_path / "shop.db")),
        ("env:URL", "env:URL"),
        (":memory:", ":memory:"),
        ("postgresql://h/db", "postgresql://h/db"),
    ):
        source = parse_source("sql:q.sql", SourceOptions(database=database))
        assert with_absolute_paths(source).options.database == expected


def test_words_of_a_command() -> None:
    assert command_words("npx -y 'a b'") == ["npx", "-y", "a b"]
    for command in ("python 'a", "''  x 'y"):
        with pytest.raises(InputError, match="quotation"):
            command_words(command)
    with pytest.raises(InputError, match="names no command"):
        command_words(" ")


def test_attribute_of_a_reference() -> None:
    assert split_reference("app.py:cli") == ("app.py", "cli")
    assert split_reference("app.py") == ("app.py", "")
    if os.name == "nt":
        assert split_reference(r"C:\app.py") == (r"C:\app.py", "")
