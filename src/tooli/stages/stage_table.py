"""The policy of an app as one tuple: which stages stand around a call, outermost first."""

from __future__ import annotations

import os
import sys

from tooli.core.tool import may_contain_secret
from tooli.pipeline.drivers import ONLY_BIND

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from tooli.config.layers import SettingFault
    from tooli.core.call import Call, Options, Outcome, Stage
    from tooli.core.tool import Tool


DETAIL_MODULES = frozenset(("tooli.schema.detail_fields", "pydantic"))
"""Where marks on details come from: where neither is loaded, there are none."""

PATH_SETTINGS = frozenset(("allow_paths", "deny_paths", "work_dir"))
"""Settings about the paths that callers name."""
MONITOR_SETTINGS = frozenset(("allow_paths", "deny_paths", "record_capabilities"))
"""Settings for which a function runs under watch, whatever it declares."""


def select_stages(
    tool: Tool,
    options: Options,
    state: Any,
    session: str | None,
    find_tool: Callable[[str], Tool | None],
) -> tuple[Stage, ...]:
    """The stages that have something to do for a call; nothing that guards is left to its word.

    `house` is the app's: its policy, its rules, the ceiling of its commands.
    """
    if "faults" in state.security_settings:
        return (reject_all_calls(state.security_settings["faults"]),)
    audited = is_audited(tool, state)
    concise = concise_stages(options)
    result = result_stages(tool, options, concise)
    stages = (
        *entry_stages(tool, state, session, audited),
        *result[:1],
        *work_dir_stages(state),
        *ONLY_BIND,
        *audit_denial_stages(audited),
        *permission_stages(tool, options, state),
        *dry_run_stages(options),
        *output_schema_stages(options, session),
        *(() if options.dry_run else result[1:] or concise),  # nothing is done to a plan
        *next_step_stages(tool, options, find_tool),
        *idempotency_stages(options, state),
        *run_stages(options, audited),  # inside of what answers a call without a run
        *enforcement_stages(tool, options, state),
        *handle_stages(tool),  # nothing is opened that another stage refuses
        *claim_stages(tool, options),  # innermost: from here on it runs
    )
    return stages if len(stages) > 1 else ONLY_BIND


def reject_all_calls(faults: list[SettingFault]) -> Stage:
    """The stage of an app whose settings are wrong: nobody knows what they were to guard."""

    def refuse(call: Call) -> Generator[Call, Outcome, Outcome]:
        from tooli.config.layers import make_settings_error

        yield from ()
        raise make_settings_error(faults)

    return refuse


def entry_stages(tool: Tool, state: Any, session: str | None, audited: bool) -> list[Stage]:
    """What looks at a call as it comes: is it one more of the same, who makes it, with what."""
    stages: list[Stage] = []
    if session is not None:
        from tooli.stages.repeated_failures import stop_repeated_failures

        stages.append(stop_repeated_failures)  # outside of all that can fail
    if "TOOLI_TOKEN_FILE" in os.environ:
        from tooli.stages.authentication import authenticate_caller

        if audited:
            from tooli.stages.audit import record_identity_denials

            stages.append(record_identity_denials)
        stages.append(
            authenticate_caller(state.security_settings)
        )  # outside of whatever asks who is calling
    if state.policy != "off" and may_contain_secret(tool.params):
        from tooli.stages.secret_tracking import track_secrets

        stages.append(track_secrets)
    return stages


def work_dir_stages(state: Any) -> list[Stage]:
    """Where relative paths start from, before they are bound."""
    if PATH_SETTINGS.isdisjoint(state.security_settings):
        return []
    from tooli.stages.path_rules import resolve_work_dir

    return [resolve_work_dir(state)]


def permission_stages(tool: Tool, options: Options, state: Any) -> list[Stage]:
    """Who may run it, on which paths, and who has to agree."""
    policy = state.policy
    stages: list[Stage] = []
    if policy == "strict" or (policy != "off" and tool.guard.scopes is not None):
        from tooli.stages.authorization import authorize

        stages.append(authorize)
    if not PATH_SETTINGS.isdisjoint(state.security_settings):
        from tooli.stages.path_rules import enforce_path_rules

        stages.append(enforce_path_rules(state))
    if may_need_approval(tool):
        from tooli.stages.approval import require_approval

        human_required = bool(state.security_settings.get("human_in_the_loop"))
        stages.append(require_approval(human_required, enforcement_stages(tool, options, state)))
    return stages


def dry_run_stages(options: Options) -> list[Stage]:
    """A plan instead of a run."""
    if not options.dry_run:
        return []
    from tooli.stages.dry_run import answer_with_plan

    return [answer_with_plan]


def output_schema_stages(options: Options, session: str | None) -> list[Stage]:
    """The schema of the result beside it."""
    may_be_first_call = session is not None and options.detailed is None
    if options.dry_run or not (options.detailed or may_be_first_call):
        return []
    from tooli.stages.output_schema import add_output_schema

    return [add_output_schema]


