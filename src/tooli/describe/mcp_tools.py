"""Describe tools and their result schemas for MCP clients.

In protocol versions with an `initialize` handshake, structured content must be an object. Any other
result is wrapped as `{"result": …}`, in the schema and in the response. In stateless versions,
structured content may be any JSON value except null. A result is wrapped there only if its schema
has no `type`, because it may be null.

Many hosts show nothing but the structured content to their model. Therefore warnings, and how to
get the rest of an incomplete result, stand in it as well, in a field `meta`. A result without them
has no such field. `ResultForm` says where the field is.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core._hot_tables import TOOL_SCHEMA_OPTIONS
from tooli.core.docstring import sanitize_doc_text
from tooli.core.output_limits import RESULT_SIZE_KEY, SERVER_OUTPUT_LIMITS
from tooli.describe.portable_schemas import portable_arguments
from tooli.schema.json_schema import input_schema, output_schema
from tooli.text.jsonable import is_list
from tooli.text.unique_names import UniqueNames

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.core import AppState
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

TOOLI_KEY = "io.tooli/tool"


def description_text(tool: Tool) -> str:
    """Return the summary and the description of a tool."""
    doc = tool.doc
    return sanitize_doc_text(f"{doc.summary}\n\n{doc.description}".strip())


def safe_name(tool: Tool) -> str:
    """Return the tool's name with only the characters that every protocol accepts."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in tool.key).lower()


SEARCH_TOOL, RUN_TOOL, RUN_CODE_TOOL = "search_tools", "run_tool", "run_code"
BUILTIN_TOOLS = (SEARCH_TOOL, RUN_TOOL, RUN_CODE_TOOL)
"""Tools of a server that finds tools by search. A command of the app can replace them, but the tool
of a provider cannot."""


