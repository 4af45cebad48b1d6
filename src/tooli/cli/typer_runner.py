"""The Typer path: the real Typer parses a command line, and tooli answers in its output modes."""

from __future__ import annotations

import sys

from tooli.cli.process import capture_outcome
from tooli.cli.tracebacks import RaisedException, hide_own_frames, shows_typer_frames
from tooli.cli.typer_register import TyperRun, as_typer, build_command
from tooli.cli.usage_errors import make_output_call, no_command_error
from tooli.core.call import Failed, Ok, Problem
from tooli.core.command_route import current_run
from tooli.core.option_words import INTERFACE_WORDS
from tooli.errors import InputError
from tooli.pipeline.drivers import bind_arguments
from tooli.pipeline.failure import to_outcome
from tooli.pipeline.input_errors import (
    build_input_error,
    conversion_problems,
)
from tooli.pipeline.unknown_names import missing_command_error, unknown_parameter_problem
from tooli.schema import ConversionError, NeedsFallback, RawText, convert_unambiguous_text
from tooli.text.escapes import escape_invisible

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from typer._click.core import Command

    from tooli.cli import CommandOutput, Invocation
    from tooli.cli.argv import CommandLine
    from tooli.core.call import Outcome
    from tooli.core.protocols import App
    from tooli.core.tool import Param, Tool
    from tooli.errors import ToolError


def run_with_typer(app: App, args: Sequence[str] | None, **settings: Any) -> Any:
    """Let Typer run a command line on its own."""
    return build_command(app).main(args, **settings)


def run_on_typer_path(output: CommandOutput, argv: Sequence[str] | None = None) -> int:
    """Let Typer parse and run a line; write the answer, and return the exit code.

    `argv` defaults to the line without the framework options.
    """
    invocation = output.invocation
    argv = invocation.line.typer_argv if argv is None else argv
    command = (
        invocation.line.typer_command
        if invocation.command is None and invocation.line.typer_command is not None
        else build_command(invocation.app, invocation.command)
    )
    typer_run = TyperRun(output)
    token = current_run.set(typer_run)
    try:
        if not invocation.is_machine_mode:
            if _is_rejected(invocation.line):
                # Typer only writes a message. It escapes no characters outside of ASCII.
                argv = [escape_invisible(word) for word in argv]
            value = command.main(
                argv, prog_name=invocation.prog_name, standalone_mode=invocation.standalone
            )
            output.exit.set_outcome(Ok(value))
            return 0
        tool = invocation.line.tool
        output.take_stdout(capture=tool is None or tool.returns_printed_text)
        outcome = capture_outcome(lambda: _run_in_machine_mode(typer_run, command, argv))
    finally:
        current_run.reset(token)
    if typer_run.call is None and isinstance(outcome, Ok) and not _wants_envelope(invocation):
        return _write_printed(output)
    return output.write_outcome(outcome, typer_run.call or make_output_call(output))


def _wants_envelope(invocation: Invocation) -> bool:
    """True if a mode was requested, or if an agent gets printed text as a result."""
    profile = invocation.caller_profile
    return invocation.has_explicit_mode or (profile is not None and profile.printed == "result")


def _write_printed(output: CommandOutput) -> int:
    """Write what a callback printed, such as the version, as text. No command has run."""
    assert output.guard is not None
    printed = output.guard.printed()
    if printed:
        output.emit(printed.encode())
    return output.exit.code


def _is_rejected(line: CommandLine) -> bool:
    """True if Typer will certainly reject the line, because our own parser does."""
    if line.is_ambiguous or line.group.has_dynamic_commands:
        return False
    return bool(line.problems) or line.unknown_command is not None


def _run_in_machine_mode(typer_run: TyperRun, command: Command, argv: Sequence[str]) -> Outcome:
    prog_name = typer_run.output.invocation.prog_name
    try:
        code = command.main(argv, prog_name=prog_name, standalone_mode=False)
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


# ------------------------------------------------------------------ Typer's errors


