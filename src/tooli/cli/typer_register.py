"""Register an app's commands with Typer. Each command calls its tool through the pipeline.

The modules `typer_*` depend on Typer's internals. `typer_params` translates parameters for Typer.
This module registers commands with the real Typer. `typer_runner` runs a command line on the Typer
path.
"""

from __future__ import annotations

import functools
from pathlib import PurePath
from types import FunctionType

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_command_from_info
from typer.models import CommandInfo

from tooli.cli.argv import convert_with_typer
from tooli.cli.process import capture_outcome, is_completing
from tooli.cli.tracebacks import RaisedException
from tooli.cli.typer_conversion import use_plain_conversion
from tooli.cli.typer_deferred import defer_stub, get_deferred_command
from tooli.cli.typer_imports import delay_rich
from tooli.cli.typer_params import (
    documents_parameters,
    is_native,
    needs_translation,
    typer_names,
    typer_signature,
)
from tooli.core import TYPER_COMMAND_KEYWORDS
from tooli.core.call import Call, Caller, Failed, Options
from tooli.core.command_route import CommandRun, current_run
from tooli.core.tool import ConversionError, check_path_size
from tooli.errors import DefinitionError, InputError, Suggestion
from tooli.providers.command_routes import read_callback
from tooli.providers.only_tool import make_group
from tooli.schema import Converted, RawText
from tooli.schema.tool_reader import declares_result
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from typer._click.core import Command, Context, Parameter
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem
    from typing_extensions import TypeIs

    from tooli.cli import CommandOutput
    from tooli.cli.argv import CommandLine
    from tooli.core.call import Outcome, Problem, Stage
    from tooli.core.protocols import App, TyperApp
    from tooli.core.tool import Tool
    from tooli.providers import Registration

    CommandBase = TyperCommand
else:
    CommandBase = object


# ------------------------------------------------------------------ registration


def initialize_typer(app: App) -> None:
    """Register everything in an app with the real Typer."""
    delay_rich()
    state = app._state
    settings: dict[str, Any] = dict(state.typer_kwargs)
    settings["cls"] = _tooli_class(app, settings.get("cls") or TyperGroup)
    as_typer(app).__init__(**settings)
    for registration in state.commands:
        register_command(app, registration)
    for group, kwargs in state.groups:
        register_group(app, group, kwargs)
    if state.callback is not None:
        register_callback(app, *state.callback)
    if state.mounts:
        make_group(app)


def register_command(app: App, registration: Registration) -> None:
    """Register one command with the real Typer: a stub function and tooli's command class."""
    kwargs: dict[str, Any] = {
        k: v for k, v in registration.kwargs.items() if k in TYPER_COMMAND_KEYWORDS
    }
    kwargs["cls"] = _tooli_class(app, kwargs.get("cls") or TyperCommand)
    name = registration.name
    if name is None and registration.target is not None:
        name = registration.command_name
    can_defer = _can_defer(registration)
    stub = registration.fn if can_defer else _build_stub(app, registration)
    doc = getattr(stub, "tooli_help", None)
    if doc is not None:
        kwargs["help"] = doc
    as_typer(app).command(name, **kwargs)(stub)
    info = app.registered_commands[-1]
    vars(info)["tooli"] = registration
    if can_defer or hasattr(stub, "tooli_failed"):
        defer_stub(info, lambda: _build_stub(app, registration))


def _can_defer(registration: Registration) -> bool:
    """True if the parameters of a command can be read when Typer needs them.

    They cannot if the help of the command depends on them, or if its class may change them.
    """
    fn = registration.known_fn
    has_function = registration.target is None and isinstance(fn, FunctionType)
    return has_function and registration.kwargs.get("cls") is None and not declares_result(fn)


def register_group(app: App, group: TyperApp, kwargs: Mapping[str, Any]) -> None:
    """Register another app as a group with the real Typer."""
    if is_typer(group):
        as_typer(app).add_typer(group, **kwargs)


def register_callback(app: App, fn: Callable[..., object], kwargs: Mapping[str, Any]) -> None:
    """Register the app's callback with the real Typer."""
    kwargs = dict(kwargs)
    if kwargs.get("cls") is not None:
        kwargs["cls"] = _tooli_class(app, kwargs["cls"])
    as_typer(app).callback(**kwargs)(_typer_callback(fn))


def _typer_callback(fn: Callable[..., object]) -> Callable[..., object]:
    """Return a callback that Typer can read, with tooli's Option and Argument translated.

    Values that Typer takes as text are converted as those of a command.
    """
    tool = read_callback(fn)
    if not any(needs_translation(p) for p in tool.params):
        return fn

    @functools.wraps(fn)
    def callback(**values: object) -> object:
        from tooli.pipeline.drivers import bind_arguments

        arguments = _collect_arguments(tool, values, {})
        try:
            bound = bind_arguments(Call(tool, arguments, Caller("cli"), []))
        except InputError as error:
            found = error.suggestion  # its line would lack the command
            error.suggestion = None if found is None else Suggestion(found.action, found.fix)
            raise
        return fn(**bound)

    vars(callback)["__signature__"] = typer_signature(tool)
    callback.__annotations__ = {}
    return callback


