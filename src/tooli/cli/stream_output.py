"""Results that come item by item, shown as they are made; and answers that are not plain JSON."""

from __future__ import annotations

import sys

from tooli.cli.process import write_stderr
from tooli.core.call import Failed, Ok
from tooli.pipeline.drivers import stream
from tooli.pipeline.envelope import encode_envelope, make_json_encoder

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import Any

    from tooli.cli.main import Invocation
    from tooli.cli.tables import TableWriter
    from tooli.core.call import Call, Outcome, Stage
    from tooli.errors import ToolError


def run_streaming(invocation: Invocation, call: Call, stages: Sequence[Stage]) -> int:
    """Run a call and show what it gives; ask a person first, where the call needs that."""
    outcome = invocation.capture_outcome(
        lambda: show_stream(invocation, stream(call, stages), call)
    )
    if isinstance(outcome, Failed) and outcome.error.code in ("E1002", "E1010", "E2101"):
        completed = _complete_interactively(invocation, call, outcome)
        if completed is not None:
            return run_streaming(invocation, completed, stages)
        if outcome.error.approval_text is not None and outcome.error.code == "E2101":
            from tooli.pipeline.terminal_prompts import declined_error

            outcome = Failed(declined_error(outcome.error))
    return invocation.write_outcome(outcome, call)


def _complete_interactively(invocation: Invocation, call: Call, outcome: Failed) -> Call | None:
    """The call as a person completes it, where one is there to ask: approved, or with a secret."""
    from tooli.pipeline.terminal_prompts import ask_hidden, has_terminal

    if outcome.error.code != "E1002":
        is_confirmed = outcome.error.approval_text is not None and _confirm(call, outcome.error)
        return call.replace(approved=True) if is_confirmed else None
    options = invocation.options()
    if not options.interactive or options.no_input:
        return None
    missing = _missing_secrets(call, outcome)
    if not missing or not has_terminal():
        return None
    given = {name: ask_hidden(f"{name} (not shown): ") for name in missing}
    return call.replace(arguments={**call.arguments, **given}) if all(given.values()) else None


def _confirm(call: Call, error: ToolError) -> bool:
    """Whether a person lets the call run, with what it would do in front of them.

    A dangerous one is run by its name: nobody types that without looking.
    """
    from tooli.pipeline.terminal_prompts import ask_line, ask_yes_no
    from tooli.text.redact import redact_line

    write_stderr(f"{redact_line(error.message, call)}\n{error.approval_text}")
    name = call.tool.name
    if call.tool.guard.danger not in ("high", "critical"):
        return ask_yes_no("Run it?")
    try:
        return ask_line(f"Type {name} to run it: ").strip() == name
    except EOFError:
        return False


def _missing_secrets(call: Call, outcome: Failed) -> list[str]:
    """The parameters that are missing, where all of them are secrets and nothing else is wrong."""
    if not call.tool.has_handles:
        return []
    from tooli.core.tool import Handle

    errors: Any = (outcome.error.details or {}).get("errors", ())
    names = [error["field"] for error in errors if error["code"] == "E1002"]
    secret = {
        p.name for p in call.tool.public_params if isinstance(p.shape, Handle) and p.shape.is_secret
    }
    return names if len(names) == len(errors) and secret.issuperset(names) else []


def show_stream(
    invocation: Invocation, items: Generator[Any, None, Outcome], call: Call
) -> Outcome:
    """Show each item as it comes; what remains to be shown is in the outcome."""
    counted = _CountedStream(items)
    try:
        _write_items(invocation, counted, call)
    finally:
        items.close()
    invocation.streamed_count = counted.count
    outcome = counted.outcome
    if isinstance(outcome, Failed) or invocation.mode != "jsonl":
        return outcome
    value = outcome.value
    if type(value) in (set, frozenset):
        from tooli.text.jsonable import sort_set

        value = sort_set(value)
    if type(value) in (list, tuple):
        encode = make_json_encoder(invocation.warnings, call)
        for item in value:
            invocation.emit(encode(item))
        return Ok(None)
    return outcome


