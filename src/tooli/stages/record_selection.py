"""Read the result options, filter the records of the result, and reduce their fields.

Options are read before the function runs. Invalid options are input errors.
"""

from __future__ import annotations

from tooli.core.call import Ok, Problem
from tooli.records.call_options import resolve_result_options
from tooli.records.fields import ExpressionError, RecordFields, compile_selection
from tooli.records.record_flow import MapProcessor, RecordFlow, RecordProcessor, as_records
from tooli.schema.json_schema import output_schema, record_schema
from tooli.storage.page_window import decode_cursor
from tooli.storage.signing import InvalidToken, get_cursor_key
from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from tooli.core.call import Call, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.records.call_options import ResultOptions
    from tooli.records.record_flow import Push


def open_record_flow(call: Call) -> StageRun:
    """Validate `--filter`, `--fields` and `--cursor`, and prepare to process the records."""
    result_options = resolve_result_options(call.options.result_options, call.tool)
    flow = RecordFlow(result_options, call.arguments, is_streamed=call.is_streamed)
    problems = [*call.problems, *result_options.problems]
    if result_options.filter is not None or result_options.fields is not None:
        problems += _compile_options(call, flow, result_options)
    if result_options.cursor is not None:
        try:
            key = get_cursor_key(owns_process=call.caller.owns_process)
            flow.cursor_position = decode_cursor(result_options.cursor, key)
        except InvalidToken:
            message = "The cursor is invalid or was changed. Repeat the call without a cursor"
            problems.append(Problem("E1042", _option_field(call, "cursor"), message))
    return (yield call.replace(flow=flow, problems=tuple(problems)))


def _compile_options(call: Call, flow: RecordFlow, result_options: ResultOptions) -> list[Problem]:
    fields = RecordFields(record_schema(call.tool))
    problems: list[Problem] = []
    try:
        if result_options.filter is not None:
            _require_list(fields)
            flow.predicate = _load_filters().compile_filter(result_options.filter, fields)
    except ExpressionError as error:
        repaired = ""  # leave the filter out
        if fields.may_be_list:
            repaired = _load_filters().repair_filter(result_options.filter, fields)
        problems.append(Problem("E1040", _option_field(call, "filter"), str(error), repaired))
    try:
        if result_options.fields is not None:
            flow.projection = compile_selection(result_options.fields, fields)
    except ExpressionError as error:
        repaired = _load_filters().repair_selection(result_options.fields, fields)
        problems.append(Problem("E1041", _option_field(call, "fields"), str(error), repaired))
    return problems


def _load_filters() -> ModuleType:
    """Import the module that compiles filters and corrects expressions; few calls need it."""
    from tooli.records import expression_repair

    return expression_repair


def _require_list(fields: RecordFields) -> None:
    if not fields.may_be_list:
        raise ExpressionError("The result is not a list and cannot be filtered")


def _option_field(call: Call, name: str) -> str:
    """Return the name of a framework option: with a prefix if a parameter has that name."""
    return f"tooli_{name}" if name in call.tool.param_names else name


class _FilterProcessor(RecordProcessor):
    def __init__(self, predicate: Callable[[Any], bool]) -> None:
        self._predicate = predicate

    def open(self, push: Push) -> Push:
        predicate = self._predicate
        return lambda record: predicate(record) and push(record)


def filter_records(call: Call) -> StageRun:
    """Keep the records that match the filter."""
    flow = call.flow
    if flow is None or flow.predicate is None:
        return (yield call)
    processor = _FilterProcessor(flow.predicate)
    flow.processors.append(processor)
    outcome = yield call
    if processor.is_opened or not isinstance(outcome, Ok):
        return outcome
    records = as_records(outcome.value)
    if records is not None:
        return Ok(processor.process_list(records))
    if outcome.value is not None:
        call.warnings.append("The result is not a list, so it was not filtered.")
    return outcome


def select_fields(call: Call) -> StageRun:
    """Reduce each record, or the object that is the result, to the selected fields."""
    flow = call.flow
    if flow is None or flow.projection is None:
        return (yield call)
    processor = MapProcessor(flow.projection)
    flow.processors.append(processor)
    outcome = yield call
    if processor.is_opened or not isinstance(outcome, Ok) or outcome.value is None:
        return outcome
    records = as_records(outcome.value)
    return Ok(
        flow.projection(outcome.value) if records is None else processor.process_list(records)
    )


def omit_details(call: Call) -> StageRun:
    """Remove details from the result, or from each item of a stream."""
    from tooli.schema.detail_fields import drop_details, has_details

    schema, flow = output_schema(call.tool), call.flow
    if schema is None or flow is None or not has_details(schema):
        return (yield call)

    def drop_from(value: object, part: JsonObject) -> object:
        return drop_details(to_jsonable(value, call.warnings), part, schema)

    processor = MapProcessor(lambda item: drop_from(item, schema.get("items", {})))
    flow.processors.append(processor)
    outcome = yield call
    if not isinstance(outcome, Ok) or outcome.value is None or processor.is_opened:
        return outcome
    return Ok(drop_from(outcome.value, schema))
