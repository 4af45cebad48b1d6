"""On record: what may destroy something is written down before it runs, and what was refused."""

from __future__ import annotations

from time import perf_counter

from tooli.core.call import Failed
from tooli.storage.audit_log import log_event

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.core.call import Call, Outcome
    from tooli.errors import ToolError


def record_identity_denials(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Write down that a call was refused for who made it. Stands around what looks at that, and so
    outside of `bind`: nobody knows yet what among the arguments is a secret, so none is told."""
    outcome = yield call
    if isinstance(outcome, Failed) and _is_denial(outcome.error):
        _record_denial(call.replace(arguments={}), outcome.error)
    return outcome


def record_denials(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Write down that a call was refused. Stands right inside of `bind`: what does not fit is no
    refusal, and what is written down are arguments whose secrets are known as such."""
    outcome = yield call
    if isinstance(outcome, Failed) and _is_denial(outcome.error):
        _record_denial(call, outcome.error)
    return outcome


def _record_denial(call: Call, error: ToolError) -> None:
    log_event("denial", call, code=error.code, message=error.message)
    vars(error)["on_record"] = True


def record_run(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Write down that a call begins, and how it ended. Under the strict policy it does not begin
    where that cannot be written. Stands inside of all that may refuse or replay a call."""
    if call.options.dry_run:
        return (yield call)
    event = "destructive_run" if call.tool.behavior.destructive else "run"
    log_event(event, call, required=True, phase="begins", **_overrides(call))
    started = perf_counter()
    outcome = yield call
    fields: dict[str, Any] = {"ms": int((perf_counter() - started) * 1000)}
    if isinstance(outcome, Failed):
        vars(outcome.error)["on_record"] = True
        fields["code"] = outcome.error.code
    log_event(event, call, phase="ends", ok="code" not in fields, **fields)
    return outcome


def _is_denial(error: ToolError) -> bool:
    """Whether a call was refused, and that is not on record: as what a function says itself."""
    refused = error.code == "E1010" or error.code[:2] == "E2"
    return refused and "on_record" not in vars(error)


def _overrides(call: Call) -> dict[str, Any]:
    """What the caller put in the way's place: a flag, a plan, a human's word."""
    options = call.options
    overrides = {"yes": options.yes, "apply": options.apply is not None, "approved": call.approved}
    names = [name for name, is_set in overrides.items() if is_set]
    return {"override": names} if names else {}