def _write_items(invocation: Invocation, items: Iterator[Any], call: Call) -> None:
    if invocation.mode == "jsonl":
        encode = make_json_encoder(invocation.warnings, call)
        for item in items:
            invocation.emit(encode(item))
    elif invocation.mode in _LINE_ENDS:
        end = _LINE_ENDS[invocation.mode]
        for line in _table_writer(invocation, invocation.line.tool).stream(
            _redacted_items(items, call)
        ):
            invocation.emit(line.encode() + end)
    elif invocation.standalone:
        from tooli.cli.plain_output import plain_lines, record_separator
        from tooli.cli.text_output import StdoutErrorScope

        end = record_separator(invocation)
        for line in plain_lines(_redacted_items(items, call, exact=end == "\0"), end=end):
            with StdoutErrorScope(invocation):
                sys.stdout.write(line + end)
                sys.stdout.flush()
    else:
        invocation.value = list(items)


def _redacted_items(items: Iterator[Any], call: Call, *, exact: bool = False) -> Iterator[Any]:
    from tooli.text.redact import ResultRedactor

    redactor = ResultRedactor(call, secrets_only=exact)
    for item in items:
        yield redactor(item)


# ------------------------------------------------------------------ answers

_LINE_ENDS = {"csv": b"\r", "md": b""}
"""The modes for tables, and what ends their lines, before the newline."""


def write_machine_outcome(invocation: Invocation, outcome: Outcome, call: Call) -> int:
    """Show an outcome in a machine mode that is not JSON; the exit code."""
    from tooli.cli.text_output import show_warnings, write_plain_error

    if invocation.mode == "toon":
        from tooli.cli.toon import document as toon_document

        invocation.emit(toon_document(outcome, call, invocation.milliseconds))
        return invocation.code
    if invocation.mode == "jsonl" and isinstance(outcome, Failed):
        invocation.emit(encode_envelope(outcome, call, invocation.milliseconds))
        return invocation.code
    if isinstance(outcome, Ok) and invocation.mode == "jsonl":
        if outcome.value is not None:
            invocation.emit(make_json_encoder(call.warnings, call)(outcome.value))
    elif isinstance(outcome, Ok):
        _show_table(invocation, outcome.value, call)
    error = None
    if isinstance(outcome, Failed):
        from tooli.text.redact import redact_error

        error = redact_error(outcome.error, call, call.warnings)
    show_warnings(call)
    if call.meta and isinstance(outcome, Ok) and not call.options.quiet:
        from tooli.cli.output_limits import report_truncation

        report_truncation(call)
    if error is not None:
        write_plain_error(error)
    return invocation.code


def _show_table(invocation: Invocation, value: Any, call: Call) -> None:
    from tooli.text.redact import redact_result

    if value is None and call.tool.is_streaming and not invocation.streamed_count:
        value = []
    lines = _table_writer(invocation, call.tool).lines(redact_result(value, call))
    end = _LINE_ENDS[invocation.mode]
    data = (end + b"\n").join([line.encode() for line in lines])
    if data:
        invocation.emit(data + end)


def _table_writer(invocation: Invocation, tool: Any) -> TableWriter:
    from tooli.cli.tables import TableWriter

    return TableWriter(invocation.mode, tool, invocation.warnings, invocation.options().concise)


class _CountedStream:
    """A stream's items, counted; at its end the outcome that it returns."""

    def __init__(self, items: Generator[Any, None, Outcome]) -> None:
        self._items = items
        self.count = 0
        self.outcome: Outcome = Ok(None)

    def __iter__(self) -> _CountedStream:
        return self

    def __next__(self) -> Any:
        try:
            item = next(self._items)
        except StopIteration as end:
            self.outcome = end.value
            raise StopIteration from None
        self.count += 1
        return item
