"""Plans: what a call would do, without doing it.

{"tool": …, "arguments": {…}, "effects": ["destructive"], "basis": "rehearsed",
 "actions": [{"action": "delete", "target": "old.log", "state": …}], "state": …, "token": …}
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.call.model import Call
    from tooli.errors import StateError


def plan_of(call: Call, actions: list[dict[str, Any]] | None = None) -> Any:
    """What a bound call would do: in the function's own words, else the checked call itself.

    Where `actions` are given, the function was rehearsed; otherwise no more is known than what
    it declares.
    """
    tool = call.tool
    plan = getattr(tool.fn, "tooli_plan", None)
    if plan is not None:
        return plan(**{param.name: call.arguments[param.name] for param in tool.public})
    made: dict[str, Any] = {
        "tool": tool.id,
        "arguments": _given(call),
        "effects": list(tool.behavior.words()),
        "basis": "declared" if actions is None else "rehearsed",
    }
    if actions is not None:
        made["actions"] = actions
        states = [entry["state"] for entry in actions if "state" in entry]
        if states:
            made["state"] = digest_of(states)
    return made


def _given(call: Call) -> dict[str, Any]:
    """The arguments as callers name them."""
    tool = call.tool
    if tool.model is None:
        return {param.name: call.arguments[param.name] for param in tool.public}
    from tooli.contract.jsonable import jsonable

    return jsonable(call.arguments[tool.model[0]], [])


def is_plan(value: Any) -> bool:
    """Whether a result is a plan of ours, and not one in a function's own words."""
    from tooli.contract.jsonable import is_object

    return is_object(value) and value.get("basis") in ("declared", "rehearsed")


def digest_of(plan: Any) -> str:
    """What tells a plan from another one."""
    from tooli.call.canonical import digest
    from tooli.call.envelope import encode

    return digest(encode(plan, []), 16).hex()


def essence_of(call: Call, actions: list[dict[str, Any]] | None) -> str:
    """What must not have moved when a plan is applied; the arguments are looked at apart."""
    tool = call.tool
    return digest_of([tool.id, tool.version, list(tool.behavior.words()), actions])


# ------------------------------------------------------------------ plans that do not hold

MARKED = 24
"""Actions that a token knows one by one, to tell later which of them have moved."""


def marks_of(actions: list[dict[str, Any]] | None) -> bytes:
    """A few bytes for each action: two for what it is, two for all that is said of it."""
    from tooli.call.canonical import digest
    from tooli.call.envelope import encode

    if not actions or len(actions) > MARKED:
        return b""
    return b"".join(
        [
            digest(encode([entry["action"], entry["target"]], []), 2) + digest(encode(entry, []), 2)
            for entry in actions
        ]
    )


def moved(
    actions: list[dict[str, Any]] | None, marks: bytes, why: str = "what it was made for has moved"
) -> StateError:
    """The refusal of a plan that does not hold any more, with what differs."""
    details: dict[str, Any] = {"actions": actions} if actions is not None else {}
    if marks and actions is not None:
        details = _difference(actions, marks)
    from tooli.call.failure import unrun
    from tooli.errors import StateError, Suggestion

    refusal = StateError(
        f"The plan does not hold any more: {why}. Nothing was done.",
        code="E3053",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Repeat the call with --dry-run, look at the new plan, and apply that one.",
        ),
        details=details,
    )
    return unrun(refusal)


def _difference(actions: Sequence[dict[str, Any]], marks: bytes) -> dict[str, Any]:
    """What is new among the actions, what has changed, and how many are gone."""
    planned = [(marks[i : i + 2], marks[i + 2 : i + 4]) for i in range(0, len(marks), 4)]
    known = [mark[0] for mark in planned]
    added: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for entry in actions:
        mark = marks_of([entry])
        if mark[:2] not in known:
            added.append(entry)
            continue
        known.remove(mark[:2])
        if (mark[:2], mark[2:]) not in planned:
            changed.append(entry)
    found: dict[str, Any] = {"added": added, "changed": changed}
    shown = {name: entries for name, entries in found.items() if entries}
    return {**shown, "gone": len(known)} if known else shown


def off_the_plan(entry: dict[str, Any], done: list[dict[str, Any]]) -> StateError:
    """The refusal of an action that no plan holds, while a plan is being applied."""
    from tooli.errors import StateError, Suggestion

    said = f"{entry['action']} {entry['target']}"
    so_far = f"{len(done)} of its actions were done before" if done else "nothing was done"
    return StateError(
        f"The command went on to {said}, which is not in the plan: stopped there; {so_far}.",
        code="E3053",
        suggestion=Suggestion(
            "ask_human", "Look at what was done, then plan the rest with --dry-run."
        ),
        is_retryable=False,
        details={"unplanned": entry, "done": done},
    )
