"""Output of streams, item by item, and of the machine modes other than `json`."""

from __future__ import annotations

import sys

from tooli.cli.plain_output import plain_lines
from tooli.cli.process import capture_outcome
from tooli.cli.text_output import StdoutErrorScope, show_warnings, write_plain_error
from tooli.core.call import Failed, Ok
from tooli.core.output_modes import find_mode
from tooli.pipeline.drivers import stream
from tooli.pipeline.present import ItemPresenter, present
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object, sort_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any

    from tooli.cli.main import CommandOutput
    from tooli.core.call import Call, Outcome, Stage
    from tooli.core.output_modes import OutputMode

COMPLETABLE_ERRORS = ("E1002", "E1010", "E2101")
"""Errors after which a person may be asked for a missing secret or an approval."""


def run_streaming(output: CommandOutput, call: Call, stages: Sequence[Stage]) -> int:
    """Run a call and write its items as they come; ask a person if the call needs one."""
    outcome = capture_outcome(lambda: show_stream(output, stream(call, stages), call))
    if isinstance(outcome, Failed) and outcome.error.code in COMPLETABLE_ERRORS:
        from tooli.cli.confirm import Confirm

        completed = Confirm(call).complete(outcome)
        if completed is not None:
            return run_streaming(output, completed, stages)
        if outcome.error.approval_text is not None and outcome.error.code == "E2101":
            from tooli.pipeline.terminal_prompts import declined_error

            outcome = Failed(declined_error(outcome.error))
    return output.write_outcome(outcome, call)


def show_stream(output: CommandOutput, items: Generator[Any, None, Outcome], call: Call) -> Outcome:
    """Write each item as it comes; return the outcome with what remains to be written."""
    counted = _CountedStream(items)
    try:
        _write_items(output, counted, call)
    finally:
        items.close()
    output.count_items(counted.count)
    return counted.outcome


def _write_items(output: CommandOutput, items: Iterator[Any], call: Call) -> None:
    invocation = output.invocation
    mode = find_mode(invocation.mode)
    if mode.kind == "lines":
        for line in mode.load_renderer()(call).items(items):
            output.emit(line)
        return
    if not invocation.standalone:
        for _ in items:  # nothing is printed, and Typer returns no items either
            pass
        return
    end = invocation.record_separator
    presenter = ItemPresenter(call, secrets_only=end == "\0")
    for line in plain_lines(map(presenter.value, items), end=end):
        with StdoutErrorScope(output):
            sys.stdout.write(line + end)
            sys.stdout.flush()


# ------------------------------------------------------------------ machine modes


def write_machine_outcome(output: CommandOutput, outcome: Outcome, call: Call) -> int:
    """Write an outcome in a machine mode other than JSON; return the exit code."""
    invocation = output.invocation
    mode = find_mode(invocation.mode)
    if mode.is_document or (isinstance(outcome, Failed) and mode.reports_errors):
        output.emit(render_envelope(mode, outcome, call, invocation.milliseconds))
        return output.exit.code
    if isinstance(outcome, Failed):
        error = present(outcome, call, invocation.milliseconds).error
        show_warnings(call)
        if error is not None:
            write_plain_error(error)
        return output.exit.code
    value = outcome.value
    if value is None and call.tool.is_streaming and not output.streamed_count:
        value = []
    data = b"\n".join(mode.load_renderer()(call).value(value))
    if data:
        output.emit(data)
    show_warnings(call)
    if call.meta and not call.options.quiet:
        from tooli.cli.output_limits import report_truncation

        report_truncation(call)
    return output.exit.code


def render_envelope(
    mode: OutputMode, outcome: Outcome, call: Call, milliseconds: Callable[[], int]
) -> bytes:
    """Return the envelope of an outcome: in the format of a document mode, otherwise as JSON."""
    presented = present(outcome, call, milliseconds)
    if not mode.is_document:
        return presented.envelope_json()
    envelope = presented.envelope()
    render = mode.load_renderer()
    text: str = render(envelope)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a format may not be able to escape a lone surrogate
        text = render(_escape_surrogates(envelope))
        return text.encode()


def _escape_surrogates(value: Any) -> Any:
    """Return the value with every lone surrogate in its strings written as `\\udcff`."""
    if is_object(value):
        return {_escape_surrogates(name): _escape_surrogates(item) for name, item in value.items()}
    if is_list(value):
        return [_escape_surrogates(item) for item in value]
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value


def render_json(envelope: dict[str, Any]) -> str:
    """Return an envelope as JSON; the renderer of mode `json`."""
    return encode(envelope, []).decode()


class JsonLines:
    """One JSON value per line; the writer of mode `jsonl`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def items(self, items: Iterator[Any]) -> Iterator[bytes]:
        """Return the lines of a stream."""
        return map(ItemPresenter(self._call).encode, items)

    def value(self, value: Any) -> Iterator[bytes]:
        """Return the lines of a whole result: one for each item of a list."""
        if type(value) in (set, frozenset):
            value = sort_set(value)
        values = value if type(value) in (list, tuple) else () if value is None else (value,)
        return self.items(iter(values))


class _CountedStream:
    """An iterator over a stream that counts the items and keeps the outcome."""

    def __init__(self, items: Generator[Any, None, Outcome]) -> None:
        self._items = items
        self._has_ended = False
        self.count = 0
        self.outcome: Outcome = Ok(None)

    def __iter__(self) -> _CountedStream:
        return self

    def __next__(self) -> Any:
        if self._has_ended:
            raise StopIteration
        try:
            item = next(self._items)
        except StopIteration as end:
            self._has_ended = True
            self.outcome = end.value
            raise StopIteration from None
        self.count += 1
        return item
