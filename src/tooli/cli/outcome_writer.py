"""Write answers in all modes except `json`: text for people, streams, lines, other documents.

In the text modes, the result goes to stdout, and warnings and errors go to stderr. In the machine
modes, stdout contains the answer only. The items of a stream are written as they come.
"""

from __future__ import annotations

import sys

from tooli.cli.plain_output import failed_items, plain_lines
from tooli.cli.process import capture_outcome, write_stderr
from tooli.cli.stdout_errors import StdoutErrorScope, abandon_stdout, is_stdout_closed
from tooli.core.call import Failed, Ok
from tooli.core.output_modes import find_mode
from tooli.pipeline.drivers import run, stream
from tooli.pipeline.failure import is_translated_error
from tooli.pipeline.present import ItemPresenter, Presented, outgoing_warnings, present_text
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_set, map_strings, sort_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any

    from typer import Context

    from tooli.cli import CommandOutput, Invocation
    from tooli.cli.event_lines import LinePeer
    from tooli.core.call import Call, Outcome, Stage
    from tooli.core.output_modes import OutputMode
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError

COMPLETABLE_ERRORS = ("E1002", "E1010", "E2101")
"""Errors after which a person may be asked for a missing secret or an approval."""


def run_streaming(output: CommandOutput, call: Call, stages: Sequence[Stage]) -> int:
    """Run a call and write its items as they come.

    If the call needs an approval or a secret, a person is asked for it.
    """
    call = attach_peer(output, call)
    outcome = capture_outcome(lambda: run_call(output, call, stages))
    if isinstance(outcome, Failed) and outcome.error.code in COMPLETABLE_ERRORS:
        from tooli.cli.confirm import Confirm

        completed = Confirm(call).complete(outcome)
        if not isinstance(completed, Failed):
            return run_streaming(output, completed, stages)
        outcome = completed
    return output.write_outcome(outcome, call)


def attach_peer(output: CommandOutput, call: Call) -> Call:
    """Return the call with its caller as a peer, if the caller gets events or gives samples."""
    invocation = output.invocation
    has_sampler = "sample_via" in invocation.line.options
    if call.peer is not None or not (find_mode(invocation.mode).ends_with_envelope or has_sampler):
        return call
    from tooli.cli.event_lines import make_peer

    return make_peer(output, call)


def run_call(output: CommandOutput, call: Call, stages: Sequence[Stage]) -> Outcome:
    """Run a call, write its items as they come, and return its outcome."""
    mode, peer = find_mode(output.invocation.mode), call.peer
    if not (mode.is_document or (mode.ends_with_envelope and not call.tool.is_streaming)):
        return show_stream(output, stream(call, stages), call)
    outcome = run(call, stages)
    if peer is not None:
        output.write_with(peer.close)
    return outcome


def show_stream(
    output: CommandOutput, items: Generator[object, None, Outcome], call: Call
) -> Outcome:
    """Write each item as it comes; return the outcome, which has not been written yet."""
    counted = _CountedStream(items)
    try:
        _write_items(output, counted.read(), call)
    finally:
        items.close()
    output.count_items(counted.count)
    return counted.outcome


def _write_items(output: CommandOutput, items: Iterator[object], call: Call) -> None:
    invocation = output.invocation
    mode = find_mode(invocation.mode)
    if mode.kind == "lines":
        _write_lines(output, mode.load_renderer()(call).items(items), call.peer)
        return
    if not invocation.standalone:
        for _ in items:  # the items are not printed and, as in Typer, not returned
            pass
        return
    end = invocation.record_separator
    presenter = ItemPresenter(call, secrets_only=end == "\0")
    for line in plain_lines(map(presenter.value, items), end=end):
        with StdoutErrorScope(output):
            sys.stdout.write(line + end)
            sys.stdout.flush()


