"""A dry run: the call is checked, and nothing happens."""

from __future__ import annotations

from tooli.call.model import Failed, Ok
from tooli.call.planning import essence_of, is_plan, marks_of, plan_of
from tooli.call.rehearsal import note_call, rehearses

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.model import Call, Outcome


def only_plan(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Answer with a plan instead of running the call.

    A function that has opted in is rehearsed, and tells its actions. No other one is run at all.
    What one does that has opted in and acts before it asks is its author's mistake: the watch on
    capabilities could refuse writes under a rehearsal, where it is on.
    """
    tool = call.tool
    if getattr(tool.fn, "tooli_plan", None) is not None or not rehearses(tool.fn):
        plan = plan_of(call)
        if is_plan(plan):
            note_call(plan)
            add_token(call, plan, None)
        return Ok(plan)
    from tooli.call.acting import rehearsed

    outcome = yield call.replace(tool=tool.replace(fn=rehearsed(call)))
    if isinstance(outcome, Failed):
        return outcome
    told: dict[str, Any] = outcome.value
    plan = plan_of(call, told["actions"])
    if told["cut"]:
        call.warnings.append("the stream is too long: the plan holds what its beginning would do")
    else:
        add_token(call, plan, told["actions"])
    return Ok(plan)


def add_token(call: Call, plan: dict[str, Any], actions: list[dict[str, Any]] | None) -> None:
    """Let the plan be applied; where no key can be kept, say why it cannot."""
    from tooli.call.canonical import fingerprint
    from tooli.state.plans import bind_to, seal

    binding = bind_to(fingerprint(call), call.caller.principal)
    token = seal(binding, essence_of(call, actions), marks_of(actions))
    if token is None:
        call.warnings.append("no key can be kept here, so the plan has no token and no --apply")
    else:
        plan["token"] = token
