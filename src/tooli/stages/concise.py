"""Leave out the fields that the output schema marks as details."""

from __future__ import annotations

from tooli.core.call import Ok
from tooli.records.record_flow import MapProcessor
from tooli.schema.detail_fields import drop_details, has_details
from tooli.schema.json_schema import output_schema
from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome
    from tooli.core.protocols import JsonObject


def omit_details(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Remove details from the result, or from each item of a stream."""
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
