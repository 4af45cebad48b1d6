"""The program `tooli`: serve and inspect any Tooli or Typer app.

The app is a file (`app.py`, `app.py:cli`) or a module (`package.module:cli`). It needs no changes.
Every built-in command of an app can be run: `tooli docs llms app.py`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated

import tooli
from tooli.app import Tooli
from tooli.builtins import long_running, owns_stdout
from tooli.builtins.agent_commands import (
    AllowedHosts,
    DeferLoading,
    GracePeriod,
    Host,
    Port,
    Token,
    TokenFile,
    Transport,
    serve_mcp,
)
from tooli.builtins.approval_commands import add_approvals
from tooli.console_scripts import (
    find_entry_function,
    is_console_script,
    load_console_script,
    replace_typer,
)
from tooli.core import BUILTIN_COMMANDS, default_app_name
from tooli.errors import InputError, NotFoundError, ToolError
from tooli.schema.param_info import Argument, Option
from tooli.serving.dispatcher import GRACE_PERIOD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any, TypeGuard

    from typer import Typer

AppReference = Annotated[
    str,
    Argument(
        help="An installed program, or a file or module and the app in it: mytool, app.py, "
        "app.py:cli, package.mod:cli."
    ),
]

launcher = Tooli("tooli", description="Serve and inspect apps made with tooli or Typer.")
approvals = Tooli("approvals", description="Approve or deny waiting calls of any app.")
add_approvals(approvals)
launcher.add_typer(approvals, name="approvals")


@launcher.command()
@long_running
@owns_stdout
def serve(
    app: AppReference,
    transport: Transport = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    token_file: TokenFile = None,
    allow_host: AllowedHosts = [],  # noqa: B006  never changed
    defer_loading: DeferLoading = False,
    grace: GracePeriod = GRACE_PERIOD,
) -> None:
    """Serve an app to MCP clients, over HTTP with its HTTP API. The app needs no changes."""
    loaded = load_app(app)
    serve_mcp(
        loaded,
        transport,
        host,
        port,
        token,
        token_file,
        allow_host,
        defer_loading,
        grace,
        with_api=True,
    )


@launcher.command()
def tools(app: AppReference) -> list[dict[str, object]]:
    """List the tools of an app, each with its signature."""
    from tooli.providers.search import format_signature

    visible = [tool for tool in load_app(app).catalog if not tool.hidden]
    if not visible:
        text = f"{app!r} has no commands that can be listed: a custom class may create them."
        raise NotFoundError(text, field="app")
    return [{"name": tool.key, "signature": format_signature(tool)} for tool in visible]


@launcher.command(context_settings={"allow_interspersed_args": False})
def run(
    app: AppReference,
    arguments: Annotated[
        list[str], Argument(help="The command line of the app, with the options of tooli.")
    ] = [],  # noqa: B006  never changed
) -> None:
    """Run a Typer app with the output modes and options of tooli. The app needs no changes.

    Everything after the app belongs to its command line: `tooli run mytool list --json`.
    """
    load_program(app)
    raise InputError("Write the options after the app: tooli run APP --json", field="arguments")


capabilities = Tooli("capabilities", description="Record what the commands of an app access.")
launcher.add_typer(capabilities, name="capabilities")


@capabilities.command(name="record")
def record_capabilities(
    app: AppReference,
    tests: Annotated[
        list[str], Argument(help="A command that runs the app's tests, after --.")
    ] = [],  # noqa: B006  never changed
    examples: Annotated[
        bool, Option("--examples", help="Run the examples in addition to the tests.")
    ] = False,
    everything: Annotated[
        bool, Option("--all", help="Also run examples of commands that may change something.")
    ] = False,
    root: Annotated[
        list[str], Option(help="Count every access below this folder as access to the folder.")
    ] = [],  # noqa: B006
) -> dict[str, object]:
    """Run an app's examples or tests and report what each command accesses.

    Examples of commands that are not ReadOnly are skipped unless --all is given.
    """
    from tooli.builtins.capabilities_command import record_usage

    return record_usage(load_app(app), app, tests, examples or not tests, everything, root)


def main() -> None:
    """Run the program `tooli`.

    `tooli docs llms app.py` and `tooli app.py docs llms` run a built-in command of an app, whatever
    names the commands of the app have. `tooli run app.py` runs the command line of an app.
    """
    argv = sys.argv[1:]
    if argv[:1] == ["run"] and "".join(argv[1:2])[:1] not in ("", "-"):
        _run_app(*argv[1:])
        return
    if "--version" in argv:
        launcher._state.version = str(tooli.__version__)  # takes longer than starting a server
    position = find_reference(argv)
    if position is None:
        launcher()
        return
    reference = argv.pop(position)
    try:
        app = load_app(reference)
    except ToolError:
        launcher(["tools", reference, *[word for word in argv if word in _OUTPUT_FLAGS]])
    else:
        app._run_command_line(argv, builtin_prog=("tooli", reference))


def _run_app(reference: str, *arguments: str) -> None:
    """Run the command line of an app, as its own program does, with Tooli in Typer's place."""
    try:
        program = load_program(reference)
    except ToolError:
        launcher([*[word for word in arguments if word in _OUTPUT_FLAGS], "run", reference])
    else:
        sys.argv = [f"tooli run {reference}", *arguments]
        sys.exit(program())


