"""Outcomes for people: a table on stdout, an error on stderr, the framework's part of help."""

from __future__ import annotations

import os
import sys

from tooli.cli.plain_output import record_separator
from tooli.cli.process import StdoutClosed, error_reason, write_stderr
from tooli.core.call import Ok
from tooli.core.output_modes import find_mode
from tooli.pipeline.present import ItemPresenter, outgoing_warnings, present

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.cli.main import Invocation
    from tooli.core.call import Call, Outcome
    from tooli.errors import ToolError


def show_outcome(invocation: Invocation, outcome: Outcome, call: Call) -> int:
    """Show an outcome in a text mode; the exit code."""
    if isinstance(outcome, Ok):
        invocation.value = outcome.value
        if invocation.standalone:
            with StdoutErrorScope(invocation):
                _show_value(invocation, outcome.value, call)
        show_warnings(call)
        if call.meta and not call.options.quiet:
            from tooli.cli.output_limits import report_truncation

            report_truncation(call)
        return 0
    presented = present(outcome, call, invocation.milliseconds)
    error = presented.error
    assert error is not None
    can_show_traceback = presented.can_show_traceback
    show_warnings(call)
    if call.secrets:
        _clear_traceback_locals(error.__cause__)
    return _show_error(invocation, error, can_show_traceback)


def _clear_traceback_locals(exc: BaseException | None) -> None:
    """Clear what the frames of a failure hold: Typer may show it, and a secret is among it."""
    from traceback import clear_frames

    pending: list[Any] = [exc]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            clear_frames(current.__traceback__)
            pending += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]


def _show_value(invocation: Invocation, value: Any, call: Call) -> None:
    if value is None:
        if not call.tool.is_streaming or invocation.streamed_count:
            return
        value = []
    end = record_separator(invocation)
    value = ItemPresenter(call, secrets_only=end == "\0").value(value)
    find_mode("plain" if end == "\0" else invocation.mode).load_renderer()(value, call, end)
    sys.stdout.flush()


def write_text(value: Any, call: Call, end: str) -> None:
    """Write a result to stdout for a person; the renderer of mode `text`."""
    if call.options.dry_run and _is_plan(value):
        from tooli.cli.plan_output import show_plan

        show_plan(value, call)
    elif isinstance(value, str) and value.replace("\n", "").isprintable():
        sys.stdout.write(value if value.endswith("\n") else value + "\n")
    else:
        from tooli.cli.render import print_result

        print_result(value, file=sys.stdout)


def _is_plan(value: Any) -> bool:
    from tooli.pipeline.planning import is_plan

    return is_plan(value)


def show_warnings(call: Call) -> None:
    """Print the warnings of a call to stderr, one on a line."""
    if call.options.quiet:
        return
    for warning in outgoing_warnings(call):
        write_stderr(f"Warning: {warning}")


def _show_error(invocation: Invocation, error: ToolError, may_show_traceback: bool) -> int:
    """A person sees where it broke, unless something would be seen there that must not be."""
    cause = error.__cause__
    if isinstance(cause, BrokenPipeError) and is_stdout_closed():
        redirect_stdout_to_devnull()
        return 0
    if isinstance(cause, KeyboardInterrupt):
        write_plain_error(error)
        return error.exit_code
    if (
        may_show_traceback
        and invocation.is_interactive_mode
        and cause is not None
        and not _is_raised_by_author(cause, error)
    ):
        from tooli.cli.typer_runner import show_exception

        return show_exception(invocation, cause)
    if not invocation.is_interactive_mode:
        write_plain_error(error)
    else:
        from tooli.cli.render import print_error

        verbose = invocation.line.options.get("verbose", 0) > 0
        verbose = verbose or (
            invocation.caller_profile is not None and invocation.caller_profile.errors == "full"
        )
        print_error(error.to_dict(), file=sys.stderr, verbose=verbose)
    return error.exit_code


def _is_raised_by_author(cause: BaseException, error: ToolError) -> bool:
    """Whether the author raised the error as such, and the cause is only its background."""
    from tooli.pipeline.failure import is_translated_error

    return not is_translated_error(error, cause)


def write_plain_error(error: ToolError) -> None:
    """Say on stderr, in plain lines, what went wrong and what would be right."""
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


class StdoutErrorScope:
    """Around what writes to stdout for people: where that fails, the run ends."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation

    def __enter__(self) -> None:
        try:
            if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise OSError(9, "it is closed")
            if getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape"):
                _tolerate_unencodable_text()
        except OSError as failure:
            abandon_stdout(self.invocation, failure)
            raise StdoutClosed from None

    def __exit__(self, kind: Any, failure: BaseException | None, trace: Any) -> None:
        if isinstance(failure, SystemExit) and failure.code == 1:
            failure = BrokenPipeError()  # that is how Rich and Typer leave it
        if isinstance(failure, OSError):
            abandon_stdout(self.invocation, failure)
            raise StdoutClosed from None


def _tolerate_unencodable_text() -> None:
    """Let stdout take every text: names that are not UTF-8 as they came, the rest in escapes."""
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


def flush_stdout(invocation: Invocation, code: Any) -> Any:
    """Write out what Python still holds for stdout; the exit code, another where that fails."""
    try:
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
    except (OSError, ValueError) as failure:
        abandon_stdout(invocation, failure)
        return invocation.code or code
    return code


def abandon_stdout(invocation: Invocation, failure: BaseException) -> None:
    """Give stdout up: quietly where its reader has gone, with a word where it cannot be written."""
    redirect_stdout_to_devnull()
    if not isinstance(failure, BrokenPipeError):
        invocation.code = 70
        write_stderr(f"The result could not be written to stdout: {error_reason(failure)}")


def is_stdout_closed() -> bool:
    """Whether it is stdout that broke, and not a connection of the command's own."""
    try:
        from select import POLLERR, poll

        poller = poll()
        poller.register(1, 0)
        return any(event & POLLERR for _, event in poller.poll(0))
    except (ImportError, OSError):
        return True


def redirect_stdout_to_devnull() -> None:
    """Nobody reads stdout any more: what Python still holds for it goes nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
    except OSError:
        pass


# ------------------------------------------------------------------ help


def print_framework_options(state: Any, command: Any, formatter: Any) -> None:
    """The framework's own flags, in one small panel below Typer's help."""
    if not state.framework_help or os.environ.get("TOOLI_FRAMEWORK_HELP") == "0":
        return
    from tooli.core.options import help_rows

    if getattr(command, "rich_markup_mode", None) is None:
        with formatter.section("Framework options"):
            formatter.write_dl(list(help_rows()))
        return
    from rich.panel import Panel
    from rich.table import Table
    from typer import rich_utils

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(style="cyan", no_wrap=False)
    for group, flags in help_rows():
        table.add_row(group, flags)
    console: Any = rich_utils._get_rich_console()  # pyright: ignore[reportPrivateUsage]
    console.print(Panel(table, title="Framework options", title_align="left", border_style="dim"))
