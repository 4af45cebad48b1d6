"""What tooli adds to Typer's help and shell completion: small panels, flags, built-in commands.

Typer's commands load this module when they show help or complete a word.
"""

from __future__ import annotations

import sys
from importlib import import_module

from tooli.cli.builtin_names import builtin_completions
from tooli.cli.builtin_names import closest_builtin as closest_builtin
from tooli.cli.builtin_names import completed_builtins as completed_builtins
from tooli.cli.tracebacks import uses_rich
from tooli.core._hot_tables import FLAGS
from tooli.core.options import builtin_rows, help_rows
from tooli.core.output_modes import OUTPUT_MODES
from tooli.core.tool import is_structured

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem

    from tooli.core import AppState
    from tooli.core.protocols import App
    from tooli.providers import Registration


def print_panels(app: App, command: Command, ctx: Context, formatter: HelpFormatter) -> None:
    """Print what tooli adds to the help of a command, below the help of Typer."""
    print_model_fields(command, formatter)
    if ctx.parent is None or hasattr(ctx.parent.command, "tooli_app"):
        if ctx.parent is None:
            print_builtin_commands(app, command, formatter, ctx.command_path)
        if app._state.root.app_settings is not None:
            rows = import_module("tooli.cli.help").settings_rows(app._state.root.app_settings)
            _print_rows(command, formatter, "Settings", rows)
        print_framework_options(app._state.root, command, formatter)


def added_completions(
    app: App, command: Command, ctx: Context, incomplete: str, items: list[CompletionItem]
) -> list[CompletionItem]:
    """Return the completions that are not in `items`: settings, options, built-in commands."""
    root, texts = app._state.root, list[str]()
    if incomplete[:1] == "-" and root.app_settings is not None:
        flags = root.app_settings.flags.items()
        texts = [f for f, (param, _) in flags if f.startswith(incomplete) and not param.hidden]
    if not root.shows_framework_help:
        pass
    elif incomplete[:1] == "-":
        texts += _framework_completions(incomplete)
    elif ctx.parent is None and hasattr(command, "commands"):
        texts = builtin_completions(app, incomplete)
    if not texts:
        return []
    make_item = _completion_item_class()
    known = {item.value for item in items}
    return [make_item(text) for text in texts if text not in known]


def print_builtin_commands(
    app: App, command: Command, formatter: HelpFormatter, program: str
) -> None:
    """Print the built-in commands of an app in one small panel below Typer's help."""
    tree = app.tree()
    if tree.has_builtins:
        rows = builtin_rows(program, tree.names)
        _print_panel(app._state, command, formatter, "Built-in commands", rows)


def print_model_fields(command: Command, formatter: HelpFormatter) -> None:
    """Print the flags of the fields of models, such as `--user.name`, in a panel."""
    registration: Registration | None = getattr(command.callback, "tooli_registration", None)
    params = () if registration is None else registration.read_signature().params
    if any([is_structured(param.shape) for param in params]):
        field_rows = import_module("tooli.cli.help").field_rows  # loads schemas
        rows = [row for param in params for row in field_rows(param)]
        _print_rows(command, formatter, "Fields", rows)


def _completion_item_class() -> type[CompletionItem]:
    """Return the class of completions. Typer has contained Click since 0.26."""
    click = "typer._click" if "typer._click" in sys.modules else "click"
    return import_module(f"{click}.shell_completion").CompletionItem


def print_framework_options(state: AppState, command: Command, formatter: HelpFormatter) -> None:
    """Print the framework options in one small panel below Typer's help."""
    _print_panel(state, command, formatter, "Framework options", help_rows())


def _print_panel(
    state: AppState,
    command: Command,
    formatter: HelpFormatter,
    title: str,
    rows: Iterable[tuple[str, str]],
) -> None:
    """Print rows of two columns, unless the help shows nothing of the framework."""
    if state.shows_framework_help:
        _print_rows(command, formatter, title, rows)


def _print_rows(
    command: Command, formatter: HelpFormatter, title: str, rows: Iterable[tuple[str, str]]
) -> None:
    if getattr(command, "rich_markup_mode", None) is None or not uses_rich():
        with formatter.section(title):
            formatter.write_dl(list(rows))
        return
    from typer import rich_utils

    rich: Any = rich_utils  # it has the classes of rich that are needed here
    table = rich.Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(style="cyan", no_wrap=False)
    for row in rows:
        table.add_row(*map(rich.Text, row))  # no markup: "[required]" is text
    rich._get_rich_console().print(
        rich.Panel(table, title=title, title_align="left", border_style="dim")
    )


def _framework_completions(incomplete: str) -> list[str]:
    """Return the framework flags that start with `incomplete`, or the modes after `--output=`."""
    flag, equals, mode = incomplete.partition("=")
    if equals and FLAGS.get(flag, ("",))[0] == "output":
        return [f"{flag}={name}" for name in OUTPUT_MODES if name.startswith(mode)]
    return [name for name in FLAGS if name.startswith(incomplete) and len(name) > 2]
