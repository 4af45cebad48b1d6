"""The policy of an app as one tuple: which stages stand around a call, outermost first."""

from __future__ import annotations

import sys

from tooli.call.pipeline import ONLY_BIND

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.call.model import Options, Stage
    from tooli.contract.tool import Tool


MARKERS = frozenset(("tooli.contract.details", "pydantic"))
"""Where marks on details come from: where neither is loaded, there are none."""


def choose(
    tool: Tool,
    options: Options,
    house: Any,
    session: str | None,
    find: Callable[[str], Tool | None],
) -> tuple[Stage, ...]:
    """The stages that have something to do for a call; nothing that guards is left to its word.

    `house` is the app's: its policy, its rules, the ceiling of its commands.
    """
    policy = house.policy
    # [slot: audit, outside of bind]
    stages: list[Stage] = [*ONLY_BIND]
    if policy == "strict" or (policy != "off" and tool.guard.scopes is not None):
        from tooli.stages.authorization import authorize

        stages.append(authorize)
    # [slot: paths that are allowed]
    if tool.behavior.destructive or tool.guard.approval:
        from tooli.stages.approval import require_approval

        stages.append(require_approval)
    if options.dry_run:
        from tooli.stages.dry_run import only_plan

        stages.append(only_plan)
    if options.detailed or (session is not None and options.detailed is None):
        from tooli.stages.detail import add_output_schema

        stages.append(add_output_schema)
    concise = concise_stages(options)
    shaped = shaping_stages(tool, options, concise)
    stages[:] = [*shaped[:1], *stages, *shaped[1:]] if shaped else [*stages, *concise]
    if tool.guidance.onward or (options.detailed and tool.guidance.handoffs):
        from tooli.stages.onward import lead_onward

        stages.append(lead_onward(find))
    if options.idempotency_key is not None and not options.dry_run:
        from tooli.stages.idempotency import run_once

        stages.append(run_once(house.rules.get("store")))  # keeps what the function gave, whole
    # [slot: capabilities]
    # [slot: isolation]
    # [slot: deadline]
    if tool.handles:
        from tooli.stages.handles import open_handles

        stages.append(open_handles)  # innermost: nothing is opened that another stage refuses
    return tuple(stages) if len(stages) > 1 else ONLY_BIND


def concise_stages(options: Options) -> list[Stage]:
    """What leaves out details; who selects fields has said which ones are wanted."""
    selected = options.shaping is not None and options.shaping.fields is not None
    if not options.concise or options.dry_run or selected or MARKERS.isdisjoint(sys.modules):
        return []
    from tooli.stages.concise import leave_out_details

    return [leave_out_details]


def shaping_stages(tool: Tool, options: Options, concise: list[Stage]) -> list[Stage]:
    """What is done to a result: the first reads what is wanted, before the arguments are bound.

    Details are left out of what was filtered, and before anything is measured.
    """
    shaping, limits = options.shaping, tool.limits
    keyed = options.idempotency_key is not None  # its records are kept, so they take that way
    if shaping is None and not (limits.page or limits.sourced or limits.max_tokens or keyed):
        return []
    from tooli.stages.shaping import open_flow

    stages: list[Stage] = [open_flow]
    bounded = limits.max_tokens is not None or (shaping is not None and shaping.bounded)
    if bounded:
        from tooli.stages.budget import keep_within

        stages.append(keep_within)
    stages += concise
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