def _write_lines(output: CommandOutput, lines: Iterator[bytes], peer: Any) -> None:
    """Write the lines of a stream as they come; raise StdoutClosed if a write fails.

    `peer` is a LinePeer, which writes events between the lines, or None.
    """
    if output.guard is None:
        for _ in lines:
            pass
        return
    from tooli.cli.line_buffer import LineBuffer

    buffer: LineBuffer | LinePeer = LineBuffer(output.guard.write)
    if peer is not None:
        buffer = peer.open_lines(buffer)
    try:
        for line in lines:
            output.write_with(buffer.write, line)
    except BaseException:
        buffer.discard()
        raise
    output.write_with(buffer.close)


class _CountedStream:
    """Reads a stream, counts its items and keeps its outcome."""

    def __init__(self, items: Generator[object, None, Outcome]) -> None:
        self._items = items
        self.count = 0
        self.outcome: Outcome = Ok(None)

    def read(self) -> Iterator[object]:
        """Yield the items of the stream."""
        while True:
            try:
                item = next(self._items)
            except StopIteration as end:
                self.outcome = end.value
                return
            self.count += 1
            yield item


# ------------------------------------------------------------------ machine modes


def write_outcome(output: CommandOutput, outcome: Outcome, call: Call) -> int:
    """Write an outcome in a mode other than JSON; return the exit code."""
    if output.guard is None:
        return _show_outcome(output, outcome, call)
    invocation = output.invocation
    mode = find_mode(invocation.mode)
    has_items = isinstance(outcome, Failed) and not mode.is_document
    if mode.ends_with_envelope:
        has_items = call.tool.is_streaming and not call.options.dry_run
    if has_items and outcome.value:
        output.emit(b"\n".join(mode.load_renderer()(call).value(outcome.value)))
        outcome = outcome.with_value(None)
    is_failure = isinstance(outcome, Failed) and mode.reports_errors
    if mode.is_document or mode.ends_with_envelope or is_failure:
        output.emit(render_envelope(mode, outcome, call, invocation.milliseconds))
        return output.exit.code
    if isinstance(outcome, Failed):
        error = Presented(outcome, call, invocation.milliseconds).error
        _show_warnings(call)
        if error is not None:
            _write_plain_error(error)
        return output.exit.code
    value = outcome.value
    if value is None and call.tool.is_streaming and not output.streamed_count:
        value = []
    data = b"\n".join(mode.load_renderer()(call).value(value))
    if data:
        output.emit(data)
    _show_notes(call)
    return output.exit.code


def render_envelope(
    mode: OutputMode, outcome: Outcome, call: Call, milliseconds: Callable[[], int]
) -> bytes:
    """Return the envelope of an outcome in the format of a document mode, or else as JSON."""
    presented = Presented(outcome, call, milliseconds)
    if not mode.is_document:
        if not mode.ends_with_envelope:
            return presented.envelope_json()
        from tooli.core.event_peer import result_event

        return result_event(presented.envelope_json())
    envelope = presented.envelope()
    render = mode.load_renderer()
    text: str = render(envelope)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a format may not be able to escape a lone surrogate
        text = render(map_strings(envelope, _escape_surrogates))
        return text.encode()


def _escape_surrogates(text: str) -> str:
    """Return the text with every lone surrogate written as `\\udcff`."""
    return text.encode(errors="backslashreplace").decode()


def render_json(envelope: JsonObject) -> str:
    """Return an envelope as JSON; the renderer of mode `json`."""
    return encode(envelope, []).decode()


