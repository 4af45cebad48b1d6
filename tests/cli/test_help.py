"""Help as plain text."""

from __future__ import annotations

import pytest

from tooli import Tooli
from tooli.cli.help import format_app_help, format_tool_help, wrap


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 80, ["one two three"]),
        ("  indented text stays", 5, ["  indented text stays"]),
        ("first\n\nsecond", 80, ["first", "", "second"]),
        ("incomprehensible", 5, ["incomprehensible"]),
    ],
)
def test_wrap(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


def test_tool_help_lists_arguments_and_options(shop: Tooli) -> None:
    tool = shop.find("price")
    assert tool is not None
    lines = format_tool_help(tool, "shop", ("price",), 80).splitlines()
    assert lines[:3] == ["Usage: shop price [OPTIONS] ITEM", "", "Compute a price."]
    assert "  ITEM  what to buy [str; required]" in lines
    assert ["--count", "int", "how", "many", "[default:", "1]"] in map(str.split, lines)
    assert "Framework options:" in lines


def test_argument_without_default_and_bounds(shop: Tooli) -> None:
    tool = shop.find("count-up")
    assert tool is not None
    text = format_tool_help(tool, "shop", ("count-up",), 80)
    assert "  STOP  the last number [int; required]" in text
    assert "--step int" in text
    assert "default: 1" in text


def test_list_argument_has_dots(shop: Tooli) -> None:
    tool = shop.find("names")
    assert tool is not None
    assert format_tool_help(tool, "shop", ("names",), 80).startswith("Usage: shop names ITEMS...\n")


def test_app_help_lists_commands(shop: Tooli) -> None:
    text = format_app_help(shop._state, shop.tree(), "shop", (), 80)
    assert text.startswith("Usage: shop COMMAND [ARGS]...\n\nSell fruit.\n\nCommands:\n")
    assert "  price     Compute a price." in text


def test_narrow_help_is_not_wider_than_the_terminal(shop: Tooli) -> None:
    text = format_app_help(shop._state, shop.tree(), "shop", (), 40)
    commands = text.partition("Commands:\n")[2].partition("\n\n")[0]
    assert max(map(len, commands.splitlines())) <= 40


def test_hidden_command_is_not_listed(shop: Tooli) -> None:
    @shop.command(hidden=True)
    def secret() -> None:
        """Not shown."""

    assert "secret" not in format_app_help(shop._state, shop.tree(), "shop", (), 80)
