"""Report errors in a command line: unknown commands, invalid flags, internal errors."""

from __future__ import annotations

from tooli.cli.argv import CommandLine, parse_command_line, read_output_mode
from tooli.cli.option_problems import choice_problem
from tooli.cli.process import StdoutClosed
from tooli.cli.spellings import parse_other_spellings
from tooli.cli.stdout_errors import abandon_stdout as abandon_stdout
from tooli.cli.stdout_errors import report_write_error as report_write_error
from tooli.core import BUILTIN_COMMANDS
from tooli.core._hot_tables import FLAGS
from tooli.core.call import Failed, Problem
from tooli.core.output_modes import OUTPUT_MODES
from tooli.core.placeholder_call import make_placeholder_call
from tooli.core.tool import MAX_PROBLEMS
from tooli.errors import InputError, InternalError, Suggestion, TimeoutExceeded, ToolError
from tooli.pipeline.argv_builder import is_short
from tooli.pipeline.corrected_calls import describe_option_fix
from tooli.pipeline.drivers import bind_arguments
from tooli.pipeline.failure import as_tool_error
from tooli.pipeline.input_errors import problem_details
from tooli.pipeline.unknown_names import missing_command_error, unknown_command_error
from tooli.providers import CommandGroup

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.cli import CommandOutput, Invocation
    from tooli.config.app_settings import AppSettings
    from tooli.core.call import Call
    from tooli.core.protocols import App


def write_error(output: CommandOutput, error: ToolError, call: Call | None = None) -> int:
    """Write an error as the answer; return the exit code."""
    output.take_stdout()
    return output.write_outcome(Failed(error), call or make_output_call(output))


def write_option_error(output: CommandOutput, message: str, field: str | None = None) -> int:
    """Write the error of a framework option as the answer; return the exit code."""
    return write_error(output, InputError(message, code="E1007", field=field))


def handle_exception(output: CommandOutput, exc: BaseException) -> int | None:
    """Write the answer for an exception outside of a call; return the exit code.

    Return None if Typer must show it: an unexpected exception in a text mode. A ToolError that a
    callback raises is shown as the error of a command.
    """
    invocation = output.invocation
    if invocation.is_machine_mode:
        return _write_internal_error(output, exc)
    if isinstance(exc, KeyboardInterrupt) and invocation.standalone:
        return 130
    if isinstance(exc, ToolError) and invocation.standalone:
        return write_error(output, exc)
    return None


def _write_internal_error(output: CommandOutput, exc: BaseException) -> int:
    """Write the error for an unexpected exception, unless an answer is already written."""
    error = as_tool_error(exc)
    if not isinstance(exc, (KeyboardInterrupt, TimeoutExceeded)):
        # The details are dropped, because encoding them may have caused the exception.
        error = InternalError(error.message)
        error.__cause__, error.is_translated = exc, True  # for -v
    guard = output.guard
    if guard is not None and guard.has_written and output.invocation.is_document_mode:
        return output.exit.code or error.exit_code
    try:
        return write_error(output, error)
    except StdoutClosed:
        return output.exit.code


def has_invalid_arguments(invocation: Invocation, call: Call) -> bool:
    """True if the arguments cannot be bound. A person then gets Typer's message.

    A line with a payload or with problems that the parser found is not checked.
    """
    if invocation.line.has_payload or invocation.line.problems:
        return False
    try:
        bind_arguments(call)
    except InputError:
        return True
    return False


# ------------------------------------------------------------------ no command


def no_command_error(output: CommandOutput) -> ToolError:
    """Return the error for a line with no command, an unknown command, or an unknown option."""
    invocation = output.invocation
    line, prog = invocation.line, invocation.caller.prog or (invocation.state.name,)
    if not line.problems:
        if line.unknown_command is not None:
            builtins = () if line.path or line.group.has_dynamic_commands else BUILTIN_COMMANDS
            return unknown_command_error(
                line.group,
                line.unknown_command,
                line.path,
                builtins=builtins,
                words=_split_at_command(line, invocation.argv),
            )
        return missing_command_error(line.group)
    first = line.problems[0]
    argv = None
    if first.replacement:
        own_names = invocation.app.tree().names
        words = ("tooli",) * (first.replacement[0] in own_names) + first.replacement
        argv = _corrected_argv(invocation.argv, prog, first.message, words)
    elif isinstance(first.suggested_value, str):
        argv = _corrected_argv(invocation.argv, prog, first.message, (first.suggested_value,))
    advice = Suggestion(
        "retry_with_modified_input",
        _describe_fix(first),
        example=" ".join(argv) if argv else None,
        argv=argv,
    )
    listed = [problem.replace(field=None) for problem in line.problems[:MAX_PROBLEMS]]
    return InputError(
        first.message,
        code=first.code,
        field=first.field,
        suggestion=advice,
        details=problem_details(listed, len(line.problems)),
    )


