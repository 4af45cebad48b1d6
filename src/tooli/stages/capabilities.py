"""Monitor a function: check its actions against its capabilities and the settings."""

from __future__ import annotations

from tooli.core.call import Failed
from tooli.execution.monitor.audit_hook import Monitor, Violation
from tooli.execution.monitor.monitored_runner import (
    RECORDED_KEY,
    VIOLATIONS_KEY,
    MonitoredRunner,
    RecordingRunner,
    append_record,
    capability_error,
)
from tooli.policy.allowed_access import (
    redirected_path_error,
    resolve_bounds,
    resolve_declared,
    with_uploads,
)
from tooli.storage.audit_log import CallDescription, log_event

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage, StageRun
    from tooli.pipeline import StageContext


MAX_LOGGED_VIOLATIONS = 20
"""Maximum number of violations of one call that are logged."""


def enforce_capabilities(context: StageContext) -> Stage:
    """Monitor the actions of the function.

    Undeclared actions are ignored under the policy `off`. They are warnings under `standard` and
    errors under `strict`. The settings `allow_paths` and `deny_paths` apply under every policy.
    """
    state = context.state

    def enforce(call: Call) -> StageRun:
        declared, bounds = resolve_declared(call.tool, state), resolve_bounds(state)
        has_declaration = declared is not None
        declared, bounds = with_uploads(call, declared), with_uploads(call, bounds)
        if call.policy == "off":
            declared = None
        if declared is not None and declared.redirected:
            error = redirected_path_error(call.tool, declared)
            if call.policy == "strict":
                raise error
            call.warnings.append(error.message)
        if call.meta is not None and (has_declaration or bounds is not None):
            is_monitored = declared is not None or bounds is not None
            call.meta["enforcement"] = "audit" if is_monitored else "none"
        runner, owns_process = call.runner, call.caller.owns_process
        if declared is not None or bounds is not None:
            monitor = Monitor(
                declared, bounds, is_blocking=call.policy == "strict", owns_process=owns_process
            )
            runner = MonitoredRunner(monitor, runner)
        record_path = state.security_settings.get("record_capabilities")
        if record_path is not None:  # it wraps the monitored runner, so the monitor still applies
            runner = RecordingRunner(runner, owns_process)
        outcome = yield (call if runner is call.runner else call.replace(runner=runner))
        while isinstance(runner, MonitoredRunner):
            runner.monitor.on_violation = None  # threads that still run do not report to this call
            runner = runner.inner
        meta = call.meta or {}
        recorded = meta.pop(RECORDED_KEY, None)
        if record_path is not None:
            append_record(call, recorded, record_path)
        violations = [Violation(*row) for row in meta.pop(VIOLATIONS_KEY, ())]
        return _apply_violations(call, violations, outcome)

    return enforce


def _apply_violations(call: Call, violations: list[Violation], outcome: Outcome) -> Outcome:
    """Log the violations; return a failure if one of them is an error, otherwise the outcome."""
    _log_violations(call, violations)
    refusals = [
        violation
        for violation in violations
        if violation.code == "E2005" or call.policy == "strict"
    ]
    if not refusals or (isinstance(outcome, Failed) and outcome.error.code in _REFUSAL_CODES):
        return outcome
    error = capability_error(call, refusals[0])
    if isinstance(outcome, Failed):
        error.__cause__ = outcome.error
    return Failed(error)


def _log_violations(call: Call, violations: list[Violation]) -> None:
    """Log the first violations. The last line that is written has the number of the others."""
    logged = violations[:MAX_LOGGED_VIOLATIONS]
    not_logged = len(violations) - len(logged)
    described = CallDescription(call)
    for number, violation in enumerate(logged, 1):
        is_last = number == len(logged)
        omitted: dict[str, Any] = {"not_logged": not_logged} if not_logged and is_last else {}
        log_event(
            "violation",
            call,
            description=described,
            capability=violation.capability,
            target=violation.target,
            code=violation.code,
            **omitted,
        )


_REFUSAL_CODES = ("E2003", "E2005")
