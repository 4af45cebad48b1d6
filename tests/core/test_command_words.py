"""The words of a command line after the program."""

from __future__ import annotations

import pytest

from tooli import Tooli
from tooli.core.command_words import callback_options, command_words
from tooli.core.tool import Tool


def only_command(app: Tooli) -> Tool:
    return next(iter(app.catalog))


def make_app() -> Tooli:
    app = Tooli("finder")

    @app.command()
    def find(pattern: str) -> str:
        return pattern

    return app


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["x"], ["x"]),
        ([], []),
        (["docs"], ["find", "docs"]),
        (["find"], ["find", "find"]),
        (["x", "docs"], ["x", "docs"]),
    ],
)
def test_only_command_is_named_if_its_argument_is_a_name(argv: list[str], words: list[str]) -> None:
    assert command_words(only_command(make_app()), argv) == words


def test_printing_command_gets_every_word() -> None:
    app = Tooli("printer")
    app.command("show")(lambda word: print(word))
    assert command_words(only_command(app), ["docs"]) == ["docs"]


def test_commands_of_a_larger_app_have_their_path() -> None:
    app = make_app()
    app.command("other")(lambda: None)
    assert command_words(only_command(app), ["docs"]) == ["find", "docs"]


def test_options_of_callbacks_by_the_words_that_they_follow() -> None:
    app, group = make_app(), Tooli()
    app.add_typer(group, name="box")
    group.command("open")(lambda: None)
    group.command("close")(lambda: None)

    @group.callback()
    def choose(level: int = 3) -> None:
        print(level)

    found = callback_options(app.catalog)
    assert {path: [param.name for param in params] for path, params in found.items()} == {
        ("box",): ["level"]
    }
