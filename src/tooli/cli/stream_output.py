"""Results that come item by item, shown as they are made; and answers that are not plain JSON."""

from __future__ import annotations

import sys

from tooli.cli.process import write_stderr
from tooli.cli.text_output import show_warnings, write_plain_error
from tooli.core.call import Failed, Ok
from tooli.core.output_modes import find_mode
from tooli.pipeline.drivers import stream
from tooli.pipeline.present import ItemPresenter, present, present_text
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object, sort_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any

    from tooli.cli.main import Invocation
    from tooli.core.call import Call, Outcome, Stage
    from tooli.core.output_modes import OutputMode
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

    write_stderr(f"{present_text(error.message, call)}\n{error.approval_text}")
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
    """Write each item as it comes; the outcome holds what remains to be written."""
    counted = _CountedStream(items)
    try:
        _write_items(invocation, counted, call)
    finally:
        items.close()
    invocation.streamed_count = counted.count
    return counted.outcome


def _write_items(invocation: Invocation, items: Iterator[Any], call: Call) -> None:
    mode = find_mode(invocation.mode)
    if mode.kind == "lines":
        for line in mode.load_renderer()(call).items(items):
            invocation.emit(line)
    elif invocation.standalone:
        from tooli.cli.plain_output import plain_lines, record_separator
        from tooli.cli.text_output import StdoutErrorScope

        end = record_separator(invocation)
        presenter = ItemPresenter(call, secrets_only=end == "\0")
        for line in plain_lines(map(presenter.value, items), end=end):
            with StdoutErrorScope(invocation):
                sys.stdout.write(line + end)
                sys.stdout.flush()
    else:
        invocation.value = list(items)


# ------------------------------------------------------------------ machine modes


def write_machine_outcome(invocation: Invocation, outcome: Outcome, call: Call) -> int:
    """Write an outcome in a machine mode other than JSON; return the exit code."""
    mode = find_mode(invocation.mode)
    if mode.is_document:
        invocation.emit(render_document(mode, outcome, call, invocation.milliseconds))
        return invocation.code
    if isinstance(outcome, Failed):
        if mode.reports_errors:
            invocation.emit(present(outcome, call, invocation.milliseconds).envelope_json())
            return invocation.code
        error = present(outcome, call, invocation.milliseconds).error
        show_warnings(call)
        assert error is not None
        write_plain_error(error)
        return invocation.code
    value = outcome.value
    if value is None and call.tool.is_streaming and not invocation.streamed_count:
        value = []
    data = b"\n".join(mode.load_renderer()(call).value(value))
    if data:
        invocation.emit(data)
    show_warnings(call)
    if call.meta and not call.options.quiet:
        from tooli.cli.output_limits import report_truncation

        report_truncation(call)
    return invocation.code


def render_document(
    mode: OutputMode, outcome: Outcome, call: Call, milliseconds: Callable[[], int]
) -> bytes:
    """Return the document of an outcome, in the format of a mode."""
    envelope = present(outcome, call, milliseconds).envelope()
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
    """Iterate over a stream, count its items, and keep the outcome that it returns."""

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