def tools_by_safe_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return the tools that some callers see by their safe names; duplicates get a number.

    Commands of the app get their names first, so the tool of a provider cannot take one.
    """
    shown = [tool for tool in tools if not tool.hidden or tool.guard.audience]
    names = UniqueNames()
    own = [_add_name(names, tool) for tool in shown if not tool.is_provided]
    for name in BUILTIN_TOOLS:
        names.add(name, f"{name}_{{}}".format)
    provided = [_add_name(names, tool) for tool in shown if tool.is_provided]
    found = {False: iter(own), True: iter(provided)}
    return {next(found[tool.is_provided]): tool for tool in shown}


def _add_name(names: UniqueNames, tool: Tool) -> str:
    base = safe_name(tool)[:60]
    return names.add(base, f"{base}_{{}}".format)


def describe_mcp_tool(
    name: str,
    tool: Tool,
    *,
    stateless: bool = False,
    has_output_schema: bool = True,
    version: str | None = None,
    hints: dict[str, bool] | None = None,
    app_meta: Mapping[str, Any] | None = None,
) -> JsonObject:
    """Describe a tool for `tools/list`. A tool version that equals `version` is left out.

    Protocol versions before 2025-06-18 have no output schemas (`has_output_schema=False`).
    `app_meta` is the `meta=` of the app. `hints` replaces the annotations of a tool that runs other
    tools.
    """
    described: JsonObject = {
        "name": name,
        "title": tool_title(tool),
        "description": _described(tool),
        "inputSchema": arguments_schema(tool),
    }
    output = result_schema(tool, stateless) if has_output_schema else None
    if output is not None:
        described["outputSchema"] = output
    hints = mcp_hints(tool) if hints is None else hints
    if hints:
        described["annotations"] = hints
    if "icons" in tool.guidance.mcp:
        described["icons"] = tool.guidance.mcp["icons"]
    meta = _tool_meta(tool)
    if tool.version and tool.version != version:
        meta = {"version": tool.version, **meta}
    all_meta = _meta_for_hosts(tool, app_meta)
    if meta:
        all_meta[TOOLI_KEY] = meta
    return {**described, "_meta": all_meta} if all_meta else described


def _described(tool: Tool) -> str:
    """Return the description for a model, which says if the tool is deprecated."""
    text = description_text(tool) or tool_title(tool)
    more = f": {tool.deprecated}" if isinstance(tool.deprecated, str) else ""
    return f"{text}\n\nDeprecated{more}." if tool.deprecated else text


MAX_SEARCH_HINT_CHARS = 300
MAX_RESULT_CHARS = 500_000
"""Characters of a result that a tool can ask for (Claude Code 2.1)."""
_CHARS_PER_TOKEN = 3  # JSON has fewer characters per token than prose


def _host_meta(tool: Tool) -> JsonObject:
    """Return entries of `_meta` that a host reads. All of them follow from the tool's keywords.

    Claude Code loads a tool with `alwaysLoad` at its start. It finds other tools by `searchHint`,
    and cuts results that are longer than `maxResultSizeChars`.
    """
    guidance, max_tokens = tool.guidance, tool.limits.max_tokens or 0
    meta: JsonObject = {}
    if guidance.always_visible:
        meta["anthropic/alwaysLoad"] = True
    if guidance.when_to_use or guidance.tags:
        parts = (tool.doc.summary, guidance.when_to_use, " ".join(guidance.tags))
        hint = " ".join(filter(None, parts))
        meta["anthropic/searchHint"] = sanitize_doc_text(hint)[:MAX_SEARCH_HINT_CHARS]
    max_chars = min(max_tokens * _CHARS_PER_TOKEN, MAX_RESULT_CHARS)
    if max_chars > SERVER_OUTPUT_LIMITS["claude-code"].amount:
        meta[RESULT_SIZE_KEY] = max_chars
    return meta


def _meta_for_hosts(tool: Tool, app_meta: Mapping[str, Any] | None) -> JsonObject:
    author_meta: JsonObject = tool.guidance.mcp.get("meta", {})
    return {**(app_meta or {}), **_host_meta(tool), **author_meta}


def max_result_chars(tool: Tool, app_meta: Mapping[str, Any] | None = None) -> int | None:
    """Return how many characters of a result Claude Code shows, if the tool asks for a number."""
    size = _meta_for_hosts(tool, app_meta).get(RESULT_SIZE_KEY)
    return min(size, MAX_RESULT_CHARS) if type(size) is int and size > 0 else None


def mcp_hints(tool: Tool) -> dict[str, bool]:
    """Return the MCP annotations of a tool. They follow from `tool.effects`.

    `readOnlyHint` and `idempotentHint` are left out if they are False, which is their default. A
    read-only tool has no `destructiveHint`, because it does not apply to it. `destructiveHint` and
    `openWorldHint` are left out if the author does not say so; clients then assume that they are
    true. Only a danger level says that a tool is not destructive, and only capabilities say that it
    uses no external systems.
    """
    effects = tool.effects
    hints: dict[str, bool] = {}
    if effects.read_only:
        hints["readOnlyHint"] = True
    elif effects.destructive or tool.guard.danger is not None:
        hints["destructiveHint"] = effects.destructive
    if effects.idempotent:
        hints["idempotentHint"] = True
    if effects.open_world or tool.guard.capabilities:
        hints["openWorldHint"] = effects.open_world
    return hints


def combine_hints(tools: Iterable[Tool]) -> dict[str, bool]:
    """Return the worst annotations of several tools, for a tool that runs any of them."""
    hints = [mcp_hints(tool) for tool in tools]
    combined: dict[str, bool] = {}
    if all(["readOnlyHint" in one for one in hints]):
        combined["readOnlyHint"] = True
    else:
        combined["destructiveHint"] = any(
            [one.get("destructiveHint", "readOnlyHint" not in one) for one in hints]
        )
    if hints and all(["idempotentHint" in one for one in hints]):
        combined["idempotentHint"] = True
    return {**combined, "openWorldHint": any([one.get("openWorldHint", True) for one in hints])}


def tool_title(tool: Tool) -> str:
    """Return the tool's display name: "Users create", or the one that its author chose."""
    if "title" in tool.guidance.mcp:
        return tool.guidance.mcp["title"]
    title = " ".join(tool.path or (tool.app,)).replace("-", " ").replace("_", " ")
    return title[:1].upper() + title[1:]


