"""The arguments that the providers of sources get."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.errors import AuthError
from tooli.providers import public_names
from tooli.sources.providers import make_provider
from tooli.sources.source_grammar import SourceOptions, parse_source

HEADERS = (("X-Key", "env:KEY"),)


@pytest.mark.parametrize(
    ("text", "options", "name", "args", "kwargs"),
    [
        (
            "openapi:a.json",
            SourceOptions(headers=HEADERS, auth="env:T", base_url="http://h"),
            "OpenAPIProvider",
            ("a.json",),
            {"base_url": "http://h", "auth": "env:T", "headers": {"X-Key": "env:KEY"}},
        ),
        (
            "mcp:npx -y 'a b'",
            SourceOptions(env=(("A", "1"),), trusted=True),
            "MCPProvider",
            (["npx", "-y", "a b"],),
            {"headers": None, "env": {"A": "1"}, "trusted": True},
        ),
        (
            "mcp:http://h/mcp",
            SourceOptions(),
            "MCPProvider",
            ("http://h/mcp",),
            {"headers": None, "env": None, "trusted": False},
        ),
        (
            "tooli:http://h",
            SourceOptions(auth="@t"),
            "RemoteProvider",
            ("http://h",),
            {"token": "@t", "headers": None, "trusted": False},
        ),
        (
            "sql:q.sql",
            SourceOptions(database="a.db", read_only=True),
            "SQLProvider",
            ("a.db", "q.sql"),
            {"read_only": True},
        ),
        ("files:tools", SourceOptions(), "FileSystemProvider", ("tools",), {"hot_reload": True}),
        (
            "exe:black",
            SourceOptions(env=(("A", "env:SOURCE_TEST"), ("B", "1"))),
            "CLIProvider",
            ("exe:black",),
            {"env": {"A": "x", "B": "1"}, "sandbox": True, "raw": True},
        ),
        (
            "exe:black",
            SourceOptions(no_sandbox=True),
            "CLIProvider",
            ("exe:black",),
            {"env": None, "sandbox": False, "raw": True},
        ),
    ],
)
def test_arguments_of_providers(
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: SourceOptions,
    name: str,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> None:
    made: list[tuple[str, Any, Any]] = []

    def load(name: str) -> Any:
        return lambda *args, **kwargs: made.append((name, args, kwargs))

    monkeypatch.setattr(public_names, "load", load)
    monkeypatch.setenv("SOURCE_TEST", "x")
    make_provider(parse_source(text, options))
    assert made == [(name, args, kwargs)]


def test_variable_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_TEST", raising=False)
    options = SourceOptions(env=(("A", "env:SOURCE_TEST"),))
    with pytest.raises(AuthError, match="SOURCE_TEST is not set") as caught:
        make_provider(parse_source("exe:black", options))
    assert caught.value.field == "env"
