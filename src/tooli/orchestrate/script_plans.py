"""Dry runs of scripts, and runs that apply their plans.

    dry run:  a tool that only reads runs; any other is planned, and returns a placeholder
    apply:    a call that changes something is compared with the plan before it runs

A plan has one action for each planned call: `{"action": "call", "target": "drop(name=\"tea\")",
"details": {"call": 1, "line": 3, "tool": "drop", "arguments": {…}}}`. An argument that is the
result of a planned call is `{"$result_of": 1}`.
"""

from __future__ import annotations

from json import dumps

from tooli.core.tool import cut_text
from tooli.orchestrate.result_uses import find_unused_results
from tooli.orchestrate.script_values import RESULT_OF
from tooli.pipeline.dry_run_recorder import DryRunRecorder, PlanEnforcer, describe_action
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.orchestrate.inner_calls import InnerCall
    from tooli.orchestrate.script_tools import ScriptTool
    from tooli.pipeline.dry_run_recorder import ActionRecorder

_MAX_TARGET_CHARS = 300


class PlanStopped(Exception):  # noqa: N818  it is caught before anybody sees it
    """The script uses a value that the plan does not know."""


class DryRun:
    """The plan of a script: the calls that would change something."""

    def __init__(self, source: str, tools: Mapping[str, ScriptTool], inputs: object) -> None:
        self._unused_results = find_unused_results(source, tools)
        self._state = [source, inputs]
        self._entries: dict[int, JsonObject] = {}
        self._targets = _Targets()
        self.needs_yes = False  # a planned call needs a confirmation
        self.stopped: JsonObject | None = None  # where the plan ends, if it is incomplete

    def is_passed_on(self, position: int) -> bool:
        """True if the script only passes on the result of the call at a position."""
        return position in self._unused_results

    def add(self, call: InnerCall, arguments: JsonObject, plan: object) -> None:
        """Add a planned call. `plan` is that of its own dry run; None if there was none."""
        details: JsonObject = {
            "call": call.number,
            "line": call.line,
            "tool": call.tool.name,
            "arguments": arguments,
        }
        actions = plan.get("actions") if is_object(plan) else None
        if actions:
            details["actions"] = actions
        target = describe_call(call.tool.name, arguments)
        self._entries[call.number] = describe_action("call", target, details, self._state)

    def stop(self, line: int, reason: str) -> None:
        """Note where the plan ends, unless it has ended before."""
        if self.stopped is None:
            self.stopped = {"line": line, "reason": reason}

    def finish(self, recorder: DryRunRecorder) -> None:
        """Pass the planned calls on, in the order in which the script makes them."""
        for _, entry in sorted(self._entries.items()):
            recorder.add({**entry, "target": self._targets.unique(entry["target"])})
        is_complete = self.stopped is None
        recorder.facts = {"complete": is_complete}
        if self.needs_yes:
            recorder.facts["needs_yes"] = True
        if self.stopped is not None:
            recorder.facts["stopped"] = self.stopped


class AppliedPlan:
    """The plan that a script has to keep to."""

    def __init__(self, enforcer: PlanEnforcer) -> None:
        self._enforcer = enforcer
        self._open = [entry for entry in enforcer.actions if entry["action"] == "call"]
        self._results: dict[object, object] = {}  # of the planned calls that have ended

    def claim(self, call: InnerCall, arguments: JsonObject) -> JsonObject:
        """Return the planned call that matches a call. Raises E3053 if none does."""
        for entry in self._open:
            details = entry.get("details", {})
            is_call = (details.get("tool"), details.get("line")) == (call.tool.name, call.line)
            if is_call and self._matches(details.get("arguments"), arguments):
                self._open.remove(entry)
                self._enforcer.record_action("call", entry["target"], None, None)
                return entry
        shown = {} if call.tool.tool.may_have_secrets else arguments
        target = f"{describe_call(call.tool.name, shown)} on line {call.line}"
        self._enforcer.record_action("call", target, None, None)
        raise AssertionError("an action that is not in the plan is refused")

    def release(self, entry: JsonObject) -> None:
        """Take back the claim on a planned call: it was refused, so nothing was done."""
        self._open.append(entry)
        self._enforcer.withdraw_action(entry)

    def keep_result(self, entry: JsonObject, value: object) -> None:
        """Keep the result of a planned call, which other planned calls may have as an argument."""
        self._results[entry.get("details", {}).get("call")] = value

    def _matches(self, planned: Any, given: Any) -> bool:
        """True if arguments are the planned ones. References stand for the results of calls."""
        if is_object(planned):
            if planned.keys() == {RESULT_OF}:
                number = planned[RESULT_OF]
                return number in self._results and self._matches(self._results[number], given)
            if not is_object(given) or planned.keys() != given.keys():
                return False
            return all([self._matches(item, given[key]) for key, item in planned.items()])
        if is_list(planned):
            if not is_list(given) or len(planned) != len(given):
                return False
            return all([self._matches(item, given[i]) for i, item in enumerate(planned)])
        return type(planned) is type(given) and planned == given


class _Targets:
    """Makes the targets of calls unique: the second of two equal calls gets a number."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def unique(self, target: str) -> str:
        """Return a target, with a number if there was an equal one before."""
        count = self._counts[target] = self._counts.get(target, 0) + 1
        return target if count == 1 else f"{target} #{count}"


def describe_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as it stands in a script: `drop(name="tea")`."""
    parts = [f"{key}={_describe_value(value)}" for key, value in arguments.items()]
    return cut_text(f"{name}({', '.join(parts)})", _MAX_TARGET_CHARS)


def _describe_value(value: Any) -> str:
    if is_object(value) and value.keys() == {RESULT_OF}:
        return f"<result of call {value[RESULT_OF]}>"
    return dumps(value, ensure_ascii=False)


def has_reference(value: Any) -> bool:
    """True if a value contains the result of a planned call."""
    if is_object(value):
        return value.keys() == {RESULT_OF} or any([has_reference(item) for item in value.values()])
    return is_list(value) and any([has_reference(item) for item in value])


def plan_of(
    recorder: ActionRecorder | None,
    source: str,
    tools: Mapping[str, ScriptTool],
    inputs: object,
) -> DryRun | AppliedPlan | None:
    """Return the plan that a run makes or applies; None for an ordinary run."""
    if isinstance(recorder, DryRunRecorder):
        return DryRun(source, tools, inputs)
    return AppliedPlan(recorder) if isinstance(recorder, PlanEnforcer) else None
