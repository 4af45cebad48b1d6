"""The Typer path: the real Typer parses a command line, and tooli answers in its output modes."""

from __future__ import annotations

import sys

from tooli.cli.tracebacks import RaisedException, hide_own_frames, shows_typer_frames
from tooli.cli.typer_register import TyperRun, as_typer, build_command
from tooli.core.call import Ok
from tooli.core.command_route import current_run
from tooli.text.escapes import escape_invisible

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from typer._click.core import Command

    from tooli.cli import CommandOutput
    from tooli.cli.argv import CommandLine
    from tooli.core.protocols import App
    from tooli.core.tool import Tool


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
        from tooli.cli.typer_answers import run_in_machine_mode, write_answer

        outcome = run_in_machine_mode(typer_run, command, argv)
    finally:
        current_run.reset(token)
    return write_answer(typer_run, outcome)


def _is_rejected(line: CommandLine) -> bool:
    """True if Typer will certainly reject the line, because our own parser does."""
    if line.is_ambiguous or line.group.has_dynamic_commands:
        return False
    return bool(line.problems) or line.unknown_command is not None


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
