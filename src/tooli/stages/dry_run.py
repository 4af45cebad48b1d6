"""A dry run: the call is checked, and nothing happens."""

from __future__ import annotations

from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.call.model import Call, Outcome


def only_plan(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Answer with the validated call instead of running it, or with the function's own plan."""
    if not call.options.dry_run:
        return (yield call)
    tool = call.tool
    given = {param.name: call.arguments[param.name] for param in tool.public}
    plan = getattr(tool.fn, "tooli_plan", None)
    if plan is not None:
        return Ok(plan(**given))
    return Ok(
        {
            "would_call": tool.id,
            "arguments": given,
            "effects": list(tool.behavior.words()),
        }
    )
