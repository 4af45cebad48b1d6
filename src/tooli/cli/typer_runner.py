"""The Typer lane: the real Typer runs the line. What depends on Typer's inside is in `typer_*`.

typer_register   what was registered with a Tooli is given to `typer.Typer`
typer_params     a tool's parameters in Typer's words
typer_lane       Typer parses, converts and calls; the values go through the pipeline,
                 and the session answers in its mode
"""

from __future__ import annotations

import sys
from contextvars import ContextVar

import typer
from typer.core import TyperCommand
from typer.main import get_command

from tooli.cli.main import Invocation
from tooli.cli.process import is_completing
from tooli.cli.typer_params import convert_with_typer, is_native
from tooli.cli.typer_prompts import prompt_on_terminal
from tooli.core.call import Failed, Ok, Problem
from tooli.pipeline.failure import requested_exit_code, to_outcome
from tooli.schema.convert import ConversionError, Converted, NeedsFallback, RawText, convert_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.cli.argv import CommandLine
    from tooli.core.call import Call, Outcome
    from tooli.core.tool import Param, Tool
    from tooli.errors import ToolError

_current_run: ContextVar[TyperRun | None] = ContextVar("tooli_session", default=None)


class TyperRun:
    """A session while Typer runs its line, and what came of it."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.outcome: Outcome | None = None
        self.call: Call | None = None
        self.code = 0


# ------------------------------------------------------------------ a tool, called by Typer


def typer_class(app: Any) -> Any:
    """Typer's own class below an app, whatever `typer.Typer` has been made to mean."""
    wanted = ("typer.main", "Typer")
    return next(c for c in type(app).__mro__ if (c.__module__, c.__name__) == wanted)


def call_tool(app: Any, registration: Any, values: dict[str, Any]) -> Any:
    """A command's function, called by Typer with parsed values: they go through the pipeline."""
    typer_run = _current_run.get()
    if typer_run is None:
        return _run_standalone(app, registration.tool((registration.command_name,)), values)
    line = typer_run.invocation.line
    path = line.path if line.path and line.tool is not None else (registration.command_name,)
    return _run_in_invocation(
        typer_run, registration.tool(path, typer_run.invocation.state), values
    )


def _run_standalone(app: Any, tool: Tool, values: dict[str, Any]) -> Any:
    """Below somebody else's Typer: run it, and let failures out as they are."""
    from tooli.core.call import Caller, Options
    from tooli.pipeline.drivers import run

    arguments = _collect_arguments(tool, values, {})
    call, stages = app.prepare(tool, arguments, Caller("cli"), Options(), warnings=[])
    outcome = run(call, stages)
    if isinstance(outcome, Failed):
        raise outcome.error.__cause__ or outcome.error
    return outcome.value


def _run_in_invocation(typer_run: TyperRun, tool: Tool, values: dict[str, Any]) -> Any:
    """Run a tool with what Typer parsed, in the session's mode."""
    invocation = typer_run.invocation
    invocation.line.tool = tool
    arguments = _collect_arguments(tool, values, invocation.line.dotted)
    call, stages = invocation.prepare(_order_as_typed(arguments, invocation.line))
    typer_run.call = call
    if invocation.is_document_mode:
        from tooli.pipeline.drivers import run

        typer_run.outcome = invocation.capture_outcome(lambda: run(call, stages))
        return None
    if invocation.is_machine_mode:
        from tooli.cli.stream_output import show_stream
        from tooli.pipeline.drivers import stream

        typer_run.outcome = invocation.capture_outcome(
            lambda: show_stream(invocation, stream(call, stages), call)
        )
        return None
    return _call_in_text_mode(typer_run, call, stages)


def _call_in_text_mode(typer_run: TyperRun, call: Call, stages: Any) -> Any:
    invocation = typer_run.invocation
    if not invocation.standalone:
        from tooli.pipeline.drivers import run

        outcome = run(call, stages)
        if isinstance(outcome, Failed):
            raise outcome.error.__cause__ or outcome.error
        return outcome.value
    code = invocation.run_call(call, stages)
    if code:
        raise typer.Exit(code)
    return invocation.value


def _collect_arguments(
    tool: Tool, values: dict[str, Any], dotted: dict[str, dict[str, list[str]]]
) -> dict[str, Any]:
    """What Typer parsed as a call's arguments: fitted where Typer could, words where not."""
    arguments: dict[str, Any] = {}
    for param in tool.params:
        value = values.get(param.name)
        dotted_parts = dotted.get(param.name)
        if param.kind == "injected" or is_native(param):
            if param.name in values:
                arguments[param.name] = Converted(value)
        elif value not in (None, (), []) or dotted_parts:
            texts = [value] if isinstance(value, str) else list(value or ())
            arguments[param.name] = RawText(texts, convert_with_typer, dotted_parts)
    return arguments


