"""Describe tools for programs (`--schema`), in the formats json, mcp, openai and anthropic."""

from __future__ import annotations

from tooli.core import CONTRACT_VERSION
from tooli.describe.mcp_tools import describe_mcp_tool, description_text, safe_name
from tooli.describe.portable_schemas import portable_arguments
from tooli.schema.json_schema import input_schema, output_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool


def describe_tool(tool: Tool, schema_format: str) -> JsonObject:
    """Return the description of one tool in a format."""
    return _FORMATTERS[schema_format](tool)


def describe_app(
    name: str,
    version: str | None,
    tools: Iterable[Tool],
    schema_format: str,
    variables: Sequence[str] = (),
) -> JsonObject | list[JsonObject]:
    """Return the descriptions of all tools of an app.

    The formats openai and anthropic are lists, the others are objects. `variables` are those of
    the settings object of the app.
    """
    described = [describe_tool(tool, schema_format) for tool in tools if not tool.hidden]
    if schema_format in ("openai", "anthropic"):
        return described
    if schema_format == "mcp":
        return {"tools": described}
    head = {"app": name, "version": version} if version else {"app": name}
    head["contract"] = CONTRACT_VERSION
    from tooli.config.setting_definitions import SETTINGS, documented_variables

    settings = {name: setting.type for name, setting in SETTINGS.items()}
    return {
        **head,
        "commands": described,
        "environment": [*variables, *documented_variables()],
        "configuration": settings,
    }


def _as_json(tool: Tool) -> JsonObject:
    described: JsonObject = {"name": tool.key, "tool": tool.id}
    if tool.version:
        described["version"] = tool.version
    described["description"] = description_text(tool)
    described["input_schema"] = input_schema(tool)
    output = output_schema(tool)
    if output is not None:
        described["output_schema"] = output
    if tool.is_streaming:
        described["streaming"] = True
    effects = tool.effects.labels()
    if effects:
        described["annotations"] = list(effects)
    described.update(_guidance_fields(tool))
    variables = [name for param in tool.public_params for name in envvar_names(param)]
    if variables:
        described["environment"] = variables
    return described


def envvar_names(param: Param) -> list[str]:
    """Return the environment variables of a parameter."""
    envvar = param.option_kwargs.get("envvar") or ()
    return [envvar] if isinstance(envvar, str) else list(envvar)


def _guidance_fields(tool: Tool) -> JsonObject:
    guidance, guard, limits = tool.guidance, tool.guard, tool.limits
    fields: JsonObject = {
        "when_to_use": guidance.when_to_use,
        "examples": list(guidance.examples),
        "error_codes": dict(guidance.error_codes),
        "handoffs": [handoff.to_dict() for handoff in guidance.handoffs],
        "delegation_hint": guidance.delegation_hint,
        "task_group": guidance.task_group,
        "tags": list(guidance.tags),
        "timeout": limits.timeout,
        "max_tokens": limits.max_tokens,
        "cost_hint": limits.cost_hint,
        "paginated": limits.paginated,
        "deprecated": tool.deprecated,
        "deprecated_version": guidance.deprecated_version,
        "sunset": guidance.sunset,
        "versions": list(guidance.versions),
        "auth": list(guard.scopes or ()),
        "capabilities": list(guard.capabilities),
        "requires_approval": guard.approval,
        "human_in_the_loop": guard.human_in_the_loop,
        "danger_level": guard.danger,
        "agent_auto_confirm": guard.auto_confirm,
    }
    # An empty list is kept: `auth=[]` means that any token is accepted.
    explicit_auth: JsonObject = {"auth": []} if guard.scopes == () else {}
    return {name: value for name, value in fields.items() if value} | explicit_auth


def _as_mcp(tool: Tool) -> JsonObject:
    return describe_mcp_tool(safe_name(tool), tool)


def _as_openai(tool: Tool) -> JsonObject:
    return {
        "type": "function",
        "function": {
            "name": safe_name(tool),
            "description": description_text(tool),
            "parameters": portable_arguments(tool, input_schema(tool)),
        },
    }


def _as_anthropic(tool: Tool) -> JsonObject:
    return {
        "name": safe_name(tool),
        "description": description_text(tool),
        "input_schema": portable_arguments(tool, input_schema(tool)),
    }


_FORMATTERS: dict[str, Callable[[Tool], JsonObject]] = {
    "json": _as_json,
    "mcp": _as_mcp,
    "openai": _as_openai,
    "anthropic": _as_anthropic,
}
