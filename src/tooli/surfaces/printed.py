"""What a command printed, as its result: within the budget of whoever reads it."""

from __future__ import annotations

from tooli.call import printing
from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.call.model import Call, Outcome


def with_printed(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """The outcome with what was printed; the pipeline has not seen that, and cannot have cut it."""
    outcome = printing.with_printed(outcome, printed, call)
    bounded = call.options.shaping is not None or call.tool.limits.max_tokens
    if not bounded or not isinstance(outcome, Ok) or not isinstance(outcome.value, str):
        return outcome
    from tooli.call.envelope import measure
    from tooli.call.flow import Flow
    from tooli.call.shaping import resolve

    flow = Flow(resolve(call.options.shaping, call.tool), call.arguments)
    room = flow.shaping.room
    if room is None or measure(outcome, call) <= room[0]:
        return outcome
    from tooli.call.cutting import cut
    from tooli.state.spills import spill

    return cut(call, flow, outcome.value, spill)
