"""The contract of a tool in the forms that programs ask for: json, mcp, openai, anthropic."""

from __future__ import annotations

from tooli.core.tool import DEFAULT_GUARD
from tooli.schema.json_schema import input_schema, output_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tooli.core.tool import Param, Tool

ENVIRONMENT_VARIABLES = (
    *("TOOLI_OUTPUT", "TOOLI_CALLER", "TOOLI_CALLER_VERSION", "TOOLI_SESSION_ID"),
    *("TOOLI_STATE_DIR", "TOOLI_FRAMEWORK_HELP", "NO_COLOR", "TOOLI_TOKEN_FILE"),
    *("TOOLI_CONFIG", "TOOLI_COLOR"),
    *("TOOLI_RESPONSE_FORMAT", "TOOLI_QUIET", "TOOLI_VERBOSE", "TOOLI_NO_INPUT"),
    *("TOOLI_TIMEOUT", "TOOLI_MAX_ITEMS", "TOOLI_MAX_BYTES", "TOOLI_MAX_TOKENS"),
    *("TOOLI_SECURITY_POLICY", "TOOLI_HUMAN_IN_THE_LOOP", "TOOLI_ISOLATION"),
    *("TOOLI_ALLOW_PATHS", "TOOLI_DENY_PATHS", "TOOLI_WORK_DIR"),
    *("TOOLI_TOKEN_KEY", "TOOLI_TOKEN_ISSUER", "TOOLI_TOKEN_AUDIENCE", "TOOLI_TOKENS"),
    *("TOOLI_RATE_LIMIT", "TOOLI_AUDIT_LOG", "TOOLI_STORE"),
)
"""Variables that an app reads; a test holds the list to the settings there are."""


def describe_tool(tool: Tool, schema_format: str) -> dict[str, Any]:
    """One tool."""
    return _FORMATTERS[schema_format](tool)


def describe_app(
    name: str, version: str | None, tools: Iterable[Tool], schema_format: str
) -> dict[str, Any] | list[Any]:
    """Every tool of an app; OpenAI and Anthropic take a bare list."""
    described = [describe_tool(tool, schema_format) for tool in tools if not tool.hidden]
    if schema_format in ("openai", "anthropic"):
        return described
    if schema_format == "mcp":
        return {"tools": described}
    head = {"app": name, "version": version} if version else {"app": name}
    from tooli.config.setting_definitions import SETTINGS

    settings = {name: key.type for name, key in SETTINGS.items()}
    return {
        **head,
        "commands": described,
        "environment": list(ENVIRONMENT_VARIABLES),
        "configuration": settings,
    }


def description_text(tool: Tool) -> str:
    """What the tool does, in words."""
    from tooli.schema.docstring import sanitize_doc_text

    doc = tool.doc
    return sanitize_doc_text(f"{doc.summary}\n\n{doc.description}".strip())


def safe_name(tool: Tool) -> str:
    """The tool's name in the letters that every protocol takes."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in tool.key).lower()


def tools_by_safe_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Tools by the names that protocols take; of two with the same, the second gets a number."""
    found: dict[str, Tool] = {}
    for tool in tools:
        if not tool.hidden:
            name = base = safe_name(tool)[:60]
            count = 1
            while name in found:
                count += 1
                name = f"{base}_{count}"
            found[name] = tool
    return found


def _as_json(tool: Tool) -> dict[str, Any]:
    described: dict[str, Any] = {"name": tool.key, "tool": tool.id}
    if tool.version:
        described["version"] = tool.version
    described["description"] = description_text(tool)
    described["input_schema"] = input_schema(tool)
    output = output_schema(tool)
    if output is not None:
        described["output_schema"] = output
    behaviour = tool.behavior.labels()
    if behaviour:
        described["annotations"] = list(behaviour)
    described.update(_guidance_fields(tool))
    variables = [name for param in tool.public_params for name in _envvar_names(param)]
    if variables:
        described["environment"] = variables
    return described


def _envvar_names(param: Param) -> list[str]:
    envvar = param.settings.get("envvar") or ()
    return [envvar] if isinstance(envvar, str) else list(envvar)


def _guidance_fields(tool: Tool) -> dict[str, Any]:
    guidance, guard, limits = tool.guidance, tool.guard, tool.limits
    fields: dict[str, Any] = {
        "when_to_use": guidance.when_to_use,
        "examples": list(guidance.examples),
        "error_codes": dict(guidance.error_codes),
        "handoffs": [handoff.to_dict() for handoff in guidance.handoffs],
        "delegation_hint": guidance.delegation_hint,
        "task_group": guidance.task_group,
        "timeout": limits.timeout,
        "max_tokens": limits.max_tokens,
        "cost_hint": limits.cost_hint,
        "paginated": limits.paginated,
        "deprecated": tool.deprecated,
    }
    if guard is not DEFAULT_GUARD:
        fields |= {
            "auth": list(guard.scopes) if guard.scopes is not None else None,
            "capabilities": list(guard.capabilities),
            "requires_approval": guard.approval,
            "human_in_the_loop": guard.human_in_the_loop,
            "danger_level": guard.danger,
            "agent_auto_confirm": guard.auto_confirm,
        }
    explicit_auth: dict[str, Any] = {"auth": []} if guard.scopes == () else {}  # said on purpose
    return {name: value for name, value in fields.items() if value} | explicit_auth


def _as_mcp(tool: Tool) -> dict[str, Any]:
    from tooli.describe.mcp_tools import describe_mcp_tool

    return describe_mcp_tool(safe_name(tool), tool)


def _as_openai(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": safe_name(tool),
            "description": description_text(tool),
            "parameters": input_schema(tool),
        },
    }


def _as_anthropic(tool: Tool) -> dict[str, Any]:
    return {
        "name": safe_name(tool),
        "description": description_text(tool),
        "input_schema": input_schema(tool),
    }


_FORMATTERS: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "json": _as_json,
    "mcp": _as_mcp,
    "openai": _as_openai,
    "anthropic": _as_anthropic,
}