def next_step_stages(
    tool: Tool, options: Options, find_tool: Callable[[str], Tool | None]
) -> list[Stage]:
    """What to run next."""
    guidance = tool.guidance
    if options.dry_run or not (
        guidance.may_return_next or (options.detailed and guidance.handoffs)
    ):
        return []
    from tooli.stages.next_steps import add_next_steps

    return [add_next_steps(find_tool)]


def idempotency_stages(options: Options, state: Any) -> list[Stage]:
    """One run for one key; what the function gave is kept whole."""
    if options.idempotency_key is None or options.dry_run:
        return []
    from tooli.stages.idempotency_key import run_once

    return [run_once(state.security_settings.get("store"))]


def handle_stages(tool: Tool) -> list[Stage]:
    """Inputs read, outputs put in place."""
    if not tool.has_handles:
        return []
    from tooli.stages.handles import open_handles

    return [open_handles]


def claim_stages(tool: Tool, options: Options) -> list[Stage]:
    """What tells those who took something for a call that it is used now."""
    if options.dry_run or not (may_need_approval(tool) or options.apply is not None):
        return []
    from tooli.pipeline.single_use_claims import start_claims

    return [start_claims]


def may_need_approval(tool: Tool) -> bool:
    """Whether a human may have to agree to a call."""
    return tool.behavior.destructive or tool.guard.may_need_approval


def enforcement_stages(tool: Tool, options: Options, state: Any) -> list[Stage]:
    """What holds the function while it runs, innermost first: each stands around those before."""
    stages: list[Stage] = []
    if (
        tool.guard.capabilities
        or tool.guard.app_permissions
        or not MONITOR_SETTINGS.isdisjoint(state.security_settings)
    ):
        from tooli.stages.capability_enforcement import enforce_capabilities

        stages.append(enforce_capabilities(state))
    isolation = tool.guard.isolation or state.security_settings.get("isolation")
    if isolation in ("wanted", "required"):
        from tooli.stages.isolation import isolate

        stages.append(isolate(state, isolation == "required"))
    if options.timeout or tool.limits.timeout or tool.guard.isolation or state.security_settings:
        from tooli.stages.timeout import enforce_timeout

        stages.append(enforce_timeout(state.security_settings))
    return stages


def is_audited(tool: Tool, state: Any) -> bool:
    """Whether the calls of a tool are written down, and where, if that is set."""
    if "audit_log" in state.security_settings:
        from tooli.storage.audit_log import set_log_path

        set_log_path(tool.app, state.security_settings["audit_log"])
    return state.policy == "strict" or (state.policy != "off" and may_need_approval(tool))


def audit_denial_stages(audited: bool) -> list[Stage]:
    """What notes that a call was refused."""
    if not audited:
        return []
    from tooli.stages.audit import record_denials

    return [record_denials]


def run_stages(options: Options, audited: bool) -> list[Stage]:
    """What stands around a call that nothing has refused: it is held to its plan, and noted."""
    stages: list[Stage] = []
    if options.apply is not None and not options.dry_run:
        from tooli.stages.apply_plan import apply_plan

        stages.append(apply_plan)
    if audited:
        from tooli.stages.audit import record_run

        stages.append(record_run)
    return stages


def concise_stages(options: Options) -> list[Stage]:
    """What leaves out details; who selects fields has said which ones are wanted."""
    selected = options.result_options is not None and options.result_options.fields is not None
    if not options.concise or options.dry_run or selected or DETAIL_MODULES.isdisjoint(sys.modules):
        return []
    from tooli.stages.concise import omit_details

    return [omit_details]


def result_stages(tool: Tool, options: Options, concise: list[Stage]) -> list[Stage]:
    """What is done to a result: the first reads what is wanted, before the arguments are bound.

    Details are left out of what was filtered, and before anything is measured.
    """
    result_options, limits = options.result_options, tool.limits
    has_key = options.idempotency_key is not None  # its records are kept, so they take that way
    if result_options is None and not (
        limits.page_size or limits.returns_page or limits.max_tokens or has_key
    ):
        return []
    from tooli.stages.result_setup import open_record_flow

    stages: list[Stage] = [open_record_flow]
    has_limit = limits.max_tokens is not None or (
        result_options is not None and result_options.has_limit
    )
    if has_limit:
        from tooli.stages.budget import limit_size

        stages.append(limit_size)
    stages += concise
    if result_options is not None and result_options.fields is not None:
        from tooli.stages.field_selection import select_fields

        stages.append(select_fields)
    is_paged = (
        limits.page_size
        or limits.returns_page
        or (result_options is not None and result_options.is_paged)
    )
    if has_limit or is_paged:
        from tooli.stages.pagination import paginate

        stages.append(paginate)
    if result_options is not None and result_options.filter is not None:
        from tooli.stages.filtering import filter_records

        stages.append(filter_records)
    if limits.returns_page:
        from tooli.stages.pagination import unwrap_page

        stages.append(unwrap_page)
    return stages
