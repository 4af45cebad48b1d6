"""Plans: documents that describe what a call would do.

{"tool": …, "arguments": {…}, "effects": ["destructive"], "basis": "dry_run",
 "actions": [{"action": "delete", "target": "old.log", "state": …}], "state": …, "token": …}
"""

from __future__ import annotations

from tooli.core.call_fingerprint import digest
from tooli.errors import StateError, Suggestion
from tooli.pipeline.failure import mark_not_started
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.core.call import Call


def build_plan(call: Call, actions: list[dict[str, Any]] | None = None) -> Any:
    """Return the plan of a bound call.

    A function with `tooli_plan` makes its own plan. For other functions it is a document about the
    call. `actions` are the actions that a dry run recorded. Without them the document contains
    what the command declares.
    """
    tool = call.tool
    plan = getattr(tool.fn, "tooli_plan", None)
    if plan is not None:
        return plan(**{param.name: call.arguments[param.name] for param in tool.public_params})
    document: dict[str, Any] = {
        "tool": tool.id,
        "arguments": _plan_arguments(call),
        "effects": list(tool.behavior.labels()),
        "basis": "declared" if actions is None else "dry_run",
    }
    if actions is not None:
        document["actions"] = actions
        states = [entry["state"] for entry in actions if "state" in entry]
        if states:
            document["state"] = digest_plan(states)
    return document


def _plan_arguments(call: Call) -> dict[str, Any]:
    """Return the arguments by the names that callers use."""
    tool = call.tool
    if tool.input_model is None:
        return {param.name: call.arguments[param.name] for param in tool.public_params}

    return to_jsonable(call.arguments[tool.input_model[0]], [])


def is_plan(value: Any) -> bool:
    """True if a result is a plan document. A plan that the function made itself is not."""
    return is_object(value) and value.get("basis") in ("declared", "dry_run")


def digest_plan(plan: Any) -> str:
    """Return a digest of a plan."""
    return digest(encode(plan, []), 16).hex()


def digest_plan_basis(call: Call, actions: list[dict[str, Any]] | None) -> str:
    """Return a digest of the command and the actions, which must be unchanged to apply a plan.

    The arguments are not part of it: the plan token is bound to them.
    """
    tool = call.tool
    return digest_plan([tool.id, tool.version, list(tool.behavior.labels()), actions])


# ------------------------------------------------------------------ invalid plans

MAX_MARKED_ACTIONS = 24
"""Maximum number of actions that a plan token identifies one by one."""


def digest_actions(actions: list[dict[str, Any]] | None) -> bytes:
    """Return four bytes for each action: two for name and target, two for the whole entry.

    Returns no bytes if there are no actions or too many.
    """
    if not actions or len(actions) > MAX_MARKED_ACTIONS:
        return b""
    return b"".join(
        [
            digest(encode([entry["action"], entry["target"]], []), 2) + digest(encode(entry, []), 2)
            for entry in actions
        ]
    )


def plan_changed_error(
    actions: list[dict[str, Any]] | None,
    digests: bytes,
    reason: str = "what it depends on has changed",
) -> StateError:
    """Return the error for a plan that has become invalid, with the differences."""
    details: dict[str, Any] = {"actions": actions} if actions is not None else {}
    if digests and actions is not None:
        details = _compare_actions(actions, digests)

    error = StateError(
        f"The plan is no longer valid: {reason}. Nothing was done.",
        code="E3053",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call with --dry-run, check the new plan, and apply that one.",
        ),
        details=details,
    )
    return mark_not_started(error)


def _compare_actions(actions: Sequence[dict[str, Any]], digests: bytes) -> dict[str, Any]:
    """Return which actions are new or changed, and how many are gone."""
    planned = [(digests[i : i + 2], digests[i + 2 : i + 4]) for i in range(0, len(digests), 4)]
    known = [digest_pair[0] for digest_pair in planned]
    added: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for entry in actions:
        digest_pair = digest_actions([entry])
        if digest_pair[:2] not in known:
            added.append(entry)
            continue
        known.remove(digest_pair[:2])
        if (digest_pair[:2], digest_pair[2:]) not in planned:
            changed.append(entry)
    by_kind: dict[str, Any] = {"added": added, "changed": changed}
    differences = {name: entries for name, entries in by_kind.items() if entries}
    return {**differences, "gone": len(known)} if known else differences


def unplanned_action_error(entry: dict[str, Any], done: list[dict[str, Any]]) -> StateError:
    """Return the error for an action that is not in the plan that is being applied."""
    action = f"{entry['action']} {entry['target']}"
    progress = f"{len(done)} of its actions were done" if done else "nothing was done"
    return StateError(
        f"The command was stopped before {action}, which is not in the plan: {progress}.",
        code="E3053",
        suggestion=Suggestion(
            "ask_human", "Check what was done, then plan the rest with --dry-run."
        ),
        is_retryable=False,
        details={"unplanned": entry, "done": done},
    )
