"""Commands of an app, registered with the real Typer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from tooli import NotFoundError, Option, SecretInput, Tooli
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


class Size(BaseModel):
    width: int = 1


def app_with_callback(annotation: Any, default: Any) -> Tooli:
    app = Tooli("a")

    def main(ctx: typer.Context, value: Any = default) -> None:
        ctx.obj = value

    main.__annotations__["value"] = annotation
    app.callback()(main)

    @app.command()
    def show(ctx: typer.Context) -> str:
        return repr(ctx.obj)

    @app.command()
    def other() -> None: ...

    return app


@pytest.mark.parametrize(
    ("annotation", "default", "text", "expected", "expected_default"),
    [
        (int | str, None, "3", "3", "None"),
        (int | str, None, "x", "'x'", "None"),
        (set[str], frozenset(), "a", "{'a'}", "set()"),
        (frozenset[int], frozenset(), "1", "frozenset({1})", "frozenset()"),
        (dict[str, int], None, '{"a": 2}', "{'a': 2}", "None"),
        (Size, Size(width=4), '{"width": 2}', "Size(width=2)", "Size(width=4)"),
    ],
)
def test_callbacks_get_converted_values(
    annotation: Any, default: Any, text: str, expected: str, expected_default: str
) -> None:
    app = app_with_callback(annotation, default)
    assert invoke(app, "--value", text, "show").result == expected
    assert invoke(app, "show").result == expected_default


def test_invalid_values_of_callbacks_are_input_errors() -> None:
    app = app_with_callback(Size, None)
    error = invoke(app, "--value", '{"width": "x"}', "show").error
    assert error is not None
    assert (error["code"], error["field"]) == ("E1003", "value.width")
    assert error["suggestion"]["fix"] == "Give 'value' a JSON object {width?:int} (or @file)."
    assert "argv" not in error["suggestion"]
    assert "example" not in error["suggestion"]


def test_secrets_in_callbacks_are_refused_on_the_command_line() -> None:
    app = app_with_callback(SecretInput, None)
    error = invoke(app, "--value", "env:HOME", "show").error
    assert error is not None
    assert "main(value): callbacks do not support SecretInput" in error["message"]


@pytest.mark.parametrize("has_callback", [False, True])
@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["a" * 300], "file"),
        (["x/" * 5000], "file"),
        (["a", "--more", "b", "--more", "c" * 300], "more.1"),
    ],
)
def test_long_path_is_refused_where_typer_parses_too(
    has_callback: bool, words: list[str], field: str
) -> None:
    app = Tooli("files")
    if has_callback:
        app.callback()(lambda: None)

    @app.command()
    def size(file: Path, more: Annotated[list[Path], Option()] = []) -> int:  # noqa: B006
        return len(str(file))

    @app.command()
    def show(file: Path) -> None:
        print(len(str(file)))

    error = invoke(app, "size", *words, "--json").error
    assert (error["code"], error["field"]) == ("E1003", field)
    assert "bytes; the maximum is" in error["message"]
    assert invoke(app, "show", "a" * 300, "--text").stdout == "300\n"  # as with Typer
