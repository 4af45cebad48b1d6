"""Answers in the text modes: the result on stdout, warnings and errors on stderr."""

from __future__ import annotations

import sys

from tooli.cli.plain_output import SINGLE_LINE_ESCAPES, summarize
from tooli.cli.process import StdoutClosed, write_stderr
from tooli.core.call import Ok
from tooli.core.output_modes import find_mode
from tooli.pipeline.present import ItemPresenter, outgoing_warnings, present

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any

    from typer import Context

    from tooli.cli.main import CommandOutput, Invocation
    from tooli.core.call import Call, Outcome
    from tooli.core.tool import Tool
    from tooli.errors import ToolError

MAX_ACTIONS_SHOWN = 200
"""Actions of a plan that are shown to a person."""


def show_outcome(output: CommandOutput, outcome: Outcome, call: Call) -> int:
    """Write an outcome in a text mode; return the exit code."""
    if isinstance(outcome, Ok):
        if output.invocation.standalone:
            with StdoutErrorScope(output):
                _show_value(output, outcome.value, call)
        show_warnings(call)
        if call.meta and not call.options.quiet:
            from tooli.cli.output_limits import report_truncation

            report_truncation(call)
        return 0
    presented = present(outcome, call, output.invocation.milliseconds)
    error = presented.error
    assert error is not None
    can_show_traceback = presented.can_show_traceback
    show_warnings(call)
    if call.secrets:
        _clear_traceback_locals(error.__cause__)
    return _show_error(output, error, call.tool if can_show_traceback else None)


def _clear_traceback_locals(exc: BaseException | None) -> None:
    """Clear the local variables in the frames of an exception.

    Typer would show them, and they may contain secrets.
    """
    from traceback import clear_frames

    pending: list[Any] = [exc]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            clear_frames(current.__traceback__)
            pending += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]


def _show_value(output: CommandOutput, value: Any, call: Call) -> None:
    if value is None:
        if not call.tool.is_streaming or output.streamed_count:
            return
        value = []
    invocation = output.invocation
    end = invocation.record_separator
    value = ItemPresenter(call, secrets_only=end == "\0").value(value)
    find_mode("plain" if end == "\0" else invocation.mode).load_renderer()(value, call, end)
    sys.stdout.flush()


def write_text(value: Any, call: Call, end: str) -> None:
    """Write a result to stdout for a person; the renderer of mode `text`."""
    if call.options.dry_run and _is_plan(value):
        sys.stdout.write("\n".join(_format_plan(value, call)) + "\n")
    elif isinstance(value, str) and value.replace("\n", "").isprintable():
        sys.stdout.write(value if value.endswith("\n") else value + "\n")
    else:
        from tooli.cli.render import print_result

        print_result(value, file=sys.stdout)


def show_warnings(call: Call) -> None:
    """Print the warnings of a call to stderr, one per line."""
    if call.options.quiet:
        return
    for warning in outgoing_warnings(call):
        write_stderr(f"Warning: {warning}")


# ------------------------------------------------------------------ errors


def _show_error(output: CommandOutput, error: ToolError, tool: Tool | None) -> int:
    """Show an error and return the exit code.

    With `tool`, Typer shows an unexpected exception of the tool with its traceback.
    """
    invocation = output.invocation
    cause = error.__cause__
    if isinstance(cause, BrokenPipeError) and is_stdout_closed():
        output.abandon_stdout(cause)
        return 0
    if isinstance(cause, KeyboardInterrupt):
        write_plain_error(error)
        return error.exit_code
    if (
        tool is not None
        and invocation.is_interactive_mode
        and cause is not None
        and _is_translated(error, cause)
    ):
        return _show_with_typer(invocation, tool, cause)
    if not invocation.is_interactive_mode:
        write_plain_error(error)
    else:
        from tooli.cli.render import print_error

        profile = invocation.caller_profile
        verbose = invocation.line.options.get("verbose", 0) > 0
        verbose = verbose or (profile is not None and profile.errors == "full")
        print_error(error.to_dict(), file=sys.stderr, verbose=verbose)
    return error.exit_code


def _show_with_typer(invocation: Invocation, tool: Tool, exc: BaseException) -> int:
    """Let Typer show an exception that a tool raised, as it does for its own commands."""
    from tooli.pipeline.failure import requested_exit_code

    names = {cls.__name__ for cls in type(exc).__mro__}
    is_typer_error = not names.isdisjoint(("ClickException", "TyperException", "Abort"))
    if invocation.command is not None or (requested_exit_code(exc) is None and not is_typer_error):
        raise exc
    from typer.core import TyperCommand

    if getattr(exc, "ctx", exc) is None:
        vars(exc)["ctx"] = _build_context(invocation, tool.path)

    def raise_again() -> None:
        raise exc

    command = TyperCommand(name=None, callback=raise_again)
    command.main([], prog_name=invocation.prog_name, standalone_mode=invocation.standalone)
    return 0