def _order_as_typed(arguments: dict[str, Any], line: CommandLine) -> dict[str, Any]:
    """The arguments in the order of the line; words as our own reader has them, if it is sure."""
    if line.is_ambiguous:
        return arguments
    typed = {name: value for name, value in line.arguments.items() if name in arguments}
    for name, value in typed.items():
        if not (isinstance(value, RawText) and isinstance(arguments[name], RawText)):
            typed[name] = arguments[name]
    return {**typed, **{k: v for k, v in arguments.items() if k not in typed}}


# ------------------------------------------------------------------ the door that Typer opens


class TooliCommandMixin:
    """Typer's command or group, whose `main` answers in tooli's modes."""

    tooli_app: Any

    def main(
        self,
        args: Sequence[str] | BaseException | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a line: as a session of ours, unless we are inside one already."""
        if isinstance(args, BaseException):
            # rich leaves out every frame up to the last one with this name
            _rich_traceback_guard = self.tooli_app.pretty_exceptions_short
            raise _strip_internal_frames(args)
        inner: Any = super()
        state = self.tooli_app._state
        use_typer = (
            _current_run.get() is not None or extra or complete_var or state.parent is not None
        )
        if use_typer or is_completing():
            return inner.main(
                args=args,
                prog_name=prog_name,
                complete_var=complete_var,
                standalone_mode=standalone_mode,
                windows_expand_args=windows_expand_args,
                **extra,
            )
        argv = list(sys.argv[1:] if args is None else args)
        return Invocation(self.tooli_app, argv, prog_name, standalone_mode, self).run_and_exit()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Nobody is asked for a value where nobody can answer: it is missing then, and says so."""
        inner: Any = super()
        typer_run = _current_run.get()
        with prompt_on_terminal(self, None if typer_run is None else typer_run.invocation):
            found: list[str] = inner.parse_args(ctx, args)
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Typer's help, then the framework's flags in one small panel."""
        inner: Any = super()
        inner.format_help(ctx, formatter)
        from tooli.cli.text_output import print_framework_options

        if ctx.parent is None or hasattr(ctx.parent.command, "tooli_app"):
            print_framework_options(self.tooli_app._state.root, self, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Typer's completions, and the framework's flags."""
        inner: Any = super()
        items: list[Any] = inner.shell_complete(ctx, incomplete)
        if incomplete[:1] == "-":
            from typer._click.shell_completion import CompletionItem

            from tooli.core._hot_tables import FLAGS

            known = {item.value for item in items}
            items += [
                CompletionItem(flag)
                for flag in FLAGS
                if flag.startswith(incomplete) and flag not in known and len(flag) > 2
            ]
        return items


# ------------------------------------------------------------------ running a line


def run_with_typer(app: Any, args: Sequence[str] | None, **settings: Any) -> Any:
    """Let Typer run the line as it always does."""
    command: Any = get_command(app)
    return command.main(args, **settings)


def run_invocation(invocation: Invocation) -> int:
    """Run a session's line in Typer, and answer in the session's mode."""
    from tooli.cli.typer_register import wrap_plain_commands

    command = wrap_plain_commands(invocation.app, invocation.command or get_command(invocation.app))
    typer_run = TyperRun(invocation)
    token = _current_run.set(typer_run)
    try:
        if not invocation.is_machine_mode:
            return _run_in_text_mode(invocation, command)
        tool = invocation.line.tool
        invocation.guard_stdout(capture=tool is None or tool.returns_printed_text)
        outcome = invocation.capture_outcome(lambda: _run_in_machine_mode(typer_run, command))
    finally:
        _current_run.reset(token)
    from tooli.cli.info_options import call_without_tool

    return invocation.write_outcome(outcome, typer_run.call or call_without_tool(invocation))


def _run_in_text_mode(invocation: Invocation, command: Any) -> int:
    invocation.value = command.main(
        invocation.line.typer_argv,
        prog_name=invocation.prog_name,
        standalone_mode=invocation.standalone,
    )
    return 0


def _run_in_machine_mode(typer_run: TyperRun, command: Any) -> Outcome:
    invocation = typer_run.invocation
    try:
        code = command.main(
            invocation.line.typer_argv, prog_name=invocation.prog_name, standalone_mode=False
        )
    except Exception as exc:
        if _is_usage_error(exc):
            return Failed(_usage_error(typer_run, exc))
        return to_outcome(exc)
    if typer_run.outcome is not None:
        return typer_run.outcome
    if code == 130:
        return to_outcome(KeyboardInterrupt())
    if isinstance(code, int) and code:
        return to_outcome(SystemExit(code))
    return Ok(None)


def _is_usage_error(exc: Exception) -> bool:
    return any(cls.__name__ == "UsageError" for cls in type(exc).__mro__)


def _usage_error(typer_run: TyperRun, exc: Exception) -> ToolError:
    """The refusal of a line: all that our own reader finds wrong, or else what Typer says."""
    from tooli.cli.info_options import no_command_error
    from tooli.errors import InputError
    from tooli.pipeline.drivers import bind_arguments
    from tooli.pipeline.input_errors import build_input_error

    invocation = typer_run.invocation
    line = invocation.line
    problem = problem_from_typer(exc, line)
    if line.tool is None:
        if not line.group.has_dynamic_commands and (problem.code == "E1001" or line.problems):
            return no_command_error(invocation)[0]
        return InputError(problem.message, code=problem.code, field=problem.field)
    command = getattr(getattr(exc, "ctx", None), "command", None)
    if hasattr(command, "commands") and problem.code in ("E1002", "E1003"):  # a callback's own
        return InputError(problem.message, code=problem.code, field=problem.field)
    call, _ = invocation.prepare(dict(line.arguments), line.problems)
    typer_run.call = call
    if not line.is_ambiguous:
        try:
            bind_arguments(call)
        except InputError as error:
            return error
    return build_input_error(call.replace(problems=(problem,)), [])


def problem_from_typer(exc: Exception, line: CommandLine) -> Problem:
    """A complaint of Typer's, in the words of every other door."""
    from tooli.pipeline.input_errors import conversion_problems, unknown_parameter_problem

    tool = line.tool
    name = type(exc).__name__
    declared = getattr(getattr(exc, "param", None), "name", None)
    param = tool.param(declared) if tool is not None and declared else None
    text: str = getattr(exc, "message", None) or str(exc)
    if name == "MissingParameter":
        if param is not None:
            return next(conversion_problems(param, None))
        return Problem("E1002", declared, text)
    if name == "NoSuchOption":
        option = str(getattr(exc, "option_name", ""))
        if tool is not None and option[:2] == "--":
            return unknown_parameter_problem(option.lstrip("-").replace("-", "_"), tool)
        return Problem("E1004", None, f"There is no option {option}")
    if name in ("BadOptionUsage", "BadArgumentUsage"):
        return Problem("E1006", declared, text)
    if text.startswith("Got unexpected extra argument"):
        return Problem("E1005", None, text)
    if text.startswith(("No such command", "Missing command")):
        return Problem("E1001", None, text)
    if param is not None:
        return next(
            conversion_problems(param, _conversion_error(param, line) or ConversionError(text))
        )
    if declared is not None:
        return Problem("E1003", declared, f"{declared!r}: {text}")
    return Problem("E1000", None, text)


def _conversion_error(param: Param, line: CommandLine) -> ConversionError | None:
    """What the light engine has to say of the same words, where it is sure."""
    raw = line.arguments.get(param.name)
    has_custom_parser = not param.settings.keys().isdisjoint(("parser", "click_type"))
    try:
        if isinstance(raw, RawText) and not has_custom_parser:
            convert_text(param, raw)
    except ConversionError as error:
        return error
    except NeedsFallback:
        pass
    return None


def show_exception(invocation: Invocation, exc: BaseException) -> int:
    """Let Typer show what a command raised, exactly as it would have itself."""
    if invocation.command is not None or (
        requested_exit_code(exc) is None and not _is_typer_exception(exc)
    ):
        raise exc

    tool = invocation.line.tool
    if tool is not None and getattr(exc, "ctx", exc) is None:
        vars(exc)["ctx"] = _build_context(invocation, tool.path)

    def again() -> None:
        raise exc

    command = TyperCommand(name=None, callback=again)
    command.main([], prog_name=invocation.prog_name, standalone_mode=invocation.standalone)
    return 0


def _build_context(invocation: Invocation, path: Sequence[str]) -> Any:
    """Typer's context of a command, for the usage line of a complaint."""
    command: Any = get_command(invocation.app)
    program = invocation.prog_name or sys.argv[0].rpartition("/")[2]
    context = typer.Context(command, info_name=program)
    for word in path:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        context = typer.Context(command, info_name=word, parent=context)
    return context


def _is_typer_exception(exc: BaseException) -> bool:
    names = ("ClickException", "TyperException", "Abort")
    return any(cls.__name__ in names for cls in type(exc).__mro__)


def raise_through_typer(app: Any, exc: Exception) -> None:
    """Let an exception leave the program through Typer, which knows how to show it."""
    typer_class(app).__call__(app, exc)


def _strip_internal_frames(exc: BaseException) -> BaseException:
    """The exception with a traceback that starts in the author's code."""
    trace = exc.__traceback__
    while trace is not None and _is_internal_file(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return exc.with_traceback(trace) if trace is not None else exc


def _is_internal_file(filename: str) -> bool:
    return any(filename.startswith(root) for root in _INTERNAL_ROOTS)


_INTERNAL_ROOTS = (__file__[: -len("cli/typer_runner.py")], typer.__file__[: -len("__init__.py")])
