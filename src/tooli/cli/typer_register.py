"""What was registered with a Tooli, given to the real Typer: commands as stubs, in order."""

from __future__ import annotations

import functools

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from tooli.cli.typer_params import is_documented, needs_translation, typer_signature
from tooli.cli.typer_runner import TooliCommandMixin, call_tool, typer_class
from tooli.core.app_state import COMMAND_SETTINGS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.tool import Tool


def initialize_typer(app: Any) -> None:
    """Give everything that was registered to the real Typer."""
    state = app._state
    settings = dict(state.settings)
    settings["cls"] = _group_class(app, settings.get("cls"))
    typer_class(app).__init__(app, **settings)
    for registration in state.commands:
        register_command(app, registration)
    for inner, kwargs in state.groups:
        register_group(app, inner, kwargs)
    if state.callback is not None:
        register_callback(app, *state.callback)


def register_command(app: Any, registration: Any) -> None:
    """Register one command with the real Typer: its stub, and a class that knows the app."""
    kwargs = {k: v for k, v in registration.settings.items() if k in COMMAND_SETTINGS}
    base = kwargs.pop("cls", None) or TyperCommand
    kwargs["cls"] = type(base.__name__, (TooliCommandMixin, base), {"tooli_app": app})
    name = registration.name
    if name is None and registration.target is not None:
        name = registration.command_name
    stub = _build_stub(app, registration)
    doc = getattr(stub, "tooli_help", None)
    if doc is not None:
        kwargs.setdefault("help", doc)
    typer_class(app).command(app, name, **kwargs)(stub)
    app.registered_commands[-1].tooli = registration


def register_group(app: Any, inner: Any, kwargs: dict[str, Any]) -> None:
    """Put another app below this one, in the real Typer."""
    typer_class(app).add_typer(app, inner, **kwargs)


def register_callback(app: Any, fn: Callable[..., Any], kwargs: dict[str, Any]) -> None:
    """Register the app's callback with the real Typer."""
    kwargs = dict(kwargs)
    if kwargs.get("cls") is not None:
        kwargs["cls"] = _group_class(app, kwargs["cls"])
    typer_class(app).callback(app, **kwargs)(_typer_callback(fn))


def _typer_callback(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A callback that Typer can read: one that uses our Option or Argument is translated."""
    from tooli.schema.tool_reader import read_tool

    tool = read_tool(fn, app="", path=("",), kwargs={})
    if not any(needs_translation(p) for p in tool.params):
        return fn

    @functools.wraps(fn)
    def called(**values: Any) -> Any:
        return fn(**values)

    vars(called)["__signature__"] = typer_signature(tool)
    called.__annotations__ = {}
    return called


def _group_class(app: Any, base: Any) -> type:
    base = base or TyperGroup
    return type(base.__name__, (TooliCommandMixin, base), {"tooli_app": app})


def _build_stub(app: Any, registration: Any) -> Callable[..., Any]:
    """What Typer calls in place of the function: the values go through the pipeline."""
    from tooli.errors import DefinitionError

    try:
        fn = registration.fn
    except DefinitionError as error:
        return _failing_stub(error)
    try:
        tool: Tool = registration.tool((registration.command_name,))
    except DefinitionError:
        return fn  # Typer may know better, or says in its own words what is wrong

    @functools.wraps(fn)
    def stub(**values: Any) -> Any:
        return call_tool(app, registration, values)

    if any(needs_translation(p) for p in tool.params) or is_documented(tool):
        vars(stub)["__signature__"] = typer_signature(tool)
        stub.__annotations__ = {}
        if is_documented(tool) and not registration.settings.get("help"):
            doc = tool.doc
            vars(stub)["tooli_help"] = f"{doc.summary}\n\n{doc.description}".strip()
    return stub


def _failing_stub(error: Exception) -> Callable[..., Any]:
    """What stands in for a lazy command that cannot be loaded: it fails when it is called."""

    def fails() -> None:
        raise error

    return fails


def wrap_plain_commands(app: Any, command: Any) -> Any:
    """Typer's own command tree of an app, with the commands of plain Typers in it made tools."""
    for path, registration in app.tree().walk():
        if not registration.is_from_plain_typer:
            continue
        parent: Any = command
        for word in path[:-1]:
            parent = getattr(parent, "commands", {}).get(word)
        found = getattr(parent, "commands", {}).get(path[-1])
        if parent is None or found is None or isinstance(found, TooliCommandMixin):
            continue
        parent.commands[path[-1]] = _wrap_command(app, registration, found)
    return command


def _wrap_command(app: Any, registration: Any, found: Any) -> Any:
    """A command of somebody else's Typer, made again from the same information, with our stub."""
    fields: dict[str, Any] = registration.info.__dict__
    kwargs = {name: value for name, value in fields.items() if name != "tooli"}
    base: Any = kwargs.get("cls") or TyperCommand
    kwargs["cls"] = type(base.__name__, (TooliCommandMixin, base), {"tooli_app": app})
    kwargs["callback"] = _build_stub(app, registration)
    return get_command_from_info(
        CommandInfo(**kwargs),
        pretty_exceptions_short=app.pretty_exceptions_short,
        rich_markup_mode=getattr(found, "rich_markup_mode", None),
    )
