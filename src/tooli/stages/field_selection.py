"""Select the fields of the result."""

from __future__ import annotations

from tooli.core.call import Ok
from tooli.records.record_flow import MapSieve, as_records

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome


def select_fields(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Reduce each record, or the object that is the result, to the selected fields."""
    flow = call.flow
    if flow is None or flow.projection is None:
        return (yield call)
    sieve = MapSieve(flow.projection)
    flow.sieves.append(sieve)
    outcome = yield call
    if sieve.is_opened or not isinstance(outcome, Ok) or outcome.value is None:
        return outcome
    records = as_records(outcome.value)
    return Ok(flow.projection(outcome.value) if records is None else sieve.sift(records))
