"""A call that may not take for ever is run where it can be stopped."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage


def hold_to_time(rules: Mapping[str, Any]) -> Stage:
    """The stage under an app's rules; a call that has to be alone is, with or without a limit."""

    def keep_time(call: Call) -> Generator[Call, Outcome, Outcome]:
        from tooli.enforce.deadlines import can_fork, seconds_for

        alone = call.runner is not None and call.runner.alone
        seconds = seconds_for(call, rules)
        if seconds is None and not alone:
            return (yield call)
        if can_fork():
            from tooli.enforce.child import Child

            return (yield call.replace(runner=Child(call.runner, seconds)))
        if alone:
            from tooli.errors import AuthError

            raise AuthError("Here no command can have a process of its own.", code="E2006")
        from tooli.enforce.threads import Beside

        assert seconds is not None
        return (yield call.replace(runner=Beside(call.runner, seconds)))

    return keep_time