def _tooli_class(app: App, base: type) -> type:
    """Return a command or group class of Typer with our mixin."""
    return type(base.__name__, (TooliCommandMixin, base), {"tooli_app": app})


def _build_stub(app: App, registration: Registration) -> Callable[..., object]:
    """Return the function that Typer calls in place of the command's function."""
    try:
        fn = registration.fn
    except DefinitionError as error:
        failing = _failing_stub(error)
        vars(failing)["tooli_failed"] = True  # the module may still be importing: try again
        return failing
    try:
        tool = registration.read_signature()
    except DefinitionError as error:
        return _failing_stub(error, fn)  # its guards cannot be read, so it must not run

    names = typer_names(tool)

    @functools.wraps(fn)
    def stub(*arguments: object, **values: object) -> object:
        # Typer passes keywords only. Code that calls a registered function may not.
        values = {**dict(zip(names, arguments, strict=False)), **values}
        return call_tool(app, registration, {names.get(n, n): v for n, v in values.items()})

    vars(stub)["tooli_registration"] = registration
    shows_docs = documents_parameters(tool)
    is_translated = any(needs_translation(p) for p in tool.params)
    if is_translated or shows_docs or registration.is_derived:
        vars(stub)["__signature__"] = typer_signature(tool)
        stub.__annotations__ = {}
        if shows_docs and not registration.kwargs.get("help"):
            from tooli.core.docstring import docstring_of, remove_parameters

            vars(stub)["tooli_help"] = remove_parameters(docstring_of(tool.fn))
    return stub


def _failing_stub(
    error: Exception, fn: Callable[..., object] | None = None
) -> Callable[..., object]:
    """Return the stub of a command with an invalid definition. The stub raises the error.

    If the function is known, the stub has its parameters, and Typer reports what is wrong with
    them.
    """

    def fails(**values: object) -> object:
        raise error

    if fn is not None:
        return functools.wraps(fn)(fails)
    return lambda: fails()


def build_command(app: App, command: Command | None = None) -> Command:
    """Return Typer's command tree of an app; the commands of plain Typer apps are wrapped."""
    tree = app.tree()
    if command is None or (tree.has_mounts and not hasattr(command, "commands")):
        command = get_deferred_command(app, is_group=tree.has_mounts)
    command = wrap_plain_commands(app, command)
    if tree.has_mounts:
        from tooli.cli.typer_mounts import MountedCommands

        MountedCommands(app, _tooli_class, _build_stub).fill(command, tree)
    return command


def wrap_plain_commands(app: App, command: Command) -> Command:
    """Return Typer's command tree with the commands of plain Typer apps wrapped as tools."""
    for path, registration in app.tree().walk(is_lazy=True):
        if registration.info is None:
            continue
        parent: Command | None = command
        for name in path[:-1]:
            parent = subcommands(parent).get(name)
        siblings = subcommands(parent)
        plain = siblings.get(path[-1])
        if plain is not None and not isinstance(plain, TooliCommandMixin):
            siblings[path[-1]] = _wrap_command(app, registration, registration.info, plain)
    return command


def subcommands(command: Command | None) -> dict[str, Command]:
    """Return the commands of a group by name; empty for a command that is not a group."""
    return getattr(command, "commands", {})


def _wrap_command(
    app: App, registration: Registration, info: CommandInfo, plain: Command
) -> Command:
    """Return a command of a plain Typer app, rebuilt with our stub and our mixin."""
    kwargs = {name: value for name, value in vars(info).items() if name != "tooli"}
    kwargs["cls"] = _tooli_class(app, kwargs.get("cls") or TyperCommand)
    kwargs["callback"] = _build_stub(app, registration)
    return get_command_from_info(
        CommandInfo(**kwargs),
        pretty_exceptions_short=getattr(app, "pretty_exceptions_short", True),
        rich_markup_mode=getattr(plain, "rich_markup_mode", None),
    )


_TYPER_CLASS = ("typer.main", "Typer")


def is_typer(app: App | TyperApp) -> TypeIs[typer.Typer]:
    """True if Typer's own class is among the bases, even if `typer.Typer` was replaced."""
    return any((c.__module__, c.__name__) == _TYPER_CLASS for c in type(app).__mro__)


