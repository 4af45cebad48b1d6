"""Commands that only Typer can find: aliases, default commands, positional callbacks."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from tooli import Tooli
from tooli.cli.argv import CommandLine, parse_command_line
from tooli.cli.typer_lookup import find_with_typer, flag_widths, take_undeclared_arguments
from tooli.cli.typer_register import build_command


class Aliases(TyperGroup):
    """Finds `show` by every word that begins with s."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, "show" if cmd_name[:1] == "s" else cmd_name)


@pytest.fixture
def app() -> Tooli:
    app = Tooli("store", cls=Aliases)

    @app.callback()
    def main(level: int = 0, json: bool = False) -> None: ...

    @app.command()
    def show(name: str, size: int = 1) -> None: ...

    @app.command(context_settings={"allow_extra_args": True})
    def run(ctx: typer.Context) -> None: ...

    return app


def test_line_needs_lookup(app: Tooli) -> None:
    assert parse_command_line(app.tree(), ["show", "x"]).needs_lookup
    plain = Tooli("plain")
    plain.command()(lambda: None)
    assert not parse_command_line(plain.tree(), []).needs_lookup


def test_alias_is_the_command_itself(app: Tooli) -> None:
    line = find_with_typer(app, ["--level", "2", "sh", "x", "--size", "3", "--yes"])
    assert line.path == ("show",)
    assert line.tool is not None
    assert line.tool.key == "show"
    assert line.typer_argv == ["--level", "2", "sh", "x", "--size", "3"]
    assert line.options == {"yes": True}
    assert line.typer_argv[: line.command_prefix_length] == ["--level", "2", "sh"]


def test_flag_of_the_callback_is_not_a_framework_flag(app: Tooli) -> None:
    line = find_with_typer(app, ["--json", "sh", "x", "--tooli-jsonl"])
    assert line.options == {"output": "jsonl"}
    assert line.typer_argv == ["--json", "sh", "x"]


def test_arguments_of_a_command_that_passes_them_on(app: Tooli) -> None:
    line = find_with_typer(app, ["run", "--yes", "-q", "--tooli-yes", "--", "--tooli-json"])
    assert line.options == {"yes": True}
    assert line.typer_argv == ["run", "--yes", "-q", "--", "--tooli-json"]


@pytest.mark.parametrize(
    ("argv", "unknown", "builtin"),
    [
        (["docs"], "docs", None),
        (["tooli", "docs"], "tooli", "tooli"),
        ([], None, None),
        (["--nope", "show"], None, None),
    ],
)
def test_unknown_command_is_left_to_typer(
    app: Tooli, argv: list[str], unknown: str | None, builtin: str | None
) -> None:
    line = find_with_typer(app, argv)
    assert (line.tool, line.unknown_command, line.builtin) == (None, unknown, builtin)
    assert line.typer_argv == argv
    assert not line.problems


def test_callback_with_positional_arguments() -> None:
    app = Tooli("project")

    @app.callback()
    def main(name: str) -> None: ...

    @app.command()
    def build() -> None: ...

    line = find_with_typer(app, ["tooli", "tooli"])
    assert (line.unknown_command, line.builtin) == ("tooli", None)
    line = find_with_typer(app, ["docs", "build", "--json"])
    assert (line.path, line.options) == (("build",), {"output": "json"})


def test_class_that_needs_its_callback_is_left_to_typer() -> None:
    class NeedsObject(TyperGroup):
        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return ctx.obj["commands"][cmd_name]

    app = Tooli("late", cls=NeedsObject)
    app.command()(lambda: None)
    app.command("two")(lambda: None)
    line = find_with_typer(app, ["x", "--json"])
    assert (line.unknown_command, line.options) == ("x", {"output": "json"})


def test_flag_widths(app: Tooli) -> None:
    assert flag_widths(build_command(app)) == {"--level": 1, "--json": 0, "--no-json": 0} | {
        "--install-completion": 0,
        "--show-completion": 0,
    }


def test_value_of_a_prefixed_flag(app: Tooli) -> None:
    line = CommandLine(app.tree())
    rargs = ["3", "--tooli-limit", "--limit", "a"]
    take_undeclared_arguments(line, rargs)
    assert (line.typer_argv, rargs) == (["a", "--limit"], [])
    assert "limit" in line.options
