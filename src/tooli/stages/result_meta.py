"""Add suggested commands and the schema of the result to `meta`."""

from __future__ import annotations

from tooli.core import CONTRACT_VERSION
from tooli.core.call import Ok, SuggestedCall
from tooli.core.catalog import candidate_keys
from tooli.core.result_types import Next
from tooli.pipeline.suggestions import show_call
from tooli.schema.json_schema import output_schema
from tooli.storage.state_files import is_first_call

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.core.call import Call, Stage, StageRun
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.pipeline import StageContext

    FindTool = Callable[[str], Tool | None]


MAX_NEXT_STEPS = 20
"""Maximum number of steps of a `Next` that an answer contains."""


def add_next_steps(context: StageContext) -> Stage | None:
    """Add the steps of a `Next`, or the declared handoffs, to `meta.next`.

    A step with an unknown command is a warning, not a failure: the call has run.
    """
    guidance, find_tool = context.tool.guidance, context.find_tool
    if not guidance.may_return_next and not guidance.handoffs:
        return None

    def append_steps(call: Call) -> StageRun:
        outcome = yield call
        if not isinstance(outcome, Ok):
            return outcome
        steps: list[JsonObject] = []
        value: Any = outcome.value
        if value.__class__ is Next:
            outcome = Ok(value.result)
            for step in value.steps[:MAX_NEXT_STEPS]:
                steps += _build_step(call, find_tool, step.command, step.arguments, step.why)
        if call.options.detailed and not steps:  # steps of the result are more specific
            for handoff in call.tool.guidance.handoffs:
                steps += _build_step(call, find_tool, handoff.command, None, handoff.when)
        if steps and call.meta is not None:
            call.meta["next"] = [*call.meta.get("next", ()), *steps]
        return outcome

    return append_steps


def _build_step(
    call: Call, find_tool: FindTool, name: str, arguments: Mapping[str, Any] | None, why: str
) -> list[JsonObject]:
    """Return a list with the step; an empty list, with a warning, if the command is unknown.

    If required arguments are unknown, a command line has `--help-agent`; elsewhere the step only
    names the command.
    """
    tool = next(filter(None, map(find_tool, candidate_keys(call.tool, name))), None)
    if tool is None:
        call.warnings.append(f"The result suggests {name!r}, but there is no such command.")
        return []
    audience = tool.guard.audience
    if audience and not call.caller.is_in_process and call.caller.scopes.isdisjoint(audience):
        return []  # for this caller, the command does not exist
    is_known = arguments is not None or not any(param.required for param in tool.public_params)
    words = () if is_known else (*tool.cli_path, "--help-agent")
    target = SuggestedCall(tool.path, arguments, tool=tool if is_known else None, words=words)
    step, _ = show_call(target, call)
    if "argv" not in step:
        step = {"command": tool.key, **step}
    return [{**step, "why": why} if why else step]


def add_output_schema(call: Call) -> StageRun:
    """Add the schema of the result to `meta`, if it was requested or on a session's first call."""
    schema = output_schema(call.tool)
    if call.meta is not None and call.options.detailed:
        call.meta["contract"] = CONTRACT_VERSION
    if (
        schema is not None
        and call.meta is not None
        and (call.options.detailed or (call.options.detailed is None and _is_first_call(call)))
    ):
        call.meta["output_schema"] = schema
    return (yield call)


def _is_first_call(call: Call) -> bool:
    """True if this is the first call of its session."""
    app, session = call.tool.id.partition(".")[0], call.caller.session
    return session is not None and is_first_call(app, session)
