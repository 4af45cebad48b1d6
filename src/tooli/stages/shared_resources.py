"""Open the lifespans of the apps of a command, if nothing has opened them for the process."""

from __future__ import annotations

from tooli.pipeline.lifespan import LifespanRunner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, StageRun


def open_lifespans(call: Call) -> StageRun:
    """Open the lifespans of the app for this call, unless a server has opened them."""
    return (yield call.replace(runner=LifespanRunner(call.runner)))