def load_program(reference: str) -> Callable[[], Any]:
    """Return the function that starts an app. All apps of Typer become apps of tooli."""
    replace_typer()
    run_command_line = Tooli._run_command_line

    def run_named(self: Tooli, *args: Any, **kwargs: Any) -> object:
        return run_command_line(_name_after_program(self, reference), *args, **kwargs)

    if _is_reference(reference) or not is_console_script(reference):
        return load_app(reference)
    program = find_entry_function(reference)
    Tooli._run_command_line = run_named
    return program


_OUTPUT_FLAGS = ("--json", "--jsonl", "--text", "--plain")


def find_reference(argv: Sequence[str]) -> int | None:
    """Return the position of an app in the line of one of its built-in commands.

    None if the line has no app, or names a command of the launcher, such as `approvals list`.
    """
    if argv and _is_reference(argv[0]):
        return 0
    own = [path for path, _ in launcher.tree().walk()]
    group = launcher.builtins().tree() if argv and argv[0] in BUILTIN_COMMANDS else None
    for i, word in enumerate(argv):
        if group is None or tuple(argv[: i + 1]) in own:
            return None
        if word in group.commands:
            after = "".join(argv[i + 1 : i + 2])
            return i + 1 if _is_reference(after) or is_console_script(after) else None
        group = group.groups.get(word)
    return None


def _is_reference(word: str) -> bool:
    """True if a word names a file or a module, and an app in it."""
    return word[:1] != "-" and (word.endswith(".py") or ":" in word)


# ------------------------------------------------------------------ loading


def load_app(reference: str) -> Tooli:
    """Load an app by its reference. A plain Typer is wrapped in a Tooli."""
    path, attribute = _split_reference(reference)
    if not attribute and not path.endswith(".py"):
        installed = load_console_script(path)
        if installed is not None:
            return _name_after_program(installed, path)
    module = _load_file(path) if path.endswith(".py") else _load_module(path)
    found = _select_app(module, attribute, reference)
    if isinstance(found, Tooli):
        found._state.reference = _absolute_reference(path, attribute)
        return found
    wrapper = wrap_typer(found, default_app_name(vars(module)))
    wrapper._state.reference = _absolute_reference(path, attribute)
    return wrapper


def _name_after_program(app: Typer, program: str) -> Tooli:
    """Return the app of an installed program. Its name is the program's, unless it has one."""
    found = app if isinstance(app, Tooli) else wrap_typer(app, program)
    if "name" not in found._state.typer_kwargs:
        found._state.name = program
    found._state.reference = program
    return found


def wrap_typer(served: Typer, default_name: str) -> Tooli:
    """Return a Tooli that serves a plain Typer, with its callback and under its name."""
    name = getattr(served.info.name, "value", served.info.name)
    help_text = getattr(served.info.help, "value", served.info.help)
    wrapper = Tooli(name or default_name, description=help_text)
    wrapper._state.served_typer = served
    return wrapper


def _absolute_reference(path: str, attribute: str) -> str:
    """Return a reference that names the same file in every folder."""
    path = os.path.abspath(path) if path.endswith(".py") else path
    return f"{path}:{attribute}" if attribute else path


def _split_reference(reference: str) -> tuple[str, str]:
    """Split a reference into path and attribute. The colon of a Windows drive is kept."""
    drive, rest = os.path.splitdrive(reference)
    path, colon, attribute = rest.rpartition(":")
    return (drive + path, attribute) if colon else (reference, "")


def _load_file(path: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    if not os.path.isfile(path):
        raise NotFoundError(f"There is no file {path!r}.", field="app")
    folder, name = os.path.split(os.path.abspath(path))
    sys.path.insert(0, folder)
    spec = spec_from_file_location(name[:-3], path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name[:-3]] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    """Import a module: an installed one, or else one of the current folder.

    The current folder may be a repository of somebody else. Its modules must not replace installed
    ones, so it comes last on the path, and only if it is needed.
    """
    from importlib.util import find_spec

    if find_spec(name.partition(".")[0]) is None:
        sys.path.append(os.getcwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and not f"{name}.".startswith(f"{missing.name}."):
            raise
        message = f"There is no module {name!r}. For a file, add its extension: {name}.py"
        raise NotFoundError(message, field="app") from None


def _select_app(module: ModuleType, attribute: str, reference: str) -> Typer:
    """Return the app of a module: the named one, the one called `app`, or the only one."""
    apps = {name: value for name, value in vars(module).items() if _is_app(value)}
    if attribute:
        if attribute in apps:
            return apps[attribute]
        known = ", ".join(apps) or "none"
        raise InputError(f"{reference!r} is not an app. Apps in this module: {known}.", field="app")
    if "app" in apps:
        return apps["app"]
    distinct = list({id(value): value for value in apps.values()}.values())
    if len(distinct) == 1:
        return distinct[0]
    if not apps:
        raise InputError(f"There is no app in {reference!r}.", field="app")
    raise InputError(
        f"There are several apps in {reference!r}. Name one of {', '.join(apps)}.", field="app"
    )


def _is_app(value: object) -> TypeGuard[Typer]:
    typer = sys.modules.get("typer")
    return isinstance(value, Tooli) or (typer is not None and isinstance(value, typer.Typer))