class JsonLines:
    """One JSON value per line; the writer of mode `jsonl`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def items(self, items: Iterator[object]) -> Iterator[bytes]:
        """Return the lines of a stream."""
        return map(ItemPresenter(self._call).encode, items)

    def value(self, value: object) -> Iterator[bytes]:
        """Return the lines of a whole result: one for each item of a list."""
        if is_set(value):
            value = sort_set(value)
        if is_list(value) and type(value) in (list, tuple):  # a named tuple is one value
            return self.items(iter(value))
        return self.items(iter(() if value is None else (value,)))


# ------------------------------------------------------------------ text modes


def _show_outcome(output: CommandOutput, outcome: Outcome, call: Call) -> int:
    """Write an outcome in a text mode; return the exit code."""
    if isinstance(outcome, Ok):
        if output.invocation.standalone:
            with StdoutErrorScope(output):
                _show_value(output, outcome.value, call)
        _show_notes(call)
        return 0
    if outcome.value is not None and output.invocation.standalone:
        with StdoutErrorScope(output):
            _show_value(output, outcome.value, call)
    presented = Presented(outcome, call, output.invocation.milliseconds)
    error = presented.error
    assert error is not None
    _show_warnings(call)
    if call.secrets:
        _clear_traceback_locals(error.__cause__)
    code = _show_error(output, error, call.tool if presented.can_show_traceback else None)
    is_typer_text = output.invocation.is_interactive_mode
    return 1 if is_typer_text and code and _is_unexpected(outcome.error) else code


def _is_unexpected(error: ToolError) -> bool:
    """True if a command raised an exception that is neither tooli's nor Typer's nor an exit."""
    cause = error.__cause__
    if cause is None or isinstance(cause, KeyboardInterrupt):
        return False
    return is_translated_error(error, cause) and not _is_typer_exception(cause)


def _is_typer_exception(exc: BaseException) -> bool:
    """True if Typer handles the exception itself, such as an exit or the end of stdin.

    Since 0.26, Typer contains Click. It does not handle the exceptions of the package `click`.
    """
    typer = sys.modules.get("typer")
    if typer is None or isinstance(exc, (SystemExit, EOFError)):
        return isinstance(exc, (SystemExit, EOFError))
    click_exceptions = sys.modules[typer.BadParameter.__module__]
    return isinstance(exc, (typer.Exit, typer.Abort, click_exceptions.ClickException))


def _clear_traceback_locals(exc: BaseException | None) -> None:
    """Clear the local variables in the frames of an exception.

    Typer would show them, and they may contain secrets.
    """
    from traceback import clear_frames

    pending: list[BaseException | None] = [exc]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            clear_frames(current.__traceback__)
            pending += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]


def _show_value(output: CommandOutput, value: object, call: Call) -> None:
    """Write the result of a call.

    In mode `text`, a command that declares no result only prints, as with Typer.
    """
    invocation = output.invocation
    end = invocation.record_separator
    is_run = not (call.options.dry_run or call.options.validate)
    is_typer_text = invocation.is_interactive_mode and end != "\0" and is_run
    if is_typer_text and call.tool.returns_printed_text:
        return
    if value is None:
        if not call.tool.is_streaming or output.streamed_count:
            return
        value = []
    value = ItemPresenter(call, secrets_only=end == "\0").value(value)
    find_mode("plain" if end == "\0" else invocation.mode).load_renderer()(value, call, end)
    sys.stdout.flush()


def write_text(value: object, call: Call, end: str) -> None:
    """Write a result to stdout for a person; the renderer of mode `text`."""
    if isinstance(value, str) and value.replace("\n", "").isprintable():
        sys.stdout.write(value if value.endswith("\n") else value + "\n")
        return
    if call.options.validate:
        sys.stdout.write("The call is valid. Nothing ran.\n")
        return
    from tooli.cli.render import print_plan, print_result

    if not (call.options.dry_run and print_plan(value, call, sys.stdout)):
        print_result(value, file=sys.stdout)


def _show_notes(call: Call) -> None:
    """Write to stderr the warnings of a call, and whether the answer on stdout is incomplete."""
    _show_warnings(call)
    if call.meta and not call.options.quiet:
        _report_truncation(call, call.meta)


def _show_warnings(call: Call) -> None:
    if not call.options.quiet:
        for warning in outgoing_warnings(call):
            write_stderr(f"Warning: {warning}")


def _report_truncation(call: Call, meta: JsonObject) -> None:
    """Write to stderr that the answer on stdout is incomplete, and how to get the rest."""
    page, truncated = meta.get("page", {}), meta.get("truncated")
    if truncated is None and "next_cursor" not in page:
        return
    total = (truncated or page).get("total")
    total_text = f" of {total}" if total is not None else ""
    if truncated is not None:
        unit = truncated.get("unit", "records")
        message = f"Cut by {truncated['by']}: {truncated['shown']}{total_text} {unit} are shown."
    else:
        records = f"{page['limit']} records" if "limit" in page else "the records"
        message = f"One page of {records}" + (f", {total} in all." if total is not None else ".")
    suggested_commands = meta.get("next", ())
    if suggested_commands:
        from tooli.errors import shell_quote

        message += f" For the rest: {' '.join(map(shell_quote, suggested_commands[0]['argv']))}"
    write_stderr(present_text(message, call, shorten_paths=False))


# ------------------------------------------------------------------ errors


def _show_error(output: CommandOutput, error: ToolError, tool: Tool | None) -> int:
    """Show an error and return the exit code.

    With `tool`, Typer shows an unexpected exception of the tool with its traceback.
    """
    invocation = output.invocation
    cause = error.__cause__
    if isinstance(cause, BrokenPipeError) and is_stdout_closed():
        abandon_stdout(output, cause)
        return 0
    if isinstance(cause, KeyboardInterrupt) and _prints_as_typer(invocation):
        return error.exit_code  # Typer says nothing
    if not invocation.is_interactive_mode or isinstance(cause, KeyboardInterrupt):
        _write_plain_error(error)
    elif tool is None or not _show_with_typer(invocation, tool, error):
        from tooli.cli.render import print_error

        profile = invocation.caller_profile
        verbose = invocation.line.options.get("verbose", 0) > 0
        verbose = verbose or (profile is not None and profile.errors == "full")
        print_error(error.to_dict(), file=sys.stderr, verbose=verbose)
    return error.exit_code


def _prints_as_typer(invocation: Invocation) -> bool:
    """True if the output is text, and the command declares no result."""
    tool = invocation.line.tool
    return invocation.is_interactive_mode and tool is not None and tool.returns_printed_text


def _show_with_typer(invocation: Invocation, tool: Tool, error: ToolError) -> bool:
    """Let Typer show an exception that a tool raised, as it does for its own commands.

    Return False if the tool raised the ToolError itself.
    """
    exc = error.__cause__
    if exc is None or not is_translated_error(error, exc):
        return False
    if invocation.command is not None or not _is_typer_exception(exc):
        raise exc
    from typer.core import TyperCommand

    if getattr(exc, "ctx", exc) is None:
        vars(exc)["ctx"] = _build_context(invocation, tool.path)

    def raise_again() -> None:
        raise exc

    command = TyperCommand(name=None, callback=raise_again)
    command.main([], prog_name=invocation.prog_name, standalone_mode=invocation.standalone)
    return True


def _build_context(invocation: Invocation, path: Sequence[str]) -> Context:
    """Return Typer's context of a command, for the usage line of an error."""
    from typer import Context, main

    command = main.get_command(invocation.app)  # type: ignore[arg-type]  # pyright: ignore
    program = invocation.prog_name or sys.argv[0].rpartition("/")[2]
    context = Context(command, info_name=program)
    for name in path:
        command = getattr(command, "commands", {}).get(name)
        if command is None:
            break
        context = Context(command, info_name=name, parent=context)
    return context


def _write_plain_error(error: ToolError) -> None:
    """Write an error to stderr in plain lines: the message, the fix and a command to try."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        write_stderr("Interrupted.")
        return
    lines = [f"error: {error.message} [{error.code}]"]
    for item, message, code in failed_items(error.code, error.details):
        lines.append("  " + f"{item}: {message} {code}".removeprefix(": ").rstrip(" "))
    suggestion = error.suggestion
    if suggestion is not None:
        lines.append(f"fix: {suggestion.fix}")
        if suggestion.example:
            lines.append(f"try: {suggestion.example}")
    write_stderr("\n".join(lines))
