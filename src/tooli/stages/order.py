"""The policy of an app as one tuple: which stages stand around a call, outermost first."""

from __future__ import annotations

import sys

from tooli.call.pipeline import ONLY_BIND

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.call.model import Options, Stage
    from tooli.contract.tool import Tool


MARKERS = frozenset(("tooli.contract.details", "pydantic"))
"""Where marks on details come from: where neither is loaded, there are none."""


def choose(
    tool: Tool,
    options: Options,
    policy: str,
    session: str | None,
    find: Callable[[str], Tool | None],
) -> tuple[Stage, ...]:
    """The stages that have something to do for a call; nothing that guards is left to its word."""
    stages: list[Stage] = [*ONLY_BIND]
    if policy == "strict" or (policy != "off" and tool.guard.scopes is not None):
        from tooli.stages.authorization import authorize

        stages.append(authorize)
    if tool.behavior.destructive or tool.guard.approval:
        from tooli.stages.approval import require_approval

        stages.append(require_approval)
    if options.dry_run:
        from tooli.stages.dry_run import only_plan

        stages.append(only_plan)
    if options.detailed or (session is not None and options.detailed is None):
        from tooli.stages.detail import add_output_schema

        stages.append(add_output_schema)
    if options.concise and not options.dry_run and not MARKERS.isdisjoint(sys.modules):
        from tooli.stages.concise import leave_out_details

        stages.append(leave_out_details)
    if tool.guidance.onward or (options.detailed and tool.guidance.handoffs):
        from tooli.stages.onward import lead_onward

        stages.append(lead_onward(find))
    if tool.handles:
        from tooli.stages.handles import open_handles

        stages.append(open_handles)  # innermost: nothing is opened that another stage refuses
    return tuple(stages) if len(stages) > 1 else ONLY_BIND
