"""Return a page of the records and a cursor for the rest, and limit the size of the answer."""

from __future__ import annotations

from tooli.core import find_loaded
from tooli.core.call import Ok
from tooli.errors import InputError
from tooli.pipeline.present import measure_envelope, measure_value
from tooli.pipeline.suggestions import suggest_call
from tooli.pipeline.truncate import (
    NO_LIMIT,
    larger_budget_step,
    measure_answer,
    next_page_step,
    set_truncated_meta,
    to_limit_unit,
    truncate_result,
)
from tooli.records.record_flow import RecordProcessor, as_records
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
    if not isinstance(outcome, Ok):
        return outcome
    outcome = Ok(window.paginate_value(outcome.value))
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
    processor = _StreamLimit(flow, call)
    flow.processors.append(processor)
    outcome = yield call
    if not isinstance(outcome, Ok):
        return outcome
    records = as_records(outcome.value)
    is_single_value = records is None and outcome.value is not None
    if flow.is_streamed and not (is_single_value and not processor.is_opened):
        if records is not None and not processor.is_opened:
            outcome = Ok(processor.process_list(records))
        if processor.limit_name is not None:
            shown_count, limit_name = processor.shown_count, processor.limit_name
            steps: list[JsonObject] = []
            if not shown_count:
                budget = to_limit_unit(processor.bytes_used, limit_name)
                steps.append(larger_budget_step(call, limit_name, budget, "The first record"))
            set_truncated_meta(call, flow, shown_count, limit_name, None, steps)
        return outcome
    return _limit_document(call, flow, outcome)


def _limit_document(call: Call, flow: RecordFlow, outcome: Ok) -> Outcome:
    max_items, byte_budget = flow.result_options.max_items, flow.result_options.byte_budget
    records = as_records(outcome.value) if max_items else None
    has_too_many = records is not None and len(records) > (max_items or 0)
    if not has_too_many and byte_budget is None:
        return outcome
    size, value, is_clean = measure_value(outcome.value, call.warnings, call)
    if not has_too_many and byte_budget is not None:
        outcome = Ok(value)
        if flow.is_streamed:
            if measure_answer(outcome, call, flow) <= byte_budget[0]:
                return outcome
        elif _document_size(outcome, call, size if is_clean else None) <= byte_budget[0]:
            return outcome
    return truncate_result(call, flow, value)


def _document_size(outcome: Ok, call: Call, size: int | None) -> int:
    """Return the size of the envelope, computed from the size of the result if possible."""
    if size is None:  # redactions add warnings to `meta`
        return measure_envelope(outcome, call)
    return measure_envelope(Ok(None), call) + len(',"result":') + size


class _StreamLimit(RecordProcessor):
    """Counts the records of a stream, and ends it at the limit."""

    def __init__(self, flow: RecordFlow, call: Call) -> None:
        self.shown_count = 0
        self.bytes_used = 0
        self.limit_name: str | None = None  # the limit that was reached
        self._flow = flow
        self._call = call

    def open(self, push: Push) -> Push:
        if not self._flow.is_streamed:
            return push  # a document is truncated as a whole
        result_options = self._flow.result_options
        max_count, by_count = min(
            [
                (result_options.max_items or NO_LIMIT, "max-items"),
                (result_options.max_lines or NO_LIMIT, "max-lines"),
            ]
        )
        byte_budget, by_size = result_options.byte_budget or (NO_LIMIT, "max-bytes")

        def count(record: object) -> object:
            if self.shown_count >= max_count:
                self.limit_name = by_count
                return True
            size, record, _ = measure_value(record, self._call.warnings, self._call)
            self.bytes_used += size + 1
            if self.bytes_used > byte_budget:
                self.limit_name = by_size
                return True
            self.shown_count += 1
            return push(record)

        return count
