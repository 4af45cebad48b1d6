"""The policy of an app as one tuple: which stages stand around a call, outermost first."""

from __future__ import annotations

from tooli.call.pipeline import ONLY_BIND

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.call.model import Options, Stage
    from tooli.contract.tool import Tool


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
    shaped = shaping_stages(tool, options)
    if shaped:
        stages[:] = [shaped[0], *stages, *shaped[1:]]
    if tool.guidance.onward or (options.detailed and tool.guidance.handoffs):
        from tooli.stages.onward import lead_onward

        stages.append(lead_onward(find))
    return tuple(stages) if len(stages) > 1 else ONLY_BIND


def shaping_stages(tool: Tool, options: Options) -> list[Stage]:
    """What is done to a result: the first reads what is wanted, before the arguments are bound."""
    shaping, limits = options.shaping, tool.limits
    if shaping is None and not (limits.page or limits.sourced or limits.max_tokens):
        return []
    from tooli.stages.shaping import open_flow

    stages: list[Stage] = [open_flow]
    bounded = limits.max_tokens is not None or (shaping is not None and shaping.bounded)
    if bounded:
        from tooli.stages.budget import keep_within

        stages.append(keep_within)
    if shaping is not None and shaping.fields is not None:
        from tooli.stages.selection import select_fields

        stages.append(select_fields)
    paged = limits.page or limits.sourced or (shaping is not None and shaping.paged)
    if bounded or paged:
        from tooli.stages.pagination import paginate

        stages.append(paginate)
    if shaping is not None and shaping.filter is not None:
        from tooli.stages.filtering import filter_records

        stages.append(filter_records)
    if limits.sourced:
        from tooli.stages.pagination import take_page

        stages.append(take_page)
    return stages
