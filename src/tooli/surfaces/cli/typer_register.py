"""What was registered with a Tooli, given to the real Typer: commands as stubs, in order."""

from __future__ import annotations

import functools

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from tooli.surfaces.cli.typer_lane import Door, call_tool, genuine
from tooli.surfaces.cli.typer_params import is_documented, needs_translation, signature

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.contract.tool import Tool


def realise(app: Any) -> None:
    """Give everything that was registered to the real Typer."""
    house = app._house
    settings = dict(house.settings)
    settings["cls"] = _group_class(app, settings.get("cls"))
    genuine(app).__init__(app, **settings)
    for registration in house.commands:
        give_command(app, registration)
    for inner, said in house.groups:
        give_group(app, inner, said)
    if house.callback is not None:
        give_callback(app, *house.callback)


def give_command(app: Any, registration: Any) -> None:
    """Register one command with the real Typer: its stub, and a class that knows the app."""
    from tooli.contract.reading import COMMAND_KEYWORDS

    said = {k: v for k, v in registration.said.items() if k not in COMMAND_KEYWORDS}
    base = said.pop("cls", None) or TyperCommand
    said["cls"] = type(base.__name__, (Door, base), {"tooli_app": app})
    name = registration.name
    if name is None and registration.target is not None:
        name = registration.word
    stub = _stub(app, registration)
    doc = getattr(stub, "tooli_help", None)
    if doc is not None:
        said.setdefault("help", doc)
    genuine(app).command(app, name, **said)(stub)
    app.registered_commands[-1].tooli = registration


def give_group(app: Any, inner: Any, said: dict[str, Any]) -> None:
    """Put another app below this one, in the real Typer."""
    genuine(app).add_typer(app, inner, **said)


def give_callback(app: Any, fn: Callable[..., Any], said: dict[str, Any]) -> None:
    """Register the app's callback with the real Typer."""
    said = dict(said)
    if said.get("cls") is not None:
        said["cls"] = _group_class(app, said["cls"])
    genuine(app).callback(app, **said)(_plain_callback(fn))


def _plain_callback(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A callback that Typer can read: one that uses our Option or Argument is translated."""
    from tooli.contract.reading import read_tool

    tool = read_tool(fn, app="", path=("",), said={})
    if not any(needs_translation(p) for p in tool.params):
        return fn

    @functools.wraps(fn)
    def called(**values: Any) -> Any:
        return fn(**values)

    vars(called)["__signature__"] = signature(tool)
    called.__annotations__ = {}
    return called


def _group_class(app: Any, base: Any) -> type:
    base = base or TyperGroup
    return type(base.__name__, (Door, base), {"tooli_app": app})


def _stub(app: Any, registration: Any) -> Callable[..., Any]:
    """What Typer calls in place of the function: the values go through the pipeline."""
    from tooli.errors import DefinitionError

    try:
        fn = registration.fn
    except DefinitionError as mistake:
        return _unloadable(mistake)
    try:
        tool: Tool = registration.tool((registration.word,))
    except DefinitionError:
        return fn  # Typer may know better, or says in its own words what is wrong

    @functools.wraps(fn)
    def stub(**values: Any) -> Any:
        return call_tool(app, registration, values)

    if any(needs_translation(p) for p in tool.params) or is_documented(tool):
        vars(stub)["__signature__"] = signature(tool)
        stub.__annotations__ = {}
        if is_documented(tool) and not registration.said.get("help"):
            doc = tool.doc
            vars(stub)["tooli_help"] = f"{doc.summary}\n\n{doc.description}".strip()
    return stub


def _unloadable(mistake: Exception) -> Callable[..., Any]:
    """What stands in for a lazy command that cannot be loaded: it fails when it is called."""

    def fails() -> None:
        raise mistake

    return fails


def adopt(app: Any, command: Any) -> Any:
    """Typer's own command tree of an app, with the commands of plain Typers in it made tools."""
    for path, registration in app.tree().walk():
        if not registration.foreign:
            continue
        parent: Any = command
        for word in path[:-1]:
            parent = getattr(parent, "commands", {}).get(word)
        found = getattr(parent, "commands", {}).get(path[-1])
        if parent is None or found is None or isinstance(found, Door):
            continue
        parent.commands[path[-1]] = _adopted(app, registration, found)
    return command


def _adopted(app: Any, registration: Any, found: Any) -> Any:
    """A command of somebody else's Typer, made again from the same information, with our stub."""
    fields: dict[str, Any] = registration.info.__dict__
    said = {name: value for name, value in fields.items() if name != "tooli"}
    base: Any = said.get("cls") or TyperCommand
    said["cls"] = type(base.__name__, (Door, base), {"tooli_app": app})
    said["callback"] = _stub(app, registration)
    return get_command_from_info(
        CommandInfo(**said),
        pretty_exceptions_short=app.pretty_exceptions_short,
        rich_markup_mode=getattr(found, "rich_markup_mode", None),
    )
