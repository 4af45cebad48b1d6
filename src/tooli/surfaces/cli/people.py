"""Outcomes for people: a table on stdout, an error on stderr, the framework's part of help."""

from __future__ import annotations

import os
import sys

from tooli.call.model import Ok
from tooli.surfaces.cli.channel import Gone, complain, reason_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.call.model import Call, Outcome
    from tooli.errors import ToolError
    from tooli.surfaces.cli.main import Session


def show(session: Session, outcome: Outcome, call: Call) -> int:
    """Show an outcome in a text mode; the exit code."""
    if isinstance(outcome, Ok):
        session.value = outcome.value
        if session.standalone:
            with Writing(session):
                _show_value(session, outcome.value, call)
        show_warnings(call)
        if call.meta and not call.options.quiet:
            from tooli.surfaces.cli.budgets import tell_rest

            tell_rest(call)
        return 0
    from tooli.call.cleaning import clean_error

    error = clean_error(outcome.error, call, call.warnings)
    show_warnings(call)
    if call.secrets:
        _forget_locals(error.__cause__)
    return _show_error(session, error, error is outcome.error and _may_be_traced(error, call))


def _forget_locals(exc: BaseException | None) -> None:
    """Clear what the frames of a failure hold: Typer may show it, and a secret is among it."""
    from traceback import clear_frames

    left: list[Any] = [exc]
    known: set[int] = set()
    while left:
        one = left.pop()
        if one is not None and id(one) not in known:
            known.add(id(one))
            clear_frames(one.__traceback__)
            left += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _may_be_traced(error: ToolError, call: Call) -> bool:
    """Whether all that a traceback shows, of every exception behind it, may be seen."""
    cause = error.__cause__
    if cause is None or call.policy == "off":
        return True
    from traceback import format_exception

    from tooli.call.cleaning import clean_line

    told = "".join(format_exception(type(cause), cause, cause.__traceback__))
    return clean_line(told, call, paths=False) == told


def _show_value(session: Session, value: Any, call: Call) -> None:
    if value is None:
        if not call.tool.streams or session.shown:
            return
        value = []
    from tooli.call.cleaning import presentable

    value = presentable(value, call, exact=bool(session.line.options.get("print0")))
    if session.mode == "plain" or session.line.options.get("print0"):
        from tooli.surfaces.cli.plain import line_end, write_plain

        write_plain(value, sys.stdout.write, end=line_end(session))
    elif call.options.dry_run and _is_plan(value):
        from tooli.surfaces.cli.plans import show_plan

        show_plan(value, call)
    elif isinstance(value, str) and value.replace("\n", "").isprintable():
        sys.stdout.write(value if value.endswith("\n") else value + "\n")
    else:
        from tooli.surfaces.cli.render import print_result

        print_result(value, file=sys.stdout)
    sys.stdout.flush()


def _is_plan(value: Any) -> bool:
    from tooli.call.planning import is_plan

    return is_plan(value)


def show_warnings(call: Call) -> None:
    """Tell on stderr what is no failure."""
    if call.options.quiet:
        return
    from tooli.call.cleaning import clean_line

    for warning in call.warnings:
        complain(f"Warning: {clean_line(warning, call)}")


def _show_error(session: Session, error: ToolError, clean: bool) -> int:
    """A person sees where it broke, unless something would be seen there that must not be."""
    cause = error.__cause__
    if isinstance(cause, BrokenPipeError) and reader_has_gone():
        hush()
        return 0
    if isinstance(cause, KeyboardInterrupt):
        tell(error)
        return error.exit_code
    if clean and session.mode == "text" and cause is not None and not _is_ours(cause, error):
        from tooli.surfaces.cli.typer_lane import show_exception

        return show_exception(session, cause)
    if session.mode == "plain":
        tell(error)
    else:
        from tooli.surfaces.cli.render import print_error

        verbose = session.line.options.get("verbose", 0) > 0
        verbose = verbose or (session.manner is not None and session.manner.errors == "full")
        print_error(error.to_dict(), file=sys.stderr, verbose=verbose)
    return error.exit_code


