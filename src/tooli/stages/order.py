"""The policy of an app as one tuple: which stages stand around a call, outermost first."""

from __future__ import annotations

import os
import sys

from tooli.call.pipeline import ONLY_BIND
from tooli.contract.tool import may_hide

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from tooli.call.model import Call, Options, Outcome, Stage
    from tooli.config.layers import Fault
    from tooli.contract.tool import Tool


MARKERS = frozenset(("tooli.contract.details", "pydantic"))
"""Where marks on details come from: where neither is loaded, there are none."""

PLACED = frozenset(("allow_paths", "deny_paths", "work_dir"))
"""Settings about the paths that callers name."""
WATCHED = frozenset(("allow_paths", "deny_paths", "record_capabilities"))
"""Settings for which a function runs under watch, whatever it declares."""


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
    if "faults" in house.rules:
        return (refuse_all(house.rules["faults"]),)
    audited = on_record(tool, house)
    concise = concise_stages(options)
    shaped = shaping_stages(tool, options, concise)
    stages = (
        *arriving_stages(tool, house, session, audited),
        *shaped[:1],
        *folder_stages(house),
        *ONLY_BIND,
        *denial_stages(audited),
        *permitting_stages(tool, options, house),
        *planning_stages(options),
        *telling_stages(options, session),
        *(() if options.dry_run else shaped[1:] or concise),  # nothing is done to a plan
        *onward_stages(tool, options, find),
        *once_stages(options, house),
        *running_stages(options, audited),  # inside of what answers a call without a run
        *holding_stages(tool, options, house),
        *handle_stages(tool),  # nothing is opened that another stage refuses
        *claiming_stages(tool, options),  # innermost: from here on it runs
    )
    return stages if len(stages) > 1 else ONLY_BIND


def refuse_all(faults: list[Fault]) -> Stage:
    """The stage of an app whose settings are wrong: nobody knows what they were to guard."""

    def refuse(call: Call) -> Generator[Call, Outcome, Outcome]:
        from tooli.config.layers import faulty

        yield from ()
        raise faulty(faults)

    return refuse


def arriving_stages(tool: Tool, house: Any, session: str | None, audited: bool) -> list[Stage]:
    """What looks at a call as it comes: is it one more of the same, who makes it, with what."""
    stages: list[Stage] = []
    if session is not None:
        from tooli.stages.loops import break_loops

        stages.append(break_loops)  # outside of all that can fail
    if "TOOLI_TOKEN_FILE" in os.environ:
        from tooli.stages.identity import identify

        if audited:
            from tooli.stages.audit import note_strangers

            stages.append(note_strangers)
        stages.append(identify(house.rules))  # outside of whatever asks who is calling
    if house.policy != "off" and may_hide(tool.params):
        from tooli.stages.redaction import note_secrets

        stages.append(note_secrets)
    return stages


def folder_stages(house: Any) -> list[Stage]:
    """Where relative paths start from, before they are bound."""
    if PLACED.isdisjoint(house.rules):
        return []
    from tooli.stages.paths import enter_folder

    return [enter_folder(house)]


def permitting_stages(tool: Tool, options: Options, house: Any) -> list[Stage]:
    """Who may run it, on which paths, and who has to agree."""
    policy = house.policy
    stages: list[Stage] = []
    if policy == "strict" or (policy != "off" and tool.guard.scopes is not None):
        from tooli.stages.authorization import authorize

        stages.append(authorize)
    if not PLACED.isdisjoint(house.rules):
        from tooli.stages.paths import keep_to_paths

        stages.append(keep_to_paths(house))
    if may_need_human(tool):
        from tooli.stages.approval import require_approval

        human = bool(house.rules.get("human_in_the_loop"))
        stages.append(require_approval(human, holding_stages(tool, options, house)))
    return stages


def planning_stages(options: Options) -> list[Stage]:
    """A plan instead of a run."""
    if not options.dry_run:
        return []
    from tooli.stages.dry_run import only_plan

    return [only_plan]


def telling_stages(options: Options, session: str | None) -> list[Stage]:
    """The schema of the result beside it."""
    begins = session is not None and options.detailed is None
    if options.dry_run or not (options.detailed or begins):
        return []
    from tooli.stages.detail import add_output_schema

    return [add_output_schema]


def onward_stages(tool: Tool, options: Options, find: Callable[[str], Tool | None]) -> list[Stage]:
    """What to run next."""
    guidance = tool.guidance
    if options.dry_run or not (guidance.onward or (options.detailed and guidance.handoffs)):
        return []
    from tooli.stages.onward import lead_onward

    return [lead_onward(find)]


def once_stages(options: Options, house: Any) -> list[Stage]:
    """One run for one key; what the function gave is kept whole."""
    if options.idempotency_key is None or options.dry_run:
        return []
    from tooli.stages.idempotency import run_once

    return [run_once(house.rules.get("store"))]


def handle_stages(tool: Tool) -> list[Stage]:
    """Inputs read, outputs put in place."""
    if not tool.handles:
        return []
    from tooli.stages.handles import open_handles

    return [open_handles]


def claiming_stages(tool: Tool, options: Options) -> list[Stage]:
    """What tells those who took something for a call that it is used now."""
    if options.dry_run or not (may_need_human(tool) or options.apply is not None):
        return []
    from tooli.call.claims import begin_claims

    return [begin_claims]


def may_need_human(tool: Tool) -> bool:
    """Whether a human may have to agree to a call."""
    return tool.behavior.destructive or tool.guard.careful


def holding_stages(tool: Tool, options: Options, house: Any) -> list[Stage]:
    """What holds the function while it runs, innermost first: each stands around those before."""
    stages: list[Stage] = []
    if tool.guard.capabilities or tool.guard.ceilings or not WATCHED.isdisjoint(house.rules):
        from tooli.stages.capabilities import hold_to_capabilities

        stages.append(hold_to_capabilities(house))
    isolation = tool.guard.isolation or house.rules.get("isolation")
    if isolation in ("wanted", "required"):
        from tooli.stages.isolation import isolate

        stages.append(isolate(house, isolation == "required"))
    if options.timeout or tool.limits.timeout or tool.guard.isolation or house.rules:
        from tooli.stages.deadline import hold_to_time

        stages.append(hold_to_time(house.rules))
    return stages


def on_record(tool: Tool, house: Any) -> bool:
    """Whether the calls of a tool are written down, and where, if that is set."""
    if "audit_log" in house.rules:
        from tooli.state.audit import keep_at

        keep_at(tool.app, house.rules["audit_log"])
    return house.policy == "strict" or (house.policy != "off" and may_need_human(tool))


def denial_stages(audited: bool) -> list[Stage]:
    """What notes that a call was refused."""
    if not audited:
        return []
    from tooli.stages.audit import note_denials

    return [note_denials]


def running_stages(options: Options, audited: bool) -> list[Stage]:
    """What stands around a call that nothing has refused: it is held to its plan, and noted."""
    stages: list[Stage] = []
    if options.apply is not None and not options.dry_run:
        from tooli.stages.application import apply_plan

        stages.append(apply_plan)
    if audited:
        from tooli.stages.audit import note_run

        stages.append(note_run)
    return stages


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
