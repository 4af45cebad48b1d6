"""Read the result options, filter the records of the result, and reduce their fields.

Options are read before the function runs. Invalid options are input errors.
"""

from __future__ import annotations

from tooli.core.call import Problem
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
    from typing import Any, TypeAlias

    from tooli.core.call import Call, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.records.call_options import ResultOptions
    from tooli.records.record_flow import Push

    PushRecord: TypeAlias = Callable[[Any, Push], object]
    """Passes a record on, changed or not, or drops it."""


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
    schema = record_schema(call.tool)
    problems: list[Problem] = []
    if result_options.filter is not None:
        fields = RecordFields(schema)
        try:
            _require_list(fields)
            flow.predicate = _load_filters().compile_filter(result_options.filter, fields)
            _observe(flow, "filter", result_options.filter, fields)
        except ExpressionError as error:
            repaired = ""  # leave the filter out
            if fields.may_be_list:
                repaired = _load_filters().repair_filter(result_options.filter, fields)
            problems.append(Problem("E1040", _option_field(call, "filter"), str(error), repaired))
    if result_options.fields is not None:
        fields = RecordFields(schema)
        try:
            flow.projection = compile_selection(result_options.fields, fields)
            _observe(flow, "fields", result_options.fields, fields)
        except ExpressionError as error:
            repaired = _load_filters().repair_selection(result_options.fields, fields)
            problems.append(Problem("E1041", _option_field(call, "fields"), str(error), repaired))
    return problems


def _observe(flow: RecordFlow, option: str, text: str, fields: RecordFields) -> None:
    """Prepare to check an expression against the records if the output schema is not enough."""
    if fields.is_complete:
        return
    from tooli.records.observed_fields import ExpressionObserver  # typed results do not need it

    compile_expression: Any = (
        _load_filters().compile_filter if option == "filter" else compile_selection
    )
    flow.observers[option] = ExpressionObserver(lambda seen: compile_expression(text, seen))


def _report_misfit(call: Call, option: str, text: str) -> None:
    """Add a warning if the expression does not fit the records that were seen."""
    flow = call.flow
    observer = None if flow is None else flow.observers.get(option)
    found = None if observer is None else observer.find_error()
    if flow is None or found is None:
        return
    error, fields = found
    filters = _load_filters()
    repair = filters.repair_filter if option == "filter" else filters.repair_selection
    repaired = repair(text, fields)
    subject = "filter" if option == "filter" else "selection of fields"
    advice = f" Write {repaired}" if repaired else ""
    end = "" if str(error)[-1] == "?" else "."
    call.warnings.append(f"The {subject} does not fit the records. {error}{end}{advice}")
    if repaired and call.tool.behavior.read_only and call.meta is not None:
        from tooli.pipeline.truncate import retry_step  # few calls need it

        step = retry_step(call, f"The corrected {subject}.", **{option: repaired})
        flow.set_meta(call, next=[*call.meta.get("next", ()), step])


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


class _ExpressionProcessor(RecordProcessor):
    """Applies a filter or a selection of fields to each record.

    If no output schema describes the records, the expression is checked against them.
    """

    def __init__(self, call: Call, option: str, text: str, push_record: PushRecord) -> None:
        self._call = call
        self._option = option
        self._text = text
        self._push_record = push_record
        self._observer = None if call.flow is None else call.flow.observers.get(option)

    def open(self, push: Push) -> Push:
        apply, observer = self._push_record, self._observer
        if observer is None:
            return lambda record: apply(record, push)

        def receive(record: object) -> object:
            if not observer.is_done:
                observer.observe(record)
            return apply(record, push)

        return receive

    def finish(self) -> object:
        """Report that the expression does not fit the records."""
        _report_misfit(self._call, self._option, self._text)
        return None


def _match_redacted(call: Call, predicate: Callable[[object], bool]) -> PushRecord:
    """Return a function that passes on the records whose redacted values match.

    A filter that compared the secrets themselves would reveal them, one character per call.
    """
    from tooli.pipeline.present import ItemPresenter
    from tooli.text.json_encoder import to_json_and_value

    presenter = ItemPresenter(call, [], "")

    def push_record(record: object, push: Push) -> object:
        text, record = to_json_and_value(record, call.warnings)
        redacted = presenter.redact_if_needed(text)
        return predicate(record if redacted is None else redacted[0]) and push(record)

    return push_record


def filter_records(call: Call) -> StageRun:
    """Keep the records that match the filter."""
    flow = call.flow
    if flow is None or flow.predicate is None:
        return (yield call)
    predicate = flow.predicate
    text = flow.result_options.filter or ""
    processor = _ExpressionProcessor(
        call,
        "filter",
        text,
        (lambda record, push: predicate(record) and push(record))
        if call.secrets is None
        else _match_redacted(call, predicate),
    )
    flow.processors.append(processor)
    outcome = yield call
    if processor.is_opened:
        return outcome
    records = as_records(outcome.value)
    if records is not None:
        return outcome.with_value(processor.process_list(records))
    if outcome.value is not None:
        call.warnings.append("The result is not a list, so it was not filtered.")
    return outcome


def select_fields(call: Call) -> StageRun:
    """Reduce each record, or the object that is the result, to the selected fields."""
    flow = call.flow
    if flow is None or flow.projection is None:
        return (yield call)
    project = flow.projection
    text = flow.result_options.fields or ""
    processor = _ExpressionProcessor(
        call, "fields", text, lambda record, push: push(project(record))
    )
    flow.processors.append(processor)
    outcome = yield call
    if processor.is_opened or outcome.value is None:
        return outcome
    records = as_records(outcome.value)
    selected = processor.process_list([outcome.value] if records is None else records)
    return outcome.with_value(selected[0] if records is None else selected)


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
    if outcome.value is None or processor.is_opened:
        return outcome
    return outcome.with_value(drop_from(outcome.value, schema))