def _build_context(invocation: Invocation, path: Sequence[str]) -> Context:
    """Return Typer's context of a command, for the usage line of an error."""
    from typer import Context
    from typer.main import get_command

    command = get_command(invocation.app)  # type: ignore[arg-type]  # pyright: ignore
    program = invocation.prog_name or sys.argv[0].rpartition("/")[2]
    context = Context(command, info_name=program)
    for name in path:
        command = getattr(command, "commands", {}).get(name)
        if command is None:
            break
        context = Context(command, info_name=name, parent=context)
    return context


def _is_translated(error: ToolError, cause: BaseException) -> bool:
    """True if the tool raised `cause`, and not the ToolError itself."""
    from tooli.pipeline.failure import is_translated_error

    return is_translated_error(error, cause)


def write_plain_error(error: ToolError) -> None:
    """Write an error to stderr in plain lines: the message, the fix and a command to try."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        write_stderr("Interrupted.")
        return
    lines = [f"error: {error.message} [{error.code}]"]
    suggestion = error.suggestion
    if suggestion is not None:
        lines.append(f"fix: {suggestion.fix}")
        if suggestion.example:
            lines.append(f"try: {suggestion.example}")
    write_stderr("\n".join(lines))


# ------------------------------------------------------------------ plans


def _is_plan(value: Any) -> bool:
    from tooli.pipeline.planning import is_plan

    return is_plan(value)


def _format_plan(plan: dict[str, Any], call: Call) -> list[str]:
    """Return a plan as lines, such as `would delete  old.log`."""
    lines = _format_actions(plan)
    token = plan.get("token")
    if token is None:
        return [*lines, "", "Nothing was done."]
    from tooli.errors import shell_quote
    from tooli.pipeline.truncate import build_retry_argv

    argv = build_retry_argv(call.replace(options=call.options.replace(dry_run=False)), apply=token)
    command = " ".join(map(shell_quote, argv)).translate(SINGLE_LINE_ESCAPES)
    return [
        *lines,
        "",
        "Nothing was done. To do exactly this, within an hour and once:",
        f"  {command}",
    ]


def _format_actions(plan: dict[str, Any]) -> list[str]:
    actions: list[dict[str, Any]] | None = plan.get("actions")
    if actions is None:
        arguments = summarize(plan["arguments"], None) if plan["arguments"] else "no arguments"
        effects = ", ".join(plan["effects"]) or "none declared"
        lines = [
            f"would call  {plan['tool']}",
            f"with        {arguments}",
            f"effects     {effects}",
            "The command does not report what it would do: no more is known.",
        ]
        return [line.translate(SINGLE_LINE_ESCAPES) for line in lines]
    if not actions:
        return ["would do nothing"]
    width = max([len(entry["action"]) for entry in actions[:MAX_ACTIONS_SHOWN]])
    lines = [
        _format_action(entry, width).translate(SINGLE_LINE_ESCAPES)
        for entry in actions[:MAX_ACTIONS_SHOWN]
    ]
    hidden_count = len(actions) - MAX_ACTIONS_SHOWN
    return [*lines, f"… and {hidden_count} more"] if hidden_count > 0 else lines


def _format_action(entry: dict[str, Any], width: int) -> str:
    details = entry.get("details")
    details_text = f"  ({summarize(details, None)})" if details else ""
    return f"would {entry['action']:<{width}}  {entry['target']}{details_text}"


# ------------------------------------------------------------------ stdout


class StdoutErrorScope:
    """Context manager for code that writes text to stdout. A failed write ends the run."""

    def __init__(self, output: CommandOutput) -> None:
        self.output = output

    def __enter__(self) -> None:
        try:
            if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise OSError(9, "it is closed")
            if getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape"):
                _tolerate_unencodable_text()
        except OSError as failure:
            self.output.abandon_stdout(failure)
            raise StdoutClosed from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(failure, SystemExit) and failure.code == 1:
            failure = BrokenPipeError()  # Rich and Typer exit with 1 if the pipe is closed
        if isinstance(failure, OSError):
            self.output.abandon_stdout(failure)
            raise StdoutClosed from None


def _tolerate_unencodable_text() -> None:
    """Let stdout accept any text. Bytes of file names are unchanged, the rest is escaped."""
    import codecs

    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        codecs.register_error("tooli", _encode_unencodable)
        reconfigure(errors="tooli")


def _encode_unencodable(failure: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(failure, UnicodeEncodeError):
        raise failure
    text = failure.object[failure.start : failure.end]
    try:
        return text.encode("ascii", "surrogateescape"), failure.end
    except UnicodeEncodeError:
        return text.encode("ascii", "backslashreplace"), failure.end


def is_stdout_closed() -> bool:
    """True if the reader of stdout has closed the pipe; False if another connection broke."""
    try:
        from select import POLLERR, poll

        poller = poll()
        poller.register(1, 0)
        return any(event & POLLERR for _, event in poller.poll(0))
    except (ImportError, OSError):
        return True
