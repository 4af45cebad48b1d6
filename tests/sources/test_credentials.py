"""Credentials that would be stored or shown."""

from __future__ import annotations

import pytest

from tooli.errors import InputError
from tooli.sources.credentials import check_options, check_target, is_reference, redact_command
from tooli.sources.source_grammar import SourceOptions, parse_source

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("openapi:a.json", SourceOptions(headers=(("Authorization", "Bearer x"),))),
        ("openapi:a.json", SourceOptions(headers=(("X-Api-Key", "x"),))),
        ("openapi:a.json", SourceOptions(headers=(("Cookie", "a=b"),))),
        ("openapi:a.json", SourceOptions(headers=(("X-Other", TOKEN),))),
        ("openapi:a.json", SourceOptions(headers=(("Authorization", "Bearer env:TOKEN"),))),
        ("openapi:a.json", SourceOptions(auth="hunter2")),
        ("openapi:a.json", SourceOptions(auth="env:")),
        ("openapi:a.json", SourceOptions(base_url="https://ada:pw@h.example")),
        ("mcp:x", SourceOptions(env=(("GITHUB_TOKEN", "x"),))),
        ("sql:q.sql", SourceOptions(database="postgresql://ada:pw@h/db")),
    ],
)
def test_credentials_in_options_are_refused(text: str, options: SourceOptions) -> None:
    with pytest.raises(InputError) as caught:
        check_options(parse_source(text, options))
    assert caught.value.code == "E1032"
    assert caught.value.field != "source"
    for secret in ("hunter2", TOKEN, "pw@"):
        assert secret not in str(caught.value.to_dict())


def test_references_and_other_values_are_accepted() -> None:
    headers = (("Authorization", "env:TOKEN"), ("X-GitHub-Api-Version", "2022-11-28"))
    check_options(parse_source("openapi:a.json", SourceOptions(headers=headers, auth="@token")))
    check_options(parse_source("mcp:x", SourceOptions(env=(("DEBUG", "1"), ("API_KEY", "@k")))))
    bearer = SourceOptions(headers=(("Authorization", "Bearer env:TOKEN"),))
    check_options(parse_source("mcp:http://h/mcp", bearer))
    check_options(parse_source("sql:q.sql", SourceOptions(database="shop.db")))
    check_options(parse_source("sql:q.sql", SourceOptions(database="env:URL")))
    assert not is_reference("env:") and not is_reference("@") and not is_reference("x")


@pytest.mark.parametrize(
    "text",
    [
        "openapi:https://ada:pw@h.example/api.json",
        "openapi:https://h.example/api.json?api_key=x",
        "mcp:https://h.example/mcp?token=x",
        "mcp:server --api-key hunter2",
        "mcp:server --token=hunter2",
        "mcp:env API_KEY=hunter2 server",
        f"mcp:server {TOKEN}",
        "sql:postgresql://ada:pw@h/db",
    ],
)
def test_credentials_in_targets_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        check_target(parse_source(text))
    assert caught.value.code == "E1032"
    for secret in ("hunter2", TOKEN, "pw@"):
        assert secret not in str(caught.value.to_dict())


def test_targets_without_credentials() -> None:
    for text in (
        "mcp:npx -y @scope/server --token-file ./token --verbose",
        "mcp:server --auth --port 8",
        "mcp:server --token env:TOKEN",
        "openapi:https://h.example/api.json?version=2",
        "files:tools",
        "tooli:http://127.0.0.1:8000",
    ):
        check_target(parse_source(text))


def test_commands_are_shown_without_credentials() -> None:
    for command, expected in (
        ("npx -y server", "npx -y server"),
        ("server --api-key hunter2 --port 8", "server --api-key [redacted] --port 8"),
        ("server --token=hunter2 x", "server --token=[redacted] x"),
        ("API_KEY=hunter2 server", "API_KEY=[redacted] server"),
        ("server --auth --port 8", "server --auth --port 8"),
    ):
        assert redact_command(command) == expected
    assert TOKEN not in redact_command(f"server {TOKEN}")
