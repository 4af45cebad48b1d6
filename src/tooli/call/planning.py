"""Plans: what a call would do, without doing it."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.call.model import Call


def plan_of(call: Call) -> Any:
    """What a bound call would do: in the function's own words, else the checked call itself."""
    tool = call.tool
    given = {param.name: call.arguments[param.name] for param in tool.public}
    plan = getattr(tool.fn, "tooli_plan", None)
    if plan is not None:
        return plan(**given)
    return {
        "would_call": tool.id,
        "arguments": given,
        "effects": list(tool.behavior.words()),
    }


def digest_of(plan: Any) -> str:
    """What tells a plan from another one."""
    from tooli.call.canonical import digest
    from tooli.call.envelope import encode

    return digest(encode(plan, []), 16).hex()
