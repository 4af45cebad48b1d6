"""Show the fields that were asked for."""

from __future__ import annotations

from tooli.call.flow import Changing, records_of
from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.call.model import Call, Outcome


def select_fields(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Leave of each record, or of the one that the result is, only what was selected."""
    flow = call.flow
    if flow is None or flow.project is None:
        return (yield call)
    sieve = Changing(flow.project)
    flow.sieves.append(sieve)
    outcome = yield call
    if sieve.opened or not isinstance(outcome, Ok) or outcome.value is None:
        return outcome
    records = records_of(outcome.value)
    return Ok(flow.project(outcome.value) if records is None else sieve.sift(records))
