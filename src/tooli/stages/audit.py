"""Write denied calls, and runs of destructive or restricted commands, to the audit log."""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import Lock
from time import monotonic, perf_counter

from tooli.core.call import Failed
from tooli.core.caller_key import caller_key
from tooli.storage.audit_log import CallDescription, log_event, set_log_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call, Stage, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError
    from tooli.pipeline import StageContext


_FILE_SETTINGS = frozenset(("allow_paths", "deny_paths", "isolation"))


def select_audit_log(context: StageContext) -> Stage:
    """Write to the audit log that the settings name, instead of the default one."""
    path = context.state.security_settings.get("audit_log", "")

    def set_audit_log(call: Call) -> StageRun:
        set_log_path(call.tool.app, path)
        return (yield call)

    return set_audit_log


LIMIT_LOG_SECONDS = 60
"""A caller that exceeds a limit again within this time is counted, but not logged again."""
_LIMIT_CODES = ("E4029", "E4031")
_MAX_COUNTED_CALLERS = 10_000


class LimitCounter:
    """Counts the calls of each caller and command that a limit refused and that are not logged."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: OrderedDict[tuple[str, ...], tuple[float, int]] = OrderedDict()

    def count(self, key: tuple[str, ...]) -> int | None:
        """Return how many calls were not logged before this one; None if it is not logged."""
        with self._lock:
            now = monotonic()
            logged_at, skipped = self._counts.get(key, (-LIMIT_LOG_SECONDS, 0))
            if now - logged_at < LIMIT_LOG_SECONDS:
                self._counts[key] = logged_at, skipped + 1
                return None
            self._counts[key] = now, 0
            self._counts.move_to_end(key)
            if len(self._counts) > _MAX_COUNTED_CALLERS:
                self._counts.popitem(last=False)
            return skipped


_limit_counter = LimitCounter()


def record_limits(context: StageContext) -> Stage | None:
    """Log calls that a limit refuses: too many calls, or the same failing call again.

    A refused call costs its caller little. So at most one line per caller, command and minute is
    written, with the number of the others in `not_logged`.
    """
    if not context.can_track_failures and not context.caller.is_remote:
        return None

    def record_limited_call(call: Call) -> StageRun:
        outcome = yield call
        if isinstance(outcome, Failed) and outcome.error.code in _LIMIT_CODES:
            _log_limited_call(call, outcome.error)
        return outcome

    return record_limited_call


def _log_limited_call(call: Call, error: ToolError) -> None:
    key = caller_key(call.caller.principal, call.caller.address)
    skipped = _limit_counter.count((error.code, call.tool.id, key))
    if skipped is not None:
        fields: dict[str, Any] = {"not_logged": skipped} if skipped else {}
        logged_call = call.replace(arguments={})  # which of them are secrets is not known
        log_event("denial", logged_call, code=error.code, message=error.message, **fields)


def record_identity_denials(context: StageContext) -> Stage | None:
    """Log calls that are denied because of the caller's token or scopes, or of a file they name.

    The stage logs no arguments. It runs before `bind`, so it does not know which are secrets.
    """
    checks_scopes = context.is_strict or context.tool.guard.scopes
    checks_files = context.tool.guard.isolation or not _FILE_SETTINGS.isdisjoint(
        context.state.security_settings
    )
    if not checks_scopes and not checks_files and "TOOLI_TOKEN_FILE" not in os.environ:
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
    described = CallDescription(call)
    log_event(event, call, required=True, description=described, phase="begins", **_overrides(call))
    started = perf_counter()
    outcome = yield call
    fields: dict[str, Any] = {"ms": int((perf_counter() - started) * 1000)}
    if isinstance(outcome, Failed):
        vars(outcome.error)["is_logged"] = True
        fields["code"] = outcome.error.code
    is_ok = "code" not in fields
    log_event(event, call, description=described, phase="ends", ok=is_ok, **fields)
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