def _is_usage_error(exc: Exception) -> bool:
    return any(cls.__name__ == "UsageError" for cls in type(exc).__mro__)


def _usage_error(typer_run: TyperRun, exc: Exception) -> ToolError:
    """Return the error for a line that Typer rejects.

    It has all problems that our own parser finds, or Typer's message if there are none.
    """
    output = typer_run.output
    line = output.invocation.line
    if type(exc).__name__ == "NoArgsIsHelpError":
        if output.guard is not None:
            output.guard.printed()  # drop it: Typer has printed its help
        if line.tool is None:
            return missing_command_error(line.group)
    problem = problem_from_typer(exc, line)
    if line.tool is None:
        if not line.group.has_dynamic_commands and (problem.code == "E1001" or line.problems):
            return no_command_error(output)
        return InputError(problem.message, code=problem.code, field=problem.field)
    command = getattr(getattr(exc, "ctx", None), "command", None)
    # a parameter of a group's callback
    if hasattr(command, "commands") and problem.code in ("E1002", "E1003"):
        return InputError(problem.message, code=problem.code, field=problem.field)
    call, _ = typer_run.prepare(line.tool, dict(line.arguments), line.problems)
    if not line.is_ambiguous:
        try:
            bind_arguments(call)
        except InputError as error:
            return error
    return build_input_error(call.replace(problems=(problem,)), [])


def problem_from_typer(exc: Exception, line: CommandLine) -> Problem:
    """Return the Problem for an error of Typer, in the wording that all interfaces share."""
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
            name = option.lstrip("-").replace("-", "_")
            return unknown_parameter_problem(name, tool, INTERFACE_WORDS["cli"])
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
    """Return the error of our own conversion of a parameter's text, or None if there is none."""
    raw = line.arguments.get(param.name)
    has_custom_parser = not param.option_kwargs.keys().isdisjoint(("parser", "click_type"))
    try:
        if isinstance(raw, RawText) and not has_custom_parser:
            convert_unambiguous_text(param, raw)
    except ConversionError as error:
        return error
    except NeedsFallback:
        pass
    return None


# ------------------------------------------------------------------ exceptions


def raise_through_typer(output: CommandOutput, exc: Exception) -> None:
    """Raise an exception through Typer, which shows it without frames of tooli.

    If Typer has not run the line and its frames are shown, Typer parses the line again and calls
    the command, which raises the exception. The traceback then has the frames that Typer adds.
    """
    app = output.invocation.app
    replay = None
    has_frames = _has_run_with_typer(exc)
    if not has_frames and shows_typer_frames(app) and output.invocation.line.tool is not None:
        replay = Replay(output, exc).run
    raised = RaisedException(exc, replay, is_short=not has_frames and not shows_typer_frames(app))
    try:
        as_typer(app).__call__(raised)  # a `super` object cannot be called directly
    finally:  # after Typer has set the hook that shows the exception
        sys.excepthook = hide_own_frames(app, sys.excepthook)


def _has_run_with_typer(exc: BaseException) -> bool:
    trace = exc.__traceback__
    while trace is not None and trace.tb_frame.f_code is not run_on_typer_path.__code__:
        trace = trace.tb_next
    return trace is not None


class Replay(TyperRun):
    """A command line that Typer runs to raise an exception that the command has raised before."""

    def __init__(self, output: CommandOutput, exc: Exception) -> None:
        super().__init__(output)
        self._exc = exc
        self._is_raised = False

    def run(self, command: Command) -> None:
        """Let Typer run the line. Nothing is raised if Typer does not call the command."""
        invocation = self.output.invocation
        token = current_run.set(self)
        try:
            command.main(
                invocation.line.typer_argv, prog_name=invocation.prog_name, standalone_mode=False
            )
        except BaseException:
            if self._is_raised:
                raise
        finally:
            current_run.reset(token)

    def run_tool(self, tool: Tool, values: dict[str, object]) -> object:
        """Raise the exception."""
        self._is_raised = True
        raise self._exc
