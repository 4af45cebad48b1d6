"""A dry run: the call is checked, and nothing happens."""

from __future__ import annotations

from tooli.call.model import Ok
from tooli.call.planning import plan_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.call.model import Call, Outcome


def only_plan(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Answer with the validated call instead of running it, or with the function's own plan."""
    if not call.options.dry_run:
        return (yield call)
    return Ok(plan_of(call))
