"""Commands of an app, registered with the real Typer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from tooli import NotFoundError, Option, Tooli
from tooli.cli.typer_register import (
    TooliCommandMixin,
    as_typer,
    is_typer,
    subcommands,
    wrap_plain_commands,
)
from tooli.testing import invoke

Answer = Callable[..., tuple[int, str, str]]


def command_of(app: Tooli) -> typer.core.TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    return command


def test_every_command_is_registered(shop: Tooli) -> None:
    command = command_of(shop)
    assert list(command.commands) == ["price", "names", "count-up", "drop"]
    assert isinstance(command, TooliCommandMixin)
    assert all(isinstance(inner, TooliCommandMixin) for inner in command.commands.values())


def test_later_commands_and_groups_are_registered(shop: Tooli) -> None:
    command_of(shop)
    inner = Tooli("inner")

    @inner.command()
    def leaf() -> None: ...

    @inner.command()
    def twig() -> None: ...

    @shop.command()
    def late() -> None: ...

    shop.add_typer(inner, name="inner")
    commands = command_of(shop).commands
    assert "late" in commands
    assert list(subcommands(commands["inner"])) == ["leaf", "twig"]
    assert subcommands(commands["late"]) == {}
    assert subcommands(None) == {}


def test_custom_command_class_is_kept(shop: Tooli) -> None:
    class Loud(typer.core.TyperCommand):
        pass

    @shop.command(cls=Loud)
    def shout() -> None: ...

    assert isinstance(command_of(shop).commands["shout"], Loud)


def test_callback_gets_its_options(shop: Tooli, answer: Answer) -> None:
    seen: list[int] = []

    @shop.callback()
    def before(level: int = Option(1, help="how loud")) -> None:
        seen.append(level)

    code, out, _ = answer("--level", "3", "price", "pear", "--text")
    assert (code, seen) == (0, [3])
    assert "pear" in out


def test_lazy_command_that_cannot_be_loaded_fails_when_called(shop: Tooli) -> None:
    shop.lazy_command("no.such.module:fn", name="gone")
    assert "gone" in command_of(shop).commands


def test_app_inside_a_plain_typer_runs_its_tools(shop: Tooli) -> None:
    outer = typer.Typer()
    outer.add_typer(shop, name="shop")

    @outer.command()
    def other() -> None: ...

    result = CliRunner().invoke(outer, ["shop", "price", "pear", "--count", "x"])
    assert result.exit_code == 2
    assert CliRunner().invoke(outer, ["shop", "price", "pear"]).exit_code == 0


def test_commands_of_a_plain_typer_become_tools(shop: Tooli) -> None:
    plain = typer.Typer()

    @plain.command()
    def one() -> None: ...

    @plain.command()
    def two() -> None: ...

    shop.add_typer(plain, name="plain")
    command = command_of(shop)
    before = subcommands(command.commands["plain"])["one"]
    assert not isinstance(before, TooliCommandMixin)
    wrapped = subcommands(wrap_plain_commands(shop, command))["plain"]
    assert isinstance(subcommands(wrapped)["one"], TooliCommandMixin)


def test_help_ends_with_the_framework_options(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Framework options" in CliRunner().invoke(shop, ["--help", "--text"]).output
    monkeypatch.setenv("TOOLI_FRAMEWORK_HELP", "0")
    assert "Framework options" not in CliRunner().invoke(shop, ["--help", "--text"]).output


@pytest.mark.parametrize(
    ("incomplete", "expected"),
    [("--js", ["--json", "--jsonl"]), ("--output=y", ["--output=yaml"]), ("--count", ["--count"])],
)
def test_completion_includes_framework_options(
    shop: Tooli, incomplete: str, expected: list[str]
) -> None:
    command = command_of(shop).commands["price"]
    with command.make_context("price", ["x"], resilient_parsing=True) as context:
        items = command.shell_complete(context, incomplete)
    assert sorted(item.value for item in items) == expected


def test_completion_without_framework_options(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_FRAMEWORK_HELP", "0")
    command = command_of(shop).commands["price"]
    with command.make_context("price", ["x"], resilient_parsing=True) as context:
        assert command.shell_complete(context, "--js") == []


def _documented(count: int):
    """Count [b]up[/b].

    Args:
        count: How far.

    Returns:
        The last number.

    Examples:
        app documented 3
    """


def test_docstring_of_a_printing_command_is_as_in_typer() -> None:
    """Typer shows the whole docstring, and nothing else about the parameters."""
    app, plain = Tooli("app", framework_help=False), typer.Typer()
    app.command()(_documented)
    plain.command()(_documented)
    expected = CliRunner().invoke(plain, ["--help"], prog_name="app").output
    assert "Returns:" in expected
    assert CliRunner().invoke(app, ["--help"], prog_name="app").output == expected


def test_docstring_of_a_command_with_a_result_keeps_all_but_the_parameters() -> None:
    app = Tooli("app", framework_help=False)

    @app.command(help=None)
    def documented(count: int) -> int:
        return count

    documented.__doc__ = _documented.__doc__
    text = CliRunner().invoke(app, ["--help", "--text"], prog_name="app").output
    assert "Returns:" in text
    assert "app documented 3" in text
    assert "Args:" not in text
    assert "How far." in text


def test_registered_function_can_be_called_with_positional_arguments(shop: Tooli) -> None:
    info = shop.registered_commands[0]
    assert info.callback is not None
    assert info.callback("apple", 2) == info.callback(item="apple", count=2)


def test_command_added_through_typer_is_not_a_tool(shop: Tooli) -> None:
    assert not is_typer(object())  # type: ignore[arg-type]
    command_of(shop)
    assert is_typer(shop)
    as_typer(shop).command("bare")(lambda: None)
    assert shop.registered_commands[-1].name == "bare"
    assert not hasattr(shop.registered_commands[-1], "tooli")


def test_prompt_is_kept_after_a_run_without_a_person(
    shop: Tooli, capsys: pytest.CaptureFixture[str]
) -> None:
    @shop.command()
    def ask(name: str = typer.Option(..., prompt="Your name")) -> str:
        return f"hello {name}"

    command = command_of(shop)
    with pytest.raises(SystemExit):
        command.main(["ask", "--json"], prog_name="shop")
    assert "E1002" in capsys.readouterr().out
    (option,) = [param for param in command.commands["ask"].params if param.name == "name"]
    assert vars(option)["prompt"] == "Your name"


def test_prompt_is_answered_by_stdin_of_a_test(shop: Tooli) -> None:
    @shop.command()
    def ask(name: str = typer.Option(..., prompt=True)) -> str:
        return f"hello {name}"

    result = CliRunner().invoke(shop, ["ask", "--text"], input="ada\n")
    assert "hello ada" in result.output


@pytest.mark.parametrize("mode", ["--text", "--json", "--jsonl", "--plain"])
def test_result_callback_gets_the_value_in_every_mode(mode: str) -> None:
    """It does not run after a failure, as with Typer."""
    seen: list[object] = []
    app = Tooli("a", result_callback=seen.append)

    @app.command()
    def double(number: int) -> int:
        return 2 * number

    @app.command()
    def fail() -> int:
        raise NotFoundError("nothing")

    invoke(app, "double", "4", mode)
    assert seen == [8]
    assert invoke(app, "fail", mode).exit_code == 10
    assert seen == [8]


class Filter(BaseModel):
    pattern: str = Field(description="A glob.")
    depth: int = Field(3, description="How deep.")


@pytest.mark.parametrize("markup", [None, "rich"])
def test_help_at_a_terminal_has_the_fields_of_models(markup: Any) -> None:
    app = Tooli("a", rich_markup_mode=markup)

    @app.command()
    def find(where: Filter) -> None:
        """Find."""

    shown = " ".join(invoke(app, "--help", "--text").stdout.split())
    assert "--where.pattern str A glob. [required]" in shown
    assert "--where.depth int How deep. [default: 3]" in shown
