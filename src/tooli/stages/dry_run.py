"""Answer a dry run with a plan."""

from __future__ import annotations

from tooli.core.call import Failed, Ok
from tooli.core.call_fingerprint import fingerprint
from tooli.pipeline.dry_run_recorder import record_nested_call, supports_dry_run
from tooli.pipeline.planning import (
    build_plan,
    digest_actions,
    digest_plan_basis,
    is_plan,
    make_dry_run_function,
)
from tooli.storage.signing import compute_plan_binding, encode_plan_token

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome
    from tooli.core.protocols import JsonObject


def answer_with_plan(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Return a plan instead of running the call.

    A function marked with `dry_run_support` runs and records its actions. Other functions do not
    run. If a marked function acts before it calls `record_dry_action`, that is a bug in it.
    """
    tool = call.tool
    if getattr(tool.fn, "tooli_plan", None) is not None or not supports_dry_run(tool.fn):
        plan = build_plan(call)
        if is_plan(plan):
            record_nested_call(plan)
            add_plan_token(call, plan, None)
        return Ok(plan)
    outcome = yield call.replace(tool=tool.replace(fn=make_dry_run_function(call)))
    if isinstance(outcome, Failed):
        return outcome
    report: JsonObject = outcome.value
    plan = build_plan(call, report["actions"])
    if report["is_truncated"]:
        call.warnings.append(
            "the stream is too long: the plan contains the actions of its beginning"
        )
    else:
        add_plan_token(call, plan, report["actions"])
    return Ok(plan)


def add_plan_token(call: Call, plan: JsonObject, actions: list[JsonObject] | None) -> None:
    """Add a token to the plan, so that it can be applied. Warn if there is no signing key."""
    binding = compute_plan_binding(fingerprint(call), call.caller.principal)
    token = encode_plan_token(binding, digest_plan_basis(call, actions), digest_actions(actions))
    if token is None:
        call.warnings.append(
            "no signing key can be stored, so the plan has no token and cannot be applied"
        )
    else:
        plan["token"] = token
