"""Filter the records of the result."""

from __future__ import annotations

from tooli.core.call import Ok
from tooli.records.record_flow import Sieve, as_records

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from tooli.core.call import Call, Outcome
    from tooli.records.record_flow import Push


class _FilterSieve(Sieve):
    def __init__(self, predicate: Callable[[Any], bool]) -> None:
        self._predicate = predicate

    def open(self, push: Push) -> Push:
        predicate = self._predicate
        return lambda record: predicate(record) and push(record)


def filter_records(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Keep the records that match the filter."""
    flow = call.flow
    if flow is None or flow.predicate is None:
        return (yield call)
    sieve = _FilterSieve(flow.predicate)
    flow.sieves.append(sieve)
    outcome = yield call
    if sieve.is_opened or not isinstance(outcome, Ok):
        return outcome
    records = as_records(outcome.value)
    if records is not None:
        return Ok(sieve.sift(records))
    if outcome.value is not None:
        call.warnings.append("The result is not a list, so it was not filtered.")
    return outcome
