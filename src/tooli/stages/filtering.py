"""Keep the records that a filter holds for."""

from __future__ import annotations

from tooli.call.flow import Sieve, records_of
from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from tooli.call.flow import Push
    from tooli.call.model import Call, Outcome


class _Filter(Sieve):
    def __init__(self, keep: Callable[[Any], bool]) -> None:
        self._keep = keep

    def open(self, push: Push) -> Push:
        keep = self._keep
        return lambda record: keep(record) and push(record)


def filter_records(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Let only those records pass for which the filter holds."""
    flow = call.flow
    if flow is None or flow.keep is None:
        return (yield call)
    sieve = _Filter(flow.keep)
    flow.sieves.append(sieve)
    outcome = yield call
    if sieve.opened or not isinstance(outcome, Ok):
        return outcome
    records = records_of(outcome.value)
    if records is not None:
        return Ok(sieve.sift(records))
    if outcome.value is not None:
        call.warnings.append("The result is no list: it was not filtered.")
    return outcome
