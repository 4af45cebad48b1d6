"""What a command printed, as its result: within the budget of whoever reads it."""

from __future__ import annotations

from tooli.core.call import Ok
from tooli.pipeline import stdout_capture

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, Outcome


def attach_printed_output(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """The outcome with what was printed; the pipeline has not seen that, and cannot have cut it."""
    outcome = stdout_capture.add_printed_text(outcome, printed, call)
    is_bounded = call.options.result_options is not None or call.tool.limits.max_tokens
    if not is_bounded or not isinstance(outcome, Ok) or not isinstance(outcome.value, str):
        return outcome
    from tooli.pipeline.envelope import measure_envelope
    from tooli.records.record_flow import RecordFlow
    from tooli.records.result_options import resolve_result_options

    flow = RecordFlow(
        resolve_result_options(call.options.result_options, call.tool), call.arguments
    )
    budget = flow.result_options.byte_budget
    if budget is None or measure_envelope(outcome, call) <= budget[0]:
        return outcome
    from tooli.records.truncate import truncate_result
    from tooli.storage.overflow import write_overflow

    return truncate_result(call, flow, outcome.value, write_overflow)
