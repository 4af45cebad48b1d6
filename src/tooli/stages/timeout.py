"""Stop calls that exceed their timeout."""

from __future__ import annotations

from tooli.errors import AuthError
from tooli.execution.timeouts import can_fork, effective_timeout

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, Stage, StageRun
    from tooli.pipeline import StageContext


def enforce_timeout(context: StageContext) -> Stage:
    """Stop the function after the timeout.

    `tooli/execution/timeouts.py` lists how each kind of function is stopped. A sandboxed call has a
    process of its own even without a timeout.
    """
    settings = context.state.security_settings

    def run_with_timeout(call: Call) -> StageRun:
        needs_own_process = call.runner is not None and call.runner.needs_own_process
        seconds = effective_timeout(call, settings)
        if call.tool.limits.stops_itself:
            from tooli.execution.cooperative_timeouts import SelfStoppingRunner

            return (yield call.replace(runner=SelfStoppingRunner(call.runner, seconds)))
        if seconds is None and not needs_own_process:
            return (yield call)
        if can_fork():
            from tooli.execution.process_runner import ProcessRunner

            return (yield call.replace(runner=ProcessRunner(call.runner, seconds)))
        if needs_own_process:
            raise AuthError(
                "This platform cannot run a command in a process of its own.", code="E2006"
            )
        from tooli.execution.cooperative_timeouts import ThreadRunner

        assert seconds is not None
        return (yield call.replace(runner=ThreadRunner(call.runner, seconds)))

    return run_with_timeout