def _is_ours(cause: BaseException, error: ToolError) -> bool:
    """Whether the author raised the error as such, and the cause is only its background."""
    from tooli.call.failure import is_translation

    return not is_translation(error, cause)


def tell(error: ToolError) -> None:
    """Say on stderr, in plain lines, what went wrong and what would be right."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        complain("Interrupted.")
        return
    lines = [f"error: {error.message} [{error.code}]"]
    suggestion = error.suggestion
    if suggestion is not None:
        lines.append(f"fix: {suggestion.fix}")
        if suggestion.example:
            lines.append(f"try: {suggestion.example}")
    complain("\n".join(lines))


class Writing:
    """Around what writes to stdout for people: where that fails, the run ends."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __enter__(self) -> None:
        try:
            if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise OSError(9, "it is closed")
            if getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape"):
                _write_anything()
        except OSError as failure:
            lose(self.session, failure)
            raise Gone from None

    def __exit__(self, kind: Any, failure: BaseException | None, trace: Any) -> None:
        if isinstance(failure, SystemExit) and failure.code == 1:
            failure = BrokenPipeError()  # that is how Rich and Typer leave it
        if isinstance(failure, OSError):
            lose(self.session, failure)
            raise Gone from None


def _write_anything() -> None:
    """Let stdout take every text: names that are not UTF-8 as they came, the rest in escapes."""
    import codecs

    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        codecs.register_error("tooli", _as_it_came)
        reconfigure(errors="tooli")


def _as_it_came(failure: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(failure, UnicodeEncodeError):
        raise failure
    text = failure.object[failure.start : failure.end]
    try:
        return text.encode("ascii", "surrogateescape"), failure.end
    except UnicodeEncodeError:
        return text.encode("ascii", "backslashreplace"), failure.end


def flush(session: Session, code: Any) -> Any:
    """Write out what Python still holds for stdout; the exit code, another where that fails."""
    try:
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
    except (OSError, ValueError) as failure:
        lose(session, failure)
        return session.code or code
    return code


def lose(session: Session, failure: BaseException) -> None:
    """Give stdout up: quietly where its reader has gone, with a word where it cannot be written."""
    hush()
    if not isinstance(failure, BrokenPipeError):
        session.code = 70
        complain(f"The result could not be written to stdout: {reason_of(failure)}")


def reader_has_gone() -> bool:
    """Whether it is stdout that broke, and not a connection of the command's own."""
    try:
        from select import POLLERR, poll

        watch = poll()
        watch.register(1, 0)
        return any(event & POLLERR for _, event in watch.poll(0))
    except (ImportError, OSError):
        return True


def hush() -> None:
    """Nobody reads stdout any more: what Python still holds for it goes nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
    except OSError:
        pass


# ------------------------------------------------------------------ help


def framework_panel(house: Any, command: Any, formatter: Any) -> None:
    """The framework's own flags, in one small panel below Typer's help."""
    if not house.framework_help or os.environ.get("TOOLI_FRAMEWORK_HELP") == "0":
        return
    from tooli.surfaces.cli.help import FRAMEWORK_ROWS

    if getattr(command, "rich_markup_mode", None) is None:
        with formatter.section("Framework options"):
            formatter.write_dl(FRAMEWORK_ROWS)
        return
    from rich.panel import Panel
    from rich.table import Table
    from typer import rich_utils

    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=False)
    table.add_column(style="dim")
    for flags, meaning in FRAMEWORK_ROWS:
        table.add_row(flags, meaning)
    console: Any = rich_utils._get_rich_console()  # pyright: ignore[reportPrivateUsage]
    console.print(Panel(table, title="Framework options", title_align="left", border_style="dim"))