def arguments_schema(tool: Tool, *, is_portable: bool = True) -> JsonObject:
    """Return the JSON Schema of a tool's arguments, with the framework options that apply to it."""
    schema = input_schema(tool)
    if is_portable:
        schema = portable_arguments(tool, schema)
    own = schema.get("properties", {})
    options = {
        name: option_schema
        for kind in _option_kinds(tool)
        for name, option_schema in TOOL_SCHEMA_OPTIONS.get(kind, {}).items()
        if name not in own
    }
    return {**schema, "properties": {**own, **options}} if options else schema


def _option_kinds(tool: Tool) -> list[str]:
    """Return the keys of `TOOL_SCHEMA_OPTIONS` that apply to a tool."""
    kinds = ["all"]
    if can_be_confirmed(tool):
        kinds.append("confirmable")
    if tool.behavior.destructive:
        kinds.append("destructive")
        if getattr(tool.fn, "tooli_supports_dry_run", False):
            kinds.append("plannable")
    if tool.limits.paginated or tool.limits.max_tokens:
        kinds.append("paginated")
    return kinds


def can_be_confirmed(tool: Tool) -> bool:
    """True if a call can be confirmed with `yes`.

    It is False if the call needs no confirmation, or if only a human's approval can run it.
    """
    guard = tool.guard
    needs_grant = guard.needs_human or guard.danger == "forbidden"
    needs_grant = needs_grant or (guard.danger == "critical" and guard.policy == "strict")
    return tool.behavior.destructive and not needs_grant


def with_settings(tool: Tool, state: AppState) -> Tool:
    """Return a tool with the settings of the served app that decide who can confirm a call."""
    tool = state.restrict(tool)
    guard = tool.guard
    if tool.behavior.destructive and not guard.human_in_the_loop:
        policy = state.effective_policy(tool)
        is_human_required = bool(state.security_settings.get("human_in_the_loop"))
        if policy != guard.policy or is_human_required:
            guard = guard.replace(policy=policy, human_in_the_loop=is_human_required)
            return tool.replace(guard=guard)
    return tool


def _tool_meta(tool: Tool) -> JsonObject:
    """Return the facts about a tool that MCP has no fields for. They are sent in `_meta`."""
    guard, guidance, limits = tool.guard, tool.guidance, tool.limits
    fields: JsonObject = {
        "when_to_use": guidance.when_to_use,
        "task_group": guidance.task_group,
        "tags": list(guidance.tags),
        "handoffs": [handoff.to_dict() for handoff in guidance.handoffs],
        "delegation_hint": guidance.delegation_hint,
        "cost_hint": limits.cost_hint,
        "deprecated": tool.deprecated,
        "sunset": guidance.sunset,
        "versions": list(guidance.versions),
        "capabilities": list(guard.capabilities),
        "scopes": list(guard.scopes or ()),
        "requires_approval": guard.approval,
        "human_in_the_loop": guard.human_in_the_loop,
        "danger_level": guard.danger,
    }
    return {name: value for name, value in fields.items() if value}


# ------------------------------------------------------------------ results


class ResultForm(Record):
    """Where the structured content of a tool has its result and its `meta`.

    | is_wrapped | meta_key | without `meta`    | with `meta`                    |
    |------------|----------|-------------------|--------------------------------|
    | True       | "meta"   | `{"result": …}`   | `{"result": …, "meta": {…}}`   |
    | False      | "meta"   | the fields        | the fields and `"meta": {…}`   |
    | False      | None     | the result        | `{"result": …, "meta": {…}}`   |
    """

    is_wrapped: bool
    meta_key: str | None = "meta"


