"""Write denied calls, and runs of destructive or restricted commands, to the audit log."""

from __future__ import annotations

import os
from time import perf_counter

from tooli.core.call import Failed
from tooli.storage.audit_log import log_event, set_log_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call, Stage, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError
    from tooli.pipeline import StageContext


def select_audit_log(context: StageContext) -> Stage:
    """Write to the audit log that the settings name, instead of the default one."""
    path = context.state.security_settings.get("audit_log", "")

    def set_audit_log(call: Call) -> StageRun:
        set_log_path(call.tool.app, path)
        return (yield call)

    return set_audit_log


def record_identity_denials(context: StageContext) -> Stage | None:
    """Log calls that are denied because of the caller's token or scopes.

    The stage logs no arguments. It runs before `bind`, so it does not know which are secrets.
    """
    checks_scopes = context.is_strict or context.tool.guard.scopes
    if not checks_scopes and "TOOLI_TOKEN_FILE" not in os.environ:
        return None

    def record_denied_identity(call: Call) -> StageRun:
        return (yield from _log_denials(call, call.replace(arguments={})))

    return record_denied_identity


def record_denials(call: Call) -> StageRun:
    """Log calls that are denied.

    The stage follows `bind` directly. So invalid arguments do not count as a denial, and it is
    known which of the logged arguments are secrets.
    """
    return (yield from _log_denials(call, call))


def _log_denials(call: Call, logged_call: Call) -> StageRun:
    """Pass the call on. If it is denied, log it as `logged_call`."""
    outcome = yield call
    if isinstance(outcome, Failed) and _is_denial(outcome.error):
        error = outcome.error
        log_event("denial", logged_call, code=error.code, message=error.message)
        vars(error)["is_logged"] = True
    return outcome


def record_run(call: Call) -> StageRun:
    """Log the start and the end of a run.

    It follows `approval`, `idempotency` and `apply_plan`, so that a call that they reject or replay
    is not logged as a run. Under the policy `strict` a call does not start if it cannot be logged.
    """
    if call.options.dry_run:
        return (yield call)
    event = "destructive_run" if call.tool.behavior.destructive else "run"
    log_event(event, call, required=True, phase="begins", **_overrides(call))
    started = perf_counter()
    outcome = yield call
    fields: dict[str, Any] = {"ms": int((perf_counter() - started) * 1000)}
    if isinstance(outcome, Failed):
        vars(outcome.error)["is_logged"] = True
        fields["code"] = outcome.error.code
    log_event(event, call, phase="ends", ok="code" not in fields, **fields)
    return outcome


def _is_denial(error: ToolError) -> bool:
    """True if the error is a denial that is not logged yet."""
    refused = error.code in ("E1010", "E1037") or error.code[:2] == "E2"
    return refused and "is_logged" not in vars(error)


def _overrides(call: Call) -> JsonObject:
    """Return how the call was confirmed: by `--yes`, a plan token or an approval."""
    options = call.options
    overrides = {"yes": options.yes, "apply": options.apply is not None, "approved": call.approved}
    names = [name for name, is_set in overrides.items() if is_set]
    return {"override": names} if names else {}
