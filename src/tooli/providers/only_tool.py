"""Run the only tool of an app without its name, as Typer runs the only command of an app.

    tooli run exe:git status    is    tooli run exe:git git status

This holds for an app that has nothing but one provider without a namespace, and that has one tool.
With its name, the tool can always be called.
"""

from __future__ import annotations

import os

from tooli.core._hot_tables import INFO_OPTIONS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.core.protocols import ReadLine, TyperApp
    from tooli.providers import CommandGroup


def name_only_tool(root: CommandGroup, argv: Sequence[str], line: ReadLine) -> list[str] | None:
    """Return a line that names no command with the name of the only tool; None if it stays.

    A first word that the tool cannot take stays an unknown command. Options such as `--schema`
    that are alone belong to the app. `--help` describes a program, if it is the tool.
    """
    state = root.state
    if line.path or line.builtin or state.commands or state.groups or state.served_typer:
        return None
    if root.typer_reason or len(root.commands) != 1 or len(root.groups):
        return None
    if any([mount.problems for mount in root.mounts]):  # the word may name a tool that is missing
        return None
    name, registration = next(iter(root.commands.items()))
    has_words = bool(line.unknown_command or line.problems or "--" in argv)
    if not has_words and not INFO_OPTIONS.isdisjoint(line.options):
        program = os.path.splitext(root.mounts[0].provider.name)[0].replace("_", "-")
        return [name, *argv] if "help" in line.options and name == program else None
    if line.unknown_command is not None and state.transforms:  # it may be a tool that is left out
        return None
    if line.unknown_command is not None:
        tool = registration.tool((name,), root)
        own_flags = [flag for param in tool.params for flag in param.flags]
        takes_words = any([param.kind == "argument" for param in tool.params])
        if not takes_words and argv[0].partition("=")[0] not in own_flags:
            return None
    return [name, *argv]


def make_group(app: TyperApp) -> None:
    """Let Typer make a group of an app with providers, even if it has no other commands."""
    from typer.models import TyperInfo

    if app.registered_callback is None:
        app.registered_callback = TyperInfo()
        vars(app.registered_callback)["tooli_makes_group"] = True
