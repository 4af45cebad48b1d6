"""Tools and results as MCP clients take them, in both eras of the protocol.

Handshake-era clients want objects: a result that is none is wrapped as `{"result": …}`, in
the schema and in the answer. Later ones take any JSON, but not a bare null.
"""

from __future__ import annotations

from tooli.contract.schema import input_schema, output_schema
from tooli.contract.tool import BEHAVIOR, GUARD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Behavior, Tool

TOOLI_KEY = "io.tooli/tool"


def describe(
    name: str, tool: Tool, *, modern: bool = False, version: str | None = None
) -> dict[str, Any]:
    """A tool as `tools/list` shows it; `version` is the server's, which need not be repeated."""
    from tooli.views.schema import text_of

    described: dict[str, Any] = {
        "name": name,
        "title": title_of(tool),
        "description": text_of(tool) or title_of(tool),
        "inputSchema": arguments_schema(tool),
    }
    output = result_schema(tool, modern)
    if output is not None:
        described["outputSchema"] = output
    described["annotations"] = _hints(tool.behavior)
    meta = _meta(tool)
    if tool.version and tool.version != version:
        meta = {"version": tool.version, **meta}
    if meta:
        described["_meta"] = {TOOLI_KEY: meta}
    return described


def _hints(behaviour: Behavior) -> dict[str, bool]:
    """What it does to the world; what the protocol takes for granted is not said again.

    Of a tool that only reads, the protocol asks no more than whether its world is open; and
    where the author said nothing at all, nobody knows that.
    """
    if behaviour == BEHAVIOR:
        return {"destructiveHint": False}
    hints = {"readOnlyHint": True} if behaviour.read_only else {}
    if not behaviour.read_only:
        hints["destructiveHint"] = behaviour.destructive
        if behaviour.idempotent:
            hints["idempotentHint"] = True
    return {**hints, "openWorldHint": behaviour.open_world}


def title_of(tool: Tool) -> str:
    """The tool's name for people: "Users create"."""
    words = " ".join(tool.path or (tool.app,)).replace("-", " ").replace("_", " ")
    return words[:1].upper() + words[1:]


def arguments_schema(tool: Tool) -> dict[str, Any]:
    """The arguments of a call, with what is said to the framework among them where it matters:

    a destructive tool is confirmed, or only planned; a paginated one gives page after page.
    """
    schema = input_schema(tool)
    more = _CONFIRMING if is_confirmed(tool) else {}
    if more and getattr(tool.fn, "tooli_rehearses", False):
        more = {**more, **_APPLYING}
    more = {**more, **(_PAGING if tool.limits.paginated or tool.limits.max_tokens else {})}
    if not more:
        return schema
    own = schema["properties"]
    more = {name: said for name, said in more.items() if name not in own}
    return {**schema, "properties": {**own, **more}}


def is_confirmed(tool: Tool) -> bool:
    """Whether a client says among the arguments that a call is meant, or only planned."""
    return tool.behavior.destructive and not tool.guard.approval


_PAGING: dict[str, dict[str, Any]] = {
    "limit": {"type": "integer", "minimum": 0, "description": "Records on a page; 0 is all."},
    "cursor": {"type": "string", "description": "Where to go on: next_cursor of the page before."},
}


_CONFIRMING: dict[str, dict[str, Any]] = {
    "yes": {
        "type": "boolean",
        "description": "Must be true.",
    },
    "dry_run": {
        "type": "boolean",
        "description": "Only plan.",
    },
}


_APPLYING: dict[str, dict[str, Any]] = {
    "apply": {"type": "string", "description": "Token of a plan: run just that."},
}


def _meta(tool: Tool) -> dict[str, Any]:
    """What a client may want to know beyond the protocol's own fields."""
    guard, guidance, limits = tool.guard, tool.guidance, tool.limits
    said: dict[str, Any] = {
        "when_to_use": guidance.when_to_use,
        "task_group": guidance.task_group,
        "handoffs": [handoff.to_dict() for handoff in guidance.handoffs],
        "delegation_hint": guidance.delegation_hint,
        "cost_hint": limits.cost,
        "deprecated": tool.deprecated,
    }
    if guard is not GUARD:
        said |= {
            "capabilities": list(guard.capabilities),
            "scopes": list(guard.scopes or ()),
            "requires_approval": guard.approval,
            "human_in_the_loop": guard.human_in_the_loop,
            "danger_level": guard.danger,
        }
    return {name: value for name, value in said.items() if value}


# ------------------------------------------------------------------ results


def result_schema(tool: Tool, modern: bool) -> dict[str, Any] | None:
    """The schema of `structuredContent`; None where the tool declares no result."""
    schema = output_schema(tool)
    if schema is None:
        return None
    schema = _with_plain_root(schema)
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    if is_confirmed(tool):
        inner = _or_a_plan(inner)
    if is_wrapped(schema, modern):
        inner = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return {**inner, "$defs": schema["$defs"]} if "$defs" in schema else inner


def _or_a_plan(schema: dict[str, Any]) -> dict[str, Any]:
    """What a client that validates results must take: a result, or the plan of a dry run.

    Of two open objects no field is required; that says it in the fewest words.
    """
    is_object = schema.get("type") == "object"
    is_open = schema.get("additionalProperties", True) is True
    if is_object and is_open and _PLANNED.isdisjoint(schema.get("properties", ())):
        return {key: value for key, value in schema.items() if key != "required"}
    root = {"type": "object"} if is_object else {}
    return {**root, "anyOf": [schema, {"type": "object", "required": ["tool", "basis"]}]}


_PLANNED = frozenset(("tool", "arguments", "effects", "basis", "actions", "state", "token", "cut"))
"""The fields that a plan may have."""


def _with_plain_root(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its root written out: clients do not follow a reference there."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    root = schema["$defs"][reference.rpartition("/")[2]]
    return {**root, **{key: value for key, value in schema.items() if key != "$ref"}}


def is_wrapped(schema: dict[str, Any], modern: bool) -> bool:
    """Whether a result of this schema is sent as `{"result": …}`."""
    if schema.get("type") == "object":
        return False
    return not modern or "type" not in schema


def wraps(tool: Tool, modern: bool) -> bool:
    """The same of a tool; False where it declares no result."""
    schema = output_schema(tool)
    return schema is not None and is_wrapped(_with_plain_root(schema), modern)
