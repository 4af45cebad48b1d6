"""Return a page of the records and a cursor for the rest, and limit the size of the answer."""

from __future__ import annotations

from tooli.core import find_loaded
from tooli.core.call import Failed, Ok
from tooli.errors import InputError
from tooli.pipeline.present import ItemPresenter, draft_envelope, measure_value
from tooli.pipeline.suggestions import suggest_call
from tooli.pipeline.truncate import (
    NO_LIMIT,
    draft_answer,
    draft_cut,
    draft_smallest_cut,
    larger_budget_step,
    next_page_step,
    set_truncated_meta,
    small_limit_error,
    truncate_result,
)
from tooli.records.record_flow import RecordProcessor, as_records
from tooli.records.size_limits import CALLER_LIMIT, SizeLimit, exceeded_limit, size_limits
from tooli.schema.tool_reader import return_annotation
from tooli.storage.page_window import PageWindow

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call, Outcome, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.records.record_flow import Push, RecordFlow


def unwrap_page(call: Call) -> StageRun:
    """Unwrap the `Page` of a function that does the paging."""
    outcome = yield call
    value: Any = outcome.value if isinstance(outcome, Ok) else None
    if value.__class__ is not find_loaded("tooli.core.result_types", "Page"):
        return outcome
    if call.flow is not None:
        call.flow.tool_page = value
    return Ok(value.items)


def paginate(call: Call) -> StageRun:
    """Return one page, or all records; add the cursor of the next page."""
    flow = call.flow
    if flow is None:
        return (yield call)
    try:
        window = PageWindow(call, flow)
    except InputError as error:
        if error.suggestion is not None:
            arguments = dict(flow.raw_arguments)
            error.suggestion.target = suggest_call(call, arguments, without=("cursor",))
        raise
    flow.processors.append(window)
    flow.cursor_after = window.cursor_after
    outcome = yield call
    if isinstance(outcome, Failed) and (outcome.value is None or window.is_opened):
        return outcome  # a stream that failed has no further pages
    outcome = outcome.with_value(window.paginate_value(outcome.value))
    call.warnings.extend(window.warnings)
    if window.is_requested or flow.tool_page is not None:
        _set_page_meta(call, flow, window)
    return outcome


def _set_page_meta(call: Call, flow: RecordFlow, window: PageWindow) -> None:
    """Add the page and the next step to `meta`."""
    page: JsonObject = {}
    if flow.cursor_after is None:
        call.warnings.append("The result is not a list, so it has no pages.")
        return
    if flow.result_options.limit:
        page["limit"] = flow.result_options.limit
    cursor = window.cursor_after(window.count)
    if cursor is not None:
        page["next_cursor"] = cursor
        flow.add_next_steps(call, [next_page_step(call, cursor)])
    if flow.total is not None:
        page["total"] = flow.total
    flow.set_meta(call, page=page)


# ------------------------------------------------------------------ the size limit


def limit_size(call: Call) -> StageRun:
    """Truncate a result that is too large. `meta.next` gets a command that returns the rest."""
    flow = call.flow
    if flow is None or not flow.result_options.has_size_limit:
        return (yield call)
    _check_limits(call, flow)
    processor = _StreamLimit(flow, call)
    flow.processors.append(processor)
    outcome = yield call
    if isinstance(outcome, Failed) and outcome.value is None:
        return outcome
    records = as_records(outcome.value)
    is_single_value = records is None and outcome.value is not None
    if flow.is_streamed and not (is_single_value and not processor.is_opened):
        if records is not None and not processor.is_opened:
            outcome = outcome.with_value(processor.process_list(records))
        processor.set_meta()
        return outcome
    return _limit_document(call, flow, outcome)