def result_form(tool: Tool, stateless: bool) -> ResultForm | None:
    """Return the form of a tool's structured content, or None if it declares no result."""
    schema = _served_schema(tool)
    return None if schema is None else _form_of_schema(_inline_root_ref(schema), stateless)


def _form_of_schema(schema: JsonObject, stateless: bool) -> ResultForm:
    if schema.get("type") != "object":
        kind = schema.get("type")
        may_be_null = kind is None or kind == "null" or (is_list(kind) and "null" in kind)
        is_wrapped = not stateless or may_be_null
        return ResultForm(is_wrapped, "meta" if is_wrapped else None)
    values = schema.get("additionalProperties", True)
    is_mapping = "properties" not in schema and values is not True
    if is_mapping or not _NOT_EXTENSIBLE.isdisjoint(schema):
        return ResultForm(False, None)
    return ResultForm(False, "tooli_meta" if "meta" in schema.get("properties", ()) else "meta")


_NOT_EXTENSIBLE = frozenset(
    (
        *("allOf", "anyOf", "oneOf", "not", "if", "$ref", "const", "enum"),
        *("propertyNames", "patternProperties", "maxProperties", "dependentSchemas"),
    )
)
"""Keywords of an object's schema that may not allow one more property."""


def result_schema(tool: Tool, stateless: bool) -> JsonObject | None:
    """Return the schema of `structuredContent`, or None if the tool declares no result."""
    schema = _served_schema(tool)
    if schema is None:
        return None
    schema = _inline_root_ref(schema)
    form = _form_of_schema(schema, stateless)
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    if not form.is_wrapped and form.meta_key is not None and not _is_open(schema):
        inner = {**inner, "properties": {**inner["properties"], form.meta_key: _ANY_OBJECT}}
    if tool.behavior.destructive:
        inner = _allow_plan(inner)
    if form.is_wrapped:
        fields = {"result": inner, "meta": _ANY_OBJECT}
        inner = {"type": "object", "properties": fields, "required": ["result"]}
    elif form.meta_key is None:
        root = {"type": "object"} if inner.get("type") == "object" else {}
        with_meta = {"type": "object", "required": ["result", "meta"]}
        inner = {**root, "anyOf": [inner, with_meta]}
    return {**inner, "$defs": schema["$defs"]} if "$defs" in schema else inner


_ANY_OBJECT: JsonObject = {"type": "object"}


def _is_open(schema: JsonObject) -> bool:
    """True if an object may have any other field, so that a field `meta` may have any type."""
    return "properties" not in schema or schema.get("additionalProperties") is True


def _served_schema(tool: Tool) -> JsonObject | None:
    """Return the schema of a result, or of the text of an option such as `--version`."""
    schema = output_schema(tool)
    if schema is None or tool.route is None or not tool.route.may_end_early:
        return schema
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"anyOf": [inner, {"type": "string"}], **definitions}


def _allow_plan(schema: JsonObject) -> JsonObject:
    """Return a schema that accepts the result or the plan of a dry run.

    For an object that allows additional properties and has no property of a plan, it is enough to
    remove `required`.
    """
    is_object = schema.get("type") == "object"
    is_open = schema.get("additionalProperties", True) is True
    if is_object and is_open and _PLAN_FIELDS.isdisjoint(schema.get("properties", ())):
        return {key: value for key, value in schema.items() if key != "required"}
    root = {"type": "object"} if is_object else {}
    return {**root, "anyOf": [schema, {"type": "object", "required": ["tool", "basis"]}]}


_PLAN_FIELDS = frozenset(("tool", "arguments", "effects", "basis", "actions", "state", "token"))
"""Fields that a plan may have."""


def _inline_root_ref(schema: JsonObject) -> JsonObject:
    """Inline a `$ref` at the root, where clients do not resolve it."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    root = schema["$defs"][reference.rpartition("/")[2]]
    return {**root, **{key: value for key, value in schema.items() if key != "$ref"}}
