"""Plans: what a call would do, without doing it.

{"tool": …, "arguments": {…}, "effects": ["destructive"], "basis": "rehearsed",
 "actions": [{"action": "delete", "target": "old.log", "state": …}], "state": …, "token": …}
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.errors import StateError


def build_plan(call: Call, actions: list[dict[str, Any]] | None = None) -> Any:
    """What a bound call would do: in the function's own words, else the checked call itself.

    Where `actions` are given, the function was rehearsed; otherwise no more is known than what
    it declares.
    """
    tool = call.tool
    plan = getattr(tool.fn, "tooli_plan", None)
    if plan is not None:
        return plan(**{param.name: call.arguments[param.name] for param in tool.public_params})
    document: dict[str, Any] = {
        "tool": tool.id,
        "arguments": _plan_arguments(call),
        "effects": list(tool.behavior.labels()),
        "basis": "declared" if actions is None else "rehearsed",
    }
    if actions is not None:
        document["actions"] = actions
        states = [entry["state"] for entry in actions if "state" in entry]
        if states:
            document["state"] = digest_plan(states)
    return document


def _plan_arguments(call: Call) -> dict[str, Any]:
    """The arguments as callers name them."""
    tool = call.tool
    if tool.input_model is None:
        return {param.name: call.arguments[param.name] for param in tool.public_params}
    from tooli.text.jsonable import to_jsonable

    return to_jsonable(call.arguments[tool.input_model[0]], [])


def is_plan(value: Any) -> bool:
    """Whether a result is a plan of ours, and not one in a function's own words."""
    from tooli.text.jsonable import is_object

    return is_object(value) and value.get("basis") in ("declared", "rehearsed")


def digest_plan(plan: Any) -> str:
    """What tells a plan from another one."""
    from tooli.core.call_fingerprint import digest
    from tooli.text.json_encoder import encode

    return digest(encode(plan, []), 16).hex()


def digest_plan_basis(call: Call, actions: list[dict[str, Any]] | None) -> str:
    """What must not have moved when a plan is applied; the arguments are looked at apart."""
    tool = call.tool
    return digest_plan([tool.id, tool.version, list(tool.behavior.labels()), actions])


# ------------------------------------------------------------------ plans that do not hold

MAX_MARKED_ACTIONS = 24
"""Actions that a token knows one by one, to tell later which of them have moved."""


def digest_actions(actions: list[dict[str, Any]] | None) -> bytes:
    """A few bytes for each action: two for what it is, two for all that is said of it."""
    from tooli.core.call_fingerprint import digest
    from tooli.text.json_encoder import encode

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
    reason: str = "what it was made for has moved",
) -> StateError:
    """The refusal of a plan that does not hold any more, with what differs."""
    details: dict[str, Any] = {"actions": actions} if actions is not None else {}
    if digests and actions is not None:
        details = _compare_actions(actions, digests)
    from tooli.errors import StateError, Suggestion
    from tooli.pipeline.failure import mark_not_started

    error = StateError(
        f"The plan does not hold any more: {reason}. Nothing was done.",
        code="E3053",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call with --dry-run, look at the new plan, and apply that one.",
        ),
        details=details,
    )
    return mark_not_started(error)


def _compare_actions(actions: Sequence[dict[str, Any]], digests: bytes) -> dict[str, Any]:
    """What is new among the actions, what has changed, and how many are gone."""
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
    """The refusal of an action that no plan holds, while a plan is being applied."""
    from tooli.errors import StateError, Suggestion

    action = f"{entry['action']} {entry['target']}"
    progress = f"{len(done)} of its actions were done before" if done else "nothing was done"
    return StateError(
        f"The command went on to {action}, which is not in the plan: stopped there; {progress}.",
        code="E3053",
        suggestion=Suggestion(
            "ask_human", "Look at what was done, then plan the rest with --dry-run."
        ),
        is_retryable=False,
        details={"unplanned": entry, "done": done},
    )
