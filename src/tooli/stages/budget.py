"""Keep an answer within the size that its caller can take."""

from __future__ import annotations

from tooli.call.envelope import measure, weigh
from tooli.call.flow import Sieve, records_of
from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.flow import Flow, Push
    from tooli.call.model import Call, Outcome


def keep_within(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Cut a result that is too large, at a record, and say how to get the rest."""
    flow = call.flow
    if flow is None or not flow.shaping.bounded:
        return (yield call)
    sieve = _Lines(flow, call)
    flow.sieves.append(sieve)
    outcome = yield call
    if not isinstance(outcome, Ok):
        return outcome
    if flow.lines:
        records = None if sieve.opened else records_of(outcome.value)
        if records is not None:
            outcome = Ok(sieve.sift(records))
        if sieve.by is not None:
            from tooli.call.cutting import larger, tell_cut

            tell_cut(call, flow, sieve.shown, sieve.by, None)
            if not sieve.shown:
                flow.lead_on(call, [larger(call, sieve.by, sieve.used), *flow.steps])
        return outcome
    return _document(call, flow, outcome)


def _document(call: Call, flow: Flow, outcome: Ok) -> Outcome:
    most, room = flow.shaping.max_items, flow.shaping.room
    value: Any = outcome.value
    records = records_of(value) if most else None
    few = records is None or len(records) <= (most or 0)
    if few and room is None:
        return outcome
    size, value, clean = weigh(value, call.warnings, call)
    outcome = Ok(value)
    if few and (room is None or _whole(outcome, call, size if clean else None) <= room[0]):
        return outcome
    from tooli.call.cutting import cut
    from tooli.state.spills import spill

    return cut(call, flow, value, spill)


def _whole(outcome: Ok, call: Call, size: int | None) -> int:
    """Bytes of the document; where the size of its result tells, without making it again."""
    if size is None:  # what is taken out of a result is told of in `meta`
        return measure(outcome, call)
    return measure(Ok(None), call) + len(',"result":') + size


class _Lines(Sieve):
    """Counts records that go out line by line, and stops them where there is no more room."""

    def __init__(self, flow: Flow, call: Call) -> None:
        self.shown = 0
        self.used = 0
        self.by: str | None = None  # what stopped them
        self._flow = flow
        self._call = call

    def open(self, push: Push) -> Push:
        if not self._flow.lines:
            return push  # one document: it is cut as a whole
        shaping = self._flow.shaping
        most, by_count = min(
            [
                (shaping.max_items or 1 << 60, "max-items"),
                (shaping.max_lines or 1 << 60, "max-lines"),
            ]
        )
        room, by_size = shaping.room or (1 << 60, "max-bytes")

        def count(record: Any) -> object:
            if self.shown >= most:
                self.by = by_count
                return True
            size, record, _ = weigh(record, self._call.warnings, self._call)
            self.used += size + 1
            if self.used > room:
                self.by = by_size
                return True
            self.shown += 1
            return push(record)

        return count
