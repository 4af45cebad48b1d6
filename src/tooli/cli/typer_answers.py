"""Answer a line that Typer parses in a machine mode: the outcome, or the errors of Typer."""

from __future__ import annotations

from tooli.cli.process import capture_outcome
from tooli.cli.usage_errors import make_output_call, no_command_error
from tooli.core.call import Failed, Ok, Problem
from tooli.core.option_words import INTERFACE_WORDS
from tooli.errors import InputError
from tooli.pipeline.drivers import bind_arguments
from tooli.pipeline.failure import to_outcome
from tooli.pipeline.input_errors import build_input_error, conversion_problems
from tooli.pipeline.unknown_names import missing_command_error, unknown_parameter_problem
from tooli.schema import ConversionError, NeedsFallback, RawText, convert_unambiguous_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer._click.core import Command

    from tooli.cli import CommandOutput, Invocation
    from tooli.cli.argv import CommandLine
    from tooli.cli.typer_register import TyperRun
    from tooli.core.call import Outcome
    from tooli.core.tool import Param
    from tooli.errors import ToolError


def run_in_machine_mode(typer_run: TyperRun, command: Command, argv: Sequence[str]) -> Outcome:
    """Let Typer parse and run a line; return the outcome."""
    output = typer_run.output
    tool = output.invocation.line.tool
    output.take_stdout(capture=tool is None or tool.returns_printed_text)
    return capture_outcome(lambda: _run_with_typer(typer_run, command, argv))


def write_answer(typer_run: TyperRun, outcome: Outcome) -> int:
    """Write the outcome of a line that Typer has run; return the exit code."""
    output = typer_run.output
    if (
        typer_run.call is None
        and isinstance(outcome, Ok)
        and not _wants_envelope(output.invocation)
    ):
        return _write_printed(output)
    return output.write_outcome(outcome, typer_run.call or make_output_call(output))


def _run_with_typer(typer_run: TyperRun, command: Command, argv: Sequence[str]) -> Outcome:
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
    own = [found for found in line.problems if found.code == problem.code]
    return build_input_error(call.replace(problems=(*own, problem)[:1]), [])


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