def as_typer(app: App) -> typer.Typer:
    """Return a `super` object of the app, which has the methods of Typer's own class."""
    classes = type(app).__mro__
    index = next(i for i, c in enumerate(classes) if (c.__module__, c.__name__) == _TYPER_CLASS)
    return super(classes[index - 1], app)  # type: ignore[return-value]  # pyright: ignore


# ------------------------------------------------------------------ a tool, called by Typer


class TyperRun(CommandRun):
    """A command line while Typer runs it, and its outcome."""

    def __init__(self, output: CommandOutput) -> None:
        self.output = output
        self.outcome: Outcome | None = None
        self.call: Call | None = None

    def prepare(
        self, tool: Tool, arguments: dict[str, Any], problems: Sequence[Problem] = ()
    ) -> tuple[Call, tuple[Stage, ...]]:
        """Return the call of a tool and its stages; store the call in `self.call`."""
        call, stages = self.output.invocation.prepare(
            tool, arguments, problems, self.output.warnings
        )
        self.call = call = load_outcome_writer().attach_peer(self.output, call)
        return call, stages

    def run_tool(self, tool: Tool, values: dict[str, object]) -> object:
        """Run a tool; return its value, which Typer passes to the result callback.

        Depending on the mode, its outcome is written or stored. After a failure Typer ends the
        line without the result callback.
        """
        from tooli.pipeline.drivers import run

        output = self.output
        invocation = output.invocation
        arguments = _collect_arguments(tool, values, invocation.line.dotted)
        if not invocation.is_interactive_mode:
            _leave_long_paths_to_bind(arguments)
        call, stages = self.prepare(tool, _order_as_typed(arguments, invocation.line))
        if invocation.is_document_mode:
            self.outcome = capture_outcome(lambda: run(call, stages))
        elif invocation.is_machine_mode:
            run_call = load_outcome_writer().run_call
            self.outcome = capture_outcome(lambda: run_call(output, call, stages))
        elif not invocation.standalone:
            return _unwrap(run(call, stages))
        else:
            code = load_outcome_writer().run_streaming(output, call, stages)
            if code:
                raise typer.Exit(code)
            return output.exit.value
        if isinstance(self.outcome, Failed):
            raise typer.Exit(self.outcome.error.exit_code)
        return self.outcome.value


def load_outcome_writer() -> ModuleType:
    """Return the module that writes text and streams; help and messages of Typer need none."""
    from tooli.cli import outcome_writer

    return outcome_writer


def call_tool(app: App, registration: Registration, values: dict[str, object]) -> object:
    """Run the tool of a command with the values that Typer parsed."""
    run_of_typer = current_run.get()
    if run_of_typer is not None and run_of_typer.is_for(registration):
        return run_of_typer.call_function(_parsed_values(registration, values))
    typer_run = _command_line()
    if typer_run is None:  # inside an app that is not a Tooli app: exceptions are raised unchanged
        from tooli.config import load_security_settings
        from tooli.pipeline.drivers import run

        load_security_settings(app._state)
        tool = registration.tool((registration.command_name,), after_callbacks=True)
        arguments = _collect_arguments(tool, values, {})
        timeout = app._state.security_settings.get("timeout")
        options = Options(timeout=timeout, has_default_timeout=timeout is not None)
        call = Call(tool, arguments, Caller("cli"), [], options)
        return _unwrap(run(*app.prepare(call)))
    invocation = typer_run.output.invocation
    line = invocation.line
    path = line.path if line.path and line.tool is not None else (registration.command_name,)
    tool = registration.tool(path, invocation.app.tree(), after_callbacks=True)
    return typer_run.run_tool(tool, values)


def _command_line() -> TyperRun | None:
    """Return the command line that Typer runs; None if Typer runs a call of another interface."""
    found = current_run.get()
    return found if isinstance(found, TyperRun) else None


def _parsed_values(registration: Registration, values: dict[str, object]) -> dict[str, object]:
    """Return the values of the parameters that Typer converts itself, and of `typer.Context`."""
    parsed: dict[str, object] = {}
    for param in registration.read_signature().params:
        if param.name in values and param.kind == "injected":
            parsed[param.name] = values[param.name]
        elif param.name in values and is_native(param):
            parsed[param.name] = Converted(values[param.name])
    return parsed


def _unwrap(outcome: Outcome) -> object:
    if isinstance(outcome, Failed):
        raise outcome.error.__cause__ or outcome.error
    return outcome.value


def _collect_arguments(
    tool: Tool, values: dict[str, object], dotted: dict[str, dict[str, list[str]]]
) -> dict[str, Any]:
    """Return the arguments of a call: values that Typer converted, and raw text of the others."""
    arguments: dict[str, Any] = {}
    for param in tool.params:
        value = values.get(param.name)
        dotted_parts = dotted.get(param.name)
        if param.is_omittable and value in (None, (), []) and not dotted_parts:
            continue
        if param.kind == "injected" or is_native(param):
            if param.name in values:
                arguments[param.name] = Converted(value)
        elif value not in (None, (), []) or dotted_parts:
            texts = [value] if isinstance(value, str) else [*value] if is_list(value) else []
            arguments[param.name] = RawText(texts, convert_with_typer, dotted_parts)
    return arguments


