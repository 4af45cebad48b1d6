"""Show the fields that were asked for."""

from __future__ import annotations

from tooli.call.flow import Sieve, records_of
from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from tooli.call.flow import Push
    from tooli.call.model import Call, Outcome


class _Selection(Sieve):
    def __init__(self, project: Callable[[Any], Any]) -> None:
        self._project = project

    def open(self, push: Push) -> Push:
        project = self._project
        return lambda record: push(project(record))


def select_fields(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Leave of each record, or of the one that the result is, only what was selected."""
    flow = call.flow
    if flow is None or flow.project is None:
        return (yield call)
    sieve = _Selection(flow.project)
    flow.sieves.append(sieve)
    outcome = yield call
    if sieve.opened or not isinstance(outcome, Ok) or outcome.value is None:
        return outcome
    records = records_of(outcome.value)
    return Ok(flow.project(outcome.value) if records is None else sieve.sift(records))
