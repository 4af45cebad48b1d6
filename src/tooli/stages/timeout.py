"""A call that may not take for ever is run where it can be stopped."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage


def enforce_timeout(rules: Mapping[str, Any]) -> Stage:
    """The stage under an app's rules; a call that has to be alone is, with or without a limit."""

    def run_with_timeout(call: Call) -> Generator[Call, Outcome, Outcome]:
        from tooli.execution.timeouts import can_fork, effective_timeout

        needs_own_process = call.runner is not None and call.runner.needs_own_process
        seconds = effective_timeout(call, rules)
        if seconds is None and not needs_own_process:
            return (yield call)
        if can_fork():
            from tooli.execution.process_runner import ProcessRunner

            return (yield call.replace(runner=ProcessRunner(call.runner, seconds)))
        if needs_own_process:
            from tooli.errors import AuthError

            raise AuthError("Here no command can have a process of its own.", code="E2006")
        from tooli.execution.thread_runner import ThreadRunner

        assert seconds is not None
        return (yield call.replace(runner=ThreadRunner(call.runner, seconds)))

    return run_with_timeout
