"""The options of a source, in the words of a command line."""

from __future__ import annotations

import pytest

from tooli.errors import InputError
from tooli.sources.parameters import count_option_words, parse_option_words, read_options
from tooli.sources.source_grammar import NO_OPTIONS, SOURCE_OPTIONS, SourceOptions, parse_source


def test_words_of_options_are_counted() -> None:
    for words, count in (
        ([], 0),
        (["app.py"], 0),
        (["--json", "app.py"], 0),
        (["--include", "a", "app.py"], 2),
        (["--include=a", "--read-only", "@x", "--include", "b"], 2),
        (["--header", "A=env:B", "--trusted", "mcp:x"], 3),
        (["--header"], 1),
    ):
        assert count_option_words(words) == count, words


def test_options_survive_the_way_through_their_words() -> None:
    options = SourceOptions(("a", "b"), ("c",), True, (("A", "env:B=C"),), (), "env:T", "http://h")
    words = parse_source("openapi:a.json", options).words[:-1]
    assert count_option_words(words) == len(words)
    assert parse_option_words(words) == options
    assert parse_option_words([]) == NO_OPTIONS
    assert parse_option_words(["--header=A=b", "--auth=env:X"]).headers == (("A", "b"),)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--include"], "--include has no value"),
        (["--auth="], "--auth has no value"),
        (["--read-only=yes"], "--read-only takes no value"),
        (["--header", "Accept"], "--header: must be NAME=VALUE"),
        (["--env", "=x"], "--env: must be NAME=VALUE"),
    ],
)
def test_words_that_are_no_options(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_option_words(words)


def test_every_option_is_a_parameter_of_the_commands() -> None:
    from tooli.launcher import launcher

    for name in ("tools", "serve", "adopt"):
        tool = launcher.find(name)
        assert tool is not None
        flags = {param.name: param.flags for param in tool.params}
        for option in SOURCE_OPTIONS:
            assert option.flag in flags[option.field], (name, option)


def test_parameters_of_a_command() -> None:
    given = {"include": ["a"], "exclude": [], "headers": ["A = env:B"], "source": "x"}
    assert read_options(given) == SourceOptions(include=("a",), headers=(("A", "env:B"),))