def _leave_long_paths_to_bind(arguments: dict[str, Any]) -> None:
    """Replace paths that are too long by their text, which the stage `bind` refuses."""
    for name, argument in arguments.items():
        value: Any = argument.value if isinstance(argument, Converted) else None
        paths: list[Any] = [*value] if isinstance(value, (list, tuple)) else [value]
        if any([_is_long_path(path) for path in paths]):
            arguments[name] = RawText([str(path) for path in paths], convert_with_typer)


def _is_long_path(value: object) -> bool:
    try:
        check_path_size(str(value) if isinstance(value, PurePath) else "")
    except ConversionError:
        return True
    return False


def _order_as_typed(arguments: dict[str, Any], line: CommandLine) -> dict[str, Any]:
    """Return the arguments in the order of the line, with the raw text from our own parser.

    If the line is ambiguous, Typer's arguments are returned unchanged.
    """
    if line.is_ambiguous:
        return arguments
    typed = {name: value for name, value in line.arguments.items() if name in arguments}
    for name, value in typed.items():
        if not (isinstance(value, RawText) and isinstance(arguments[name], RawText)):
            typed[name] = arguments[name]
    return {**typed, **{k: v for k, v in arguments.items() if k not in typed}}


# ------------------------------------------------------------------ Typer's command classes


class TooliCommandMixin(CommandBase):
    """Mixin for Typer's commands and groups. Its `main` answers in tooli's output modes."""

    tooli_app: App

    def main(
        self,
        args: Sequence[str] | RaisedException | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Let tooli run a command line, or Typer if tooli is already running it.

        Typer also answers completions. If `args` is an exception of a command, raise it.
        """
        if isinstance(args, RaisedException):
            args.raise_for(self)
        app = self.tooli_app
        use_typer = (
            current_run.get() is not None or extra or complete_var or app._state.parent is not None
        )
        if use_typer or is_completing():
            return super().main(
                args=args,
                prog_name=prog_name,
                complete_var=complete_var,
                standalone_mode=standalone_mode,
                windows_expand_args=windows_expand_args,
                **extra,
            )
        return app._run_command_line(
            args, prog_name=prog_name, standalone_mode=standalone_mode, typer_command=self
        )

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the parameters, which convert plain values without pydantic."""
        params = super().get_params(ctx)
        use_plain_conversion(params)
        return params

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse a line. An option whose prompt nobody can answer is reported as missing."""
        params = [param for param in self.params if getattr(param, "prompt", None)]
        typer_run = _command_line() if params else None
        if typer_run is None:
            return super().parse_args(ctx, args)
        from tooli.cli.typer_prompts import guard_option_prompts

        with guard_option_prompts(params, typer_run.output.invocation):
            return super().parse_args(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write Typer's help, then the framework options in one small panel."""
        super().format_help(ctx, formatter)
        load_typer_help().print_panels(self.tooli_app, self, ctx, formatter)

    def make_context(
        self, info_name: str | None, args: list[str], parent: Context | None = None, **extra: Any
    ) -> Context:
        """Create Typer's context. For a completion after a built-in command, create its context."""
        if parent is None and extra.get("resilient_parsing") and is_completing():
            builtins = load_typer_help().completed_builtins(self.tooli_app, args)
            if builtins is not None:
                words = [word for word in args if word != "tooli"]
                command = get_command(builtins)  # type: ignore[arg-type]  # pyright: ignore
                return command.make_context(info_name, words, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        """Find a command of the group. The error for an unknown one may name a built-in command."""
        name = args[0] if args else ""
        try:
            return super().resolve_command(ctx, args)  # type: ignore[misc]  # pyright: ignore
        except Exception as error:
            message: str = getattr(error, "message", "")
            if ctx.parent is None and message.endswith(f"{name!r}."):  # without a suggestion
                suggested = load_typer_help().closest_builtin(self.tooli_app, name)
                if suggested is not None:
                    vars(error)["message"] = f"{message} Did you mean {suggested!r}?"
            raise

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Return Typer's completions and those of the framework options and built-in commands."""
        items = super().shell_complete(ctx, incomplete)
        added = load_typer_help().added_completions(self.tooli_app, self, ctx, incomplete, items)
        return [*items, *added]


def load_typer_help() -> ModuleType:
    """Return the module for help and completions; a call needs neither."""
    from tooli.cli import typer_help

    return typer_help