def _split_at_command(
    line: CommandLine, argv: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return the words before and after an unknown command; None if it is not on the line."""
    flags = line.group.callback_flags()
    for i, word in enumerate(argv):
        before = argv[i - 1] if i else ""
        is_value = flags.get(before, 0) > 0 or FLAGS.get(before, ("", 0))[1] == 1
        if word == line.unknown_command and not is_value:
            words = list(argv[:i])
            if line.builtin == "tooli":
                words.remove("tooli")  # part of the program
            return words, argv[i + 1 :]
    return None


def _describe_fix(problem: Problem) -> str:
    if problem.code == "E1007":
        return describe_option_fix(problem)
    if problem.suggested_value:
        return f"Use {problem.suggested_value}."
    if "; use " in problem.message:
        return f"Use {problem.message.partition('; use ')[2]}."
    return "Run --help-agent to see the commands and options."


def _corrected_argv(
    argv: Sequence[str], prog: tuple[str, ...], message: str, correct: tuple[str, ...]
) -> list[str] | None:
    """Return the line with the unknown flag in the message replaced by the correct words.

    Several correct words include the value of the flag.
    """
    for i, arg in enumerate(argv):
        name, equals, value = arg.partition("=")
        if name[:1] == "-" and f" {name};" in message:
            rest = argv[i + 1 :]
            if len(correct) > 1:
                rest = rest[1:] if not equals and correct[-1:] == (*rest[:1],) else rest
            elif equals:
                correct = (f"{''.join(correct)}={value}",)
            words = [*argv[:i], *correct, *rest]
            return [*prog, *words] if is_short(words) else None
    return None


def make_output_call(output: CommandOutput) -> Call:
    """Return a call for an answer that is not the result of a tool, such as a usage error."""
    invocation = output.invocation
    return make_placeholder_call(
        invocation.state, invocation.caller, output.warnings, invocation.line.tool
    )


# ------------------------------------------------------------------ reading a line


def report_unknown_mode(line: CommandLine, requested: str) -> None:
    """Add the problem of an output mode that does not exist to a line."""
    line.problems.append(choice_problem("TOOLI_OUTPUT", "output", requested, OUTPUT_MODES))


def resolve_text_command_mode(invocation: Invocation, requested: str) -> str:
    """Return the mode for a command that prints text itself, such as a server.

    It is `text` if the command will run, and the requested mode if its arguments are invalid.
    """
    line = invocation.line
    if line.problems or line.tool is None:
        return requested
    if line.has_payload:
        return "text"
    call, _ = invocation.replace(mode="text").prepare(line.tool, line.arguments)
    return requested if has_invalid_arguments(invocation, call) else "text"


def parse_again(
    app: App, argv: Sequence[str], line: CommandLine | None, parse_error: Exception | None
) -> tuple[App, CommandLine, Exception | None]:
    """Parse a line in other spellings or for the built-in commands.

    If it cannot be parsed, read only its output mode.

    Return the app that runs it, the line, and the error if it cannot be parsed. `line` is None
    if parsing failed with `parse_error`.
    """
    try:
        if line is not None and line.has_other_spelling:
            line = parse_other_spellings(app.tree(), argv, line)
        if line is not None:
            return (*_parse_builtin_command(app, argv, line), None)
    except Exception as error:
        parse_error = error
    line = CommandLine(CommandGroup(app._state))
    read_output_mode(line, argv)
    return app, line, parse_error


def _parse_builtin_command(
    app: App, argv: Sequence[str], line: CommandLine
) -> tuple[App, CommandLine]:
    """Return the app of the built-in commands and the line parsed for it, if the line names one.

    In an app with a single command, the name may be an argument of that command. If its parser
    leaves the decision open, the name is a built-in command if the command rejects the line.
    """
    name = line.builtin
    if name is None:
        name = next((text for text in argv if text[:1] != "-"), "")
        is_only_command = line.tool is not None and not line.tool.cli_path
        if not is_only_command or not line.problems or name not in BUILTIN_COMMANDS:
            return app, line
    builtins, found = _parse_with_builtins(app, argv, name)
    has_extra_arguments = any(problem.code == "E1005" for problem in line.problems)
    if line.builtin is None and not has_extra_arguments and (found.tool is None or found.problems):
        return app, line
    return builtins, found


def apply_settings_flags(settings: AppSettings, line: CommandLine) -> None:
    """Fill the settings object of an app anew, and report the flags that are not valid."""
    for name, message in settings.set_flags(line.settings_texts):
        line.problems.append(Problem("E1007", name, message))


def parse_for_builtins(app: App, argv: Sequence[str]) -> tuple[App, CommandLine, Exception | None]:
    """Parse a line for the built-in commands only; return the same as `parse_again`."""
    line = CommandLine(app.tree())
    line.builtin = next((text for text in argv if text in BUILTIN_COMMANDS), "")
    return parse_again(app, argv, line, None)


def _parse_with_builtins(app: App, argv: Sequence[str], name: str) -> tuple[App, CommandLine]:
    """Return the app of the built-in commands, and a line parsed for it that begins with `name`.

    After `tooli`, the name of the built-in command is the next word.
    """
    words, builtin = list(argv), name
    if name == "tooli":
        del words[words.index(name)]
        builtin = next((text for text in words if text in BUILTIN_COMMANDS), None)
    builtins = app.builtins(builtin)
    line = parse_command_line(builtins.tree(), words)
    if line.has_other_spelling:
        line = parse_other_spellings(builtins.tree(), words, line)
    line.builtin = name
    return builtins, line