def _check_limits(call: Call, flow: RecordFlow) -> None:
    """Raise an InputError (E1007) if a limit is too small even for an answer without a result.

    The answer of a command with effects must not be lost when it has run. Therefore such a command
    needs room for an answer that is cut, if its result may be long.
    """
    if flow.is_streamed or not flow.result_options.has_explicit_size_limit:
        return
    smallest = draft_envelope(Ok(None), call)
    limits = size_limits(flow.result_options)
    found = exceeded_limit(limits, smallest)
    behavior = call.tool.behavior
    if found is None and limits and not (behavior.read_only or behavior.idempotent):
        found = exceeded_limit(limits, smallest + _room_for_result(call, limits[0]))
    if found is not None:
        limit = found[0]
        needed = limit.required(smallest + draft_cut(call, limit))
        raise small_limit_error(call, flow, limit, needed, has_run=False)


def _room_for_result(call: Call, limit: SizeLimit) -> bytes:
    """Return what an answer certainly contains beside the envelope, or what a cut one contains."""
    annotation = return_annotation(call.tool)
    if annotation in (None, type(None)) and not call.tool.returns_printed_text:
        return b""
    if annotation in (bool, int, float):
        return b',"result":' + b"0" * 20
    return draft_smallest_cut(call, limit)


def _limit_document(call: Call, flow: RecordFlow, outcome: Outcome) -> Outcome:
    max_items = flow.result_options.max_items
    limits = size_limits(flow.result_options, has_notes_on_stderr=flow.is_streamed)
    records = as_records(outcome.value) if max_items else None
    has_too_many = records is not None and len(records) > (max_items or 0)
    if not has_too_many and not limits:
        return outcome
    size, value, is_clean = measure_value(outcome.value, call.warnings, call)
    if not has_too_many:
        outcome = outcome.with_value(value)
        if is_clean and not flow.is_streamed:
            # The answer has at most as many characters and tokens as bytes.
            empty = draft_envelope(outcome.with_value(None), call)
            bytes_needed = len(empty) + len(',"result":') + size
            if bytes_needed <= min([limit.amount for limit in limits]):
                return outcome
        if exceeded_limit(limits, draft_answer(outcome, call, flow)) is None:
            return outcome
    return truncate_result(call, flow, outcome.with_value(value))


class _StreamLimit(RecordProcessor):
    """Counts the records of a stream, and ends it at the limit."""

    def __init__(self, flow: RecordFlow, call: Call) -> None:
        self.shown_count = 0
        self._limit_name: str | None = None  # the limit that was reached
        self._needed: tuple[str, int] | None = None  # what the record that exceeds it needs
        self._flow = flow
        self._call = call

    def open(self, push: Push) -> Push:
        flow, call = self._flow, self._call
        if not flow.is_streamed:
            return push  # a document is truncated as a whole
        options = flow.result_options
        limits = size_limits(options, has_notes_on_stderr=True)
        max_lines = options.caller_limit.max_lines if options.caller_limit is not None else None
        max_count, by_count = min(
            (options.max_items or NO_LIMIT, "max-items"), (max_lines or NO_LIMIT, CALLER_LIMIT)
        )
        encode = ItemPresenter(call, []).encode
        used = [0 for _ in limits]

        def count(record: object) -> object:
            if self.shown_count >= max_count:
                self._limit_name = by_count
                return True
            _, record, _ = measure_value(record, call.warnings, call)
            data = encode(record) + b"\n" if limits else b""
            for at, limit in enumerate(limits):
                used[at] += limit.measure(data)
                if used[at] > limit.amount:
                    self._limit_name = limit.name
                    self._needed = (limit.option, limit.required(data, exact=True))
                    return True
            self.shown_count += 1
            return push(record)

        return count

    def set_meta(self) -> None:
        """Describe the truncation in `meta`, if the limit was reached."""
        call, name = self._call, self._limit_name
        if name is None:
            return
        steps: list[JsonObject] = []
        if not self.shown_count and self._needed is not None:
            steps.append(larger_budget_step(call, *self._needed, "The first record"))
        set_truncated_meta(call, self._flow, self.shown_count, name, None, steps)
