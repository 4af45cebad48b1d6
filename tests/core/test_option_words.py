"""Framework options in the words of each interface."""

from __future__ import annotations

import pytest

from tooli.core.call import Call, Caller
from tooli.core.option_words import (
    INTERFACE_WORDS,
    option_argv,
    option_flag,
    query_text,
    spell_option,
)
from tooli.schema.tool_reader import read_tool


def plain(): ...


def taken(yes: bool = False): ...


def call_of(surface: str, fn=plain) -> Call:
    return Call(read_tool(fn, app="app", path=("tool",), kwargs={}), {}, Caller(surface), [])


@pytest.mark.parametrize(
    ("surface", "expected", "expected_if_taken"),
    [
        ("cli", "--yes", "--tooli-yes"),
        ("http", "?yes=true", "?yes=true"),
        ("mcp", '"yes": true', '"yes": true in _meta["io.tooli/options"]'),
        ("python", "yes=True", "app.options(yes=True)"),
    ],
)
def test_flag(surface, expected, expected_if_taken) -> None:
    assert spell_option(call_of(surface), "yes") == expected
    assert spell_option(call_of(surface, taken), "yes") == expected_if_taken


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        ("cli", "--timeout 5"),
        ("http", "?timeout=5"),
        ("mcp", '"timeout": 5'),
        ("python", "timeout=5"),
    ],
)
def test_option_with_a_value(surface, expected) -> None:
    assert spell_option(call_of(surface), "timeout", 5) == expected


def test_mcp_quotes_text() -> None:
    assert spell_option(call_of("mcp"), "filter", "a > 1") == '"filter": "a > 1"'


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"output": "json"}, ["--json"]),
        ({"output": "yaml"}, ["--output", "yaml"]),
        ({"verbose": 2}, ["--verbose", "--verbose"]),
        ({"timeout": 30.0, "limit": 0}, ["--timeout", "30", "--limit", "0"]),
        ({"timeout": 0.5}, ["--timeout", "0.5"]),
        ({"filter": "-x"}, ["--filter=-x"]),
        ({"select": ["a", "b"]}, ["--fields", "a,b"]),
        ({"yes": False, "cursor": None}, []),
    ],
)
def test_options_as_words(options, words) -> None:
    assert option_argv(options, None) == words


def test_flag_of_a_parameter_is_not_used() -> None:
    assert option_flag("yes", call_of("cli", taken).tool) == "--tooli-yes"


def test_spellings() -> None:
    assert INTERFACE_WORDS["cli"].spellings()["json"] == ("output", "json")
    assert INTERFACE_WORDS["cli"].spellings()["verbose"] == ("verbose", None)
    assert "json" not in INTERFACE_WORDS["http"].spellings()
    assert INTERFACE_WORDS["mcp"].spellings()["yes"] == ("yes", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (["a", "b"], "a,b"), (2.0, "2"), ("x", "x")],
)
def test_query_text(value, text) -> None:
    assert query_text(value) == text
