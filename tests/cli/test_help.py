"""Help as plain text."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from pydantic import BaseModel, Field

from tooli import Argument, Option, Tooli
from tooli.cli.help import format_app_help, format_tool_help, wrap


class Fruit(BaseModel):
    name: str = Field(description="What it is")
    grams: int = 100


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
def test_wrap_breaks_lines_between_words(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


def test_tool_help_lists_arguments_and_options(shop: Tooli) -> None:
    tool = shop.find("price")
    assert tool is not None
    lines = format_tool_help(shop._state, tool, "shop", ("price",), 80).splitlines()
    assert lines[:3] == ["Usage: shop price [OPTIONS] ITEM", "", "Compute a price."]
    assert "  ITEM  what to buy [str; required]" in lines
    assert ["--count", "int", "how", "many", "[default:", "1]"] in map(str.split, lines)
    assert "Framework options:" in lines


def test_argument_without_default_is_required(shop: Tooli) -> None:
    tool = shop.find("count-up")
    assert tool is not None
    text = format_tool_help(shop._state, tool, "shop", ("count-up",), 80)
    assert "  STOP  the last number [int; required]" in text
    assert "--step int" in text
    assert "default: 1" in text


def test_list_argument_ends_with_an_ellipsis(shop: Tooli) -> None:
    tool = shop.find("names")
    assert tool is not None
    assert format_tool_help(shop._state, tool, "shop", ("names",), 80).startswith(
        "Usage: shop names ITEMS...\n"
    )


def test_app_help_lists_commands(shop: Tooli) -> None:
    text = format_app_help(shop.tree(), "shop", (), 80)
    assert text.startswith("Usage: shop COMMAND [ARGS]...\n\nSell fruit.\n\nCommands:\n")
    assert "  price     Compute a price." in text


def test_narrow_help_is_not_wider_than_the_terminal(shop: Tooli) -> None:
    text = format_app_help(shop.tree(), "shop", (), 40)
    commands = text.partition("Commands:\n")[2].partition("\n\n")[0]
    assert max(map(len, commands.splitlines())) <= 40


def test_hidden_command_is_not_listed(shop: Tooli) -> None:
    @shop.command(hidden=True)
    def secret() -> None:
        """Not shown."""

    assert "secret" not in format_app_help(shop.tree(), "shop", (), 80)


def _app_with_groups() -> Tooli:
    """Return an app whose groups get their help in every way that Typer knows."""
    app = Tooli("shop", description="Sell fruit.")
    staff = Tooli("staff", description="Manage the staff.\n\nOnly for owners.")
    plain = typer.Typer(help="Manage the stock.")
    called = Tooli("called")
    renamed = Tooli("renamed", description="Not shown.")
    secret = Tooli("secret", description="Not shown either.")

    @called.callback()
    def main() -> None:
        """Manage orders."""

    for group in (staff, plain, called, renamed, secret):
        group.command("show")(_show)
    app.add_typer(staff, name="staff")
    app.add_typer(plain, name="stock")
    app.add_typer(called, name="orders")
    app.add_typer(renamed, name="prices", help="Manage prices.")
    app.add_typer(secret, name="secret", hidden=True)
    return app


def _show() -> None:
    """Show it."""


@pytest.mark.parametrize("with_typer", [False, True])
def test_app_help_lists_groups_with_their_descriptions(with_typer: bool) -> None:
    app = _app_with_groups()
    if with_typer:
        assert app.registered_groups
    text = format_app_help(app.tree(), "shop", (), 80)
    commands = text.partition("Commands:\n")[2].partition("\n\n")[0]
    assert commands.splitlines() == [
        "  staff   Manage the staff.",
        "  stock   Manage the stock.",
        "  orders  Manage orders.",
        "  prices  Manage prices.",
    ]


def test_group_help_starts_with_the_description() -> None:
    group = _app_with_groups().tree().groups["staff"]
    text = format_app_help(group, "shop", ("staff",), 80)
    assert text.startswith(
        "Usage: shop staff COMMAND [ARGS]...\n\n"
        "Manage the staff.\n\nOnly for owners.\n\nCommands:\n"
    )


def test_builtin_group_help_has_a_description(
    shop: Tooli, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        shop(["mcp", "--help", "--plain"])
    assert (
        "\n\nServe the app to MCP clients, or add it to their settings.\n\nCommands:\n"
        in capsys.readouterr().out
    )


def test_app_help_has_callback_options_whole_summaries_and_the_epilog() -> None:
    app = Tooli("shop", epilog="Made with [red]:heart:[/red].")
    staff = Tooli(help="Manage [b]the[/b]\nstaff.\n\nOnly for owners.")
    staff.command("show")(_show)
    app.add_typer(staff, name="staff")

    @app.callback()
    def main(store: str = typer.Argument(...), fast: bool = Option(False, help="Go [i]fast[/i].")):
        """Sell fruit :sparkles:"""

    lines = format_app_help(app.tree(), "shop", (), 80).splitlines()
    assert lines[0] == "Usage: shop [OPTIONS] STORE COMMAND [ARGS]..."
    assert "Sell fruit ✨" in lines
    assert "  STORE  [str; required]" in lines
    assert "  --fast, --no-fast  Go fast." in lines
    assert "  staff  Manage the staff." in lines
    assert lines[-1] == "Made with ❤."


def test_tool_help_has_the_whole_docstring_the_fields_of_models_and_the_epilog() -> None:
    app = Tooli("shop")

    @app.command(epilog="See the [b]docs[/b].")
    def buy(fruit: Fruit) -> int:
        """Buy [b]fruit[/b].

        Args:
            fruit: What to [i]buy[/i].

        Returns:
            The price.

        Raises:
            KeyError: There is none.

        Examples:
            shop buy --fruit.name apple
        """
        return fruit.grams

    tool = app.find("buy")
    assert tool is not None
    text = format_tool_help(app._state, tool, "shop", ("buy",), 80)
    assert "Buy fruit.\n\nArguments:\n  FRUIT  What to buy. [json; required]\n\n" in text
    assert "  --fruit.name str   What it is [required]\n" in text
    assert "  --fruit.grams int  [default: 100]\n" in text
    assert "Returns:\n  The price.\n\nRaises:\n  KeyError  There is none.\n\n" in text
    assert "Examples:\n  shop buy --fruit.name apple\n" in text
    assert text.endswith("\n\nSee the docs.")


def test_help_without_framework_options(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_FRAMEWORK_HELP", "0")
    text = format_app_help(shop.tree(), "shop", (), 80)
    assert "Framework" not in text
    assert not text.endswith("\n")


def test_framework_options_have_the_same_title_everywhere(shop: Tooli) -> None:
    tool = shop.find("price")
    assert tool is not None
    app_help = format_app_help(shop.tree(), "shop", (), 80)
    tool_help = format_tool_help(shop._state, tool, "shop", ("price",), 80)
    title = "\n\nFramework options:\n"
    assert app_help.partition(title)[2] == tool_help.partition(title)[2] != ""


@pytest.mark.parametrize(
    ("option", "argument"), [(Option, Argument), (typer.Option, typer.Argument)]
)
def test_metavar_replaces_the_type_and_the_name(option: Any, argument: Any) -> None:
    app = Tooli("shop")

    def buy(
        what: str = argument(metavar="FRUIT"),
        others: list[str] = argument(default=[], metavar="FRUITS"),  # noqa: B008
        into: str = option("", metavar="DIR", help="Bag."),
    ) -> None:
        """Buy fruit."""

    app.command()(buy)
    tool = app.find("buy")
    assert tool is not None
    lines = format_tool_help(app._state, tool, "shop", ("buy",), 80).splitlines()
    assert lines[0] == "Usage: shop buy [OPTIONS] FRUIT [FRUITS]"
    assert "  FRUIT   [str; required]" in lines
    assert "  --into DIR  Bag." in lines
