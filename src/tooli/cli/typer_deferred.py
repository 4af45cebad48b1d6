"""Read the parameters of a command when Typer needs them, not when it builds the whole app.

Typer reads the parameters of every command at every start, although a line runs one command. Here,
a command has its parameters and its callback when they are first accessed. A command that Typer
cannot read fails when it is used.
"""

from __future__ import annotations

from typer.main import get_command, get_command_from_info, get_group
from typer.models import CommandInfo

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from typer._click.core import Command, Parameter

    from tooli.core.protocols import App


class DeferredInfo(CommandInfo):
    """Typer's record of a command, which makes the function that Typer calls on first access."""

    @property
    def callback(self) -> Callable[..., Any]:
        """The function that Typer calls."""
        attributes = vars(self)
        make_stub = attributes.get("tooli_make_stub")
        if make_stub is None:
            return attributes["callback"]
        stub = attributes["callback"] = make_stub()
        if not hasattr(stub, "tooli_failed"):
            attributes.pop("tooli_make_stub", None)
        return stub

    @callback.setter
    def callback(self, function: Callable[..., Any]) -> None:
        vars(self)["callback"] = function


def defer_stub(info: CommandInfo, make_stub: Callable[[], Callable[..., Any]]) -> None:
    """Make the function that Typer calls for a command when it is first needed.

    Until then, the record has the function of the command itself.
    """
    vars(info)["tooli_make_stub"] = make_stub
    info.__class__ = DeferredInfo


class DeferredCommandMixin:
    """Mixin for a command of Typer that reads its parameters on first access."""

    tooli_build: Callable[[CommandInfo], Command]

    def _attribute(self, name: str) -> Any:
        attributes = vars(self)
        info = getattr(attributes.get("callback"), "tooli_deferred_info", None)
        if info is not None:
            command = self.tooli_build(info)
            attributes.update(callback=command.callback, params=command.params)
        return attributes[name]

    @property
    def params(self) -> list[Parameter]:
        """The parameters."""
        return self._attribute("params")

    @params.setter
    def params(self, params: list[Parameter]) -> None:
        vars(self)["params"] = params

    @property
    def callback(self) -> Callable[..., Any] | None:
        """The function that Typer calls."""
        return self._attribute("callback")

    @callback.setter
    def callback(self, callback: Callable[..., Any] | None) -> None:
        vars(self)["callback"] = callback


def get_deferred_command(app: App, *, is_group: bool = False) -> Command:
    """Return Typer's command tree of an app, in which commands read their parameters when used.

    `is_group=True` returns a group also for an app with one command or without commands.
    """
    root: Any = app
    originals: list[tuple[dict[str, Any], list[CommandInfo]]] = []

    def build(info: CommandInfo) -> Command:
        return get_command_from_info(
            info,
            pretty_exceptions_short=root.pretty_exceptions_short,
            rich_markup_mode=root.rich_markup_mode,
        )

    try:
        for attributes in [*_walk_apps(root, set())]:
            infos: list[CommandInfo] = attributes["registered_commands"]
            if originals or len(infos) > 1:  # a single command of the app is needed anyway
                attributes["registered_commands"] = [_deferred(info, build) for info in infos]
            originals.append((attributes, infos))
        return get_group(root) if is_group else get_command(root)
    finally:
        for attributes, infos in originals:
            attributes["registered_commands"] = infos


def _walk_apps(app: Any, seen: set[int]) -> Iterator[dict[str, Any]]:
    """Yield the attributes of the app and of its groups, each once."""
    groups = getattr(app, "registered_groups", ())  # initializes the Typer of a Tooli
    attributes: dict[str, Any] = getattr(app, "__dict__", {})
    if "registered_commands" in attributes and id(app) not in seen:
        seen.add(id(app))
        yield attributes
        for group in groups:
            yield from _walk_apps(group.typer_instance, seen)


def _deferred(info: CommandInfo, build: Callable[[CommandInfo], Command]) -> CommandInfo:
    """Return a record from which Typer makes a command without parameters, if that is possible."""
    if "tooli_make_stub" not in vars(info):
        return info
    function = vars(info)["callback"]

    def placeholder() -> None: ...

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(placeholder, name, getattr(function, name))
    vars(placeholder)["tooli_deferred_info"] = info
    base: Any = info.cls
    attributes = {"tooli_build": staticmethod(build)}
    light = CommandInfo()
    vars(light).update(vars(info))
    del vars(light)["tooli_make_stub"]
    light.callback = placeholder
    light.cls = type(base.__name__, (DeferredCommandMixin, base), attributes)
    return light
