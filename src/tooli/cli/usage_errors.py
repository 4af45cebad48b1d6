"""Where a line, its input or the answering itself is not as it should be."""

from __future__ import annotations

from tooli.cli.argv import CommandLine, parse_command_line
from tooli.cli.process import StdoutClosed
from tooli.core._hot_tables import FLAGS
from tooli.core.app_state import BUILTIN_COMMANDS
from tooli.core.call import Failed, Problem
from tooli.core.output_modes import OUTPUT_MODES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.cli.main import Invocation
    from tooli.core.call import Call


def write_internal_error(invocation: Invocation, exc: BaseException) -> int:
    """What stopped the answering itself, as the answer, if none is out yet."""
    from tooli.errors import InternalError, TimeoutExceeded
    from tooli.pipeline.failure import as_tool_error

    error = as_tool_error(exc)
    if not isinstance(exc, (KeyboardInterrupt, TimeoutExceeded)):
        error = InternalError(error.message)  # its details may be what cannot be written
    if (
        invocation.stdout_guard is not None
        and invocation.stdout_guard.has_written
        and invocation.is_document_mode
    ):
        return invocation.code or error.exit_code
    from tooli.cli.info_options import call_without_tool

    invocation.guard_stdout()
    try:
        return invocation.write_outcome(Failed(error), call_without_tool(invocation))
    except StdoutClosed:
        return invocation.code


def report_invalid_mode(line: CommandLine, requested: str) -> str:
    """Note that `TOOLI_OUTPUT` names no mode; the mode to say so in."""
    message = f"TOOLI_OUTPUT={requested} is none of {', '.join(OUTPUT_MODES)}"
    line.problems.append(Problem("E1007", "output", message))
    return "json"


def has_invalid_arguments(invocation: Invocation, call: Call) -> bool:
    """Whether the input does not fit: in text mode it is Typer who says so to people."""
    from tooli.errors import InputError
    from tooli.pipeline.drivers import bind_arguments

    if invocation.line.has_payload or invocation.line.problems:
        return False
    try:
        bind_arguments(call)
    except InputError:
        return True
    return False


def parse_builtin_command(invocation: Invocation, line: CommandLine) -> CommandLine:
    """The line read again, against the commands that every app has; they answer for the app.

    An app that is one single command may take the words for itself: only where it cannot,
    because there are too many, are they ours.
    """
    word = line.unknown_word
    if line.tool is not None:
        word = next((word for word in invocation.argv if word[:1] != "-"), "")
        has_extra_arguments = any(problem.code == "E1005" for problem in line.problems)
        if (
            not has_extra_arguments
            or invocation.app.tree().only_command is None
            or word not in BUILTIN_COMMANDS
        ):
            return line
    invocation.app = invocation.app.builtins(word)
    invocation.state = invocation.app._state
    invocation.command = None
    return parse_command_line(invocation.app.tree(), invocation.argv, invocation.convert_with_typer)


def resolve_text_command_mode(invocation: Invocation, requested: str) -> str:
    """The mode that was asked for, or text where the command will speak on stdout itself.

    It does not come to that where its input does not fit: then the answer is ours.
    """
    invocation.mode = "text"
    if invocation.line.problems:
        return requested
    call, _ = invocation.prepare(invocation.line.arguments)
    return requested if has_invalid_arguments(invocation, call) else "text"


def parse_output_mode(argv: Sequence[str]) -> CommandLine:
    """A line of which only the output mode can be known."""
    line = CommandLine()
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        setting, width, _ = FLAGS.get(name, ("", 0, None))
        if setting == "output":
            line.set_option(name, (value if equals else following) if width else None)
    line.problems.clear()
    return line
