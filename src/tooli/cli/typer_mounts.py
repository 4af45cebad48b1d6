"""Make Typer's command tree like the tree of an app with providers, transforms or versions.

Typer builds its commands from the functions that are registered with it. Tools of providers and
transformed commands are only in the tree of the app. This module adds them to the groups of Typer.
Tools of providers are added when a group is listed, or when it does not have a requested name.
"""

from __future__ import annotations

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from tooli.cli.typer_params import escape_markup
from tooli.core import TYPER_COMMAND_KEYWORDS
from tooli.core.docstring import docstring_of
from tooli.providers import known_names
from tooli.providers.provider_mounts import LazyNames

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from typer._click.core import Command

    from tooli.core.protocols import App
    from tooli.providers import CommandGroup, Registration

    MakeClass = Callable[[App, type], type]
    MakeStub = Callable[[App, Registration], Callable[..., object]]


class MountedCommands:
    """Adds the commands of the app's tree to the groups of Typer."""

    def __init__(self, app: App, make_class: MakeClass, make_stub: MakeStub) -> None:
        self._app = app
        self._make_class = make_class
        self._make_stub = make_stub
        self._known: dict[Registration, Command] = {}  # the commands that Typer has built

    def fill(self, command: Command, tree: CommandGroup) -> None:
        """Put the commands of the tree into the root command of Typer."""
        self._collect(command)
        self._fill(command, tree, command)

    def _collect(self, command: Command) -> None:
        for inner in getattr(command, "commands", {}).values():
            registration = getattr(inner.callback, "tooli_registration", None)
            if registration is None:
                self._collect(inner)
            else:
                self._known[registration] = inner

    def _fill(self, holder: Any, group: CommandGroup, old: object) -> None:
        """Put the commands of a level into a group of Typer. `old` is the level in Typer's tree."""
        old_commands: dict[str, Command] = getattr(old, "commands", {})
        own: dict[str, Command] = {}
        for name, registration in known_names(group.commands).items():
            own[name] = self._find_command(name, registration)
        for name, inner in known_names(group.groups).items():
            before = old_commands.get(name)
            if before is not None and not inner.has_mounts and holder is old:
                own[name] = before
                continue
            made: Any = before if hasattr(before, "commands") else self._make_group(name, inner)
            self._fill(made, inner, before)
            own[name] = made
        holder.commands = own
        if group.mounts:
            holder.commands = LazyNames(own, lambda: self._load(group, own))

    def _find_command(self, name: str, registration: Registration) -> Command:
        known = self._known.get(registration)
        return self._make_command(name, registration) if known is None else known

    def _load(self, group: CommandGroup, own: dict[str, Command]) -> Iterator[tuple[str, Command]]:
        for name, registration in group.commands.items():
            if name not in own:
                yield name, self._make_command(name, registration)
        for name, inner in group.groups.items():
            if name not in own:
                made: Any = self._make_group(name, inner)
                made.commands = dict(self._load(inner, {}))
                yield name, made

    def _make_group(self, name: str, group: CommandGroup) -> Command:
        return self._make_class(self._app, TyperGroup)(
            name=name, help=escape_markup(group.description), commands={}
        )

    def _make_command(self, name: str, registration: Registration) -> Command:
        app: Any = self._app
        kwargs: dict[str, Any] = {
            key: value
            for key, value in registration.kwargs.items()
            if key in TYPER_COMMAND_KEYWORDS and key not in ("cls", "help", "deprecated")
        }
        stub = self._make_stub(app, registration)
        help_text = registration.kwargs.get("help") or getattr(stub, "tooli_help", None)
        info = CommandInfo(
            name,
            cls=self._make_class(app, registration.kwargs.get("cls") or TyperCommand),
            callback=stub,
            help=help_text or escape_markup(docstring_of(registration.fn)),
            deprecated=bool(registration.kwargs.get("deprecated")),
            **kwargs,
        )
        return get_command_from_info(
            info,
            pretty_exceptions_short=getattr(app, "pretty_exceptions_short", True),
            rich_markup_mode=getattr(app, "rich_markup_mode", None),
        )
