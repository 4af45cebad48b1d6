"""Build the agent manifest (`--agent-manifest`) and the list of commands (`--discover`)."""

from __future__ import annotations

from tooli.describe import tool_facts
from tooli.describe.schema_formats import describe_tool, environment_variables
from tooli.errors import ERROR_CODES, EXIT_CODES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

KNOWN_CALLERS = (
    *("claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode"),
    *("openai-agents", "langchain", "google-adk", "claude-agent-sdk", "pydantic-ai"),
)
"""Caller names of well-known agents. Any other name is allowed."""


def build_manifest(app_info: AppInfo) -> JsonObject:
    """Return the manifest: a complete description of an app for agents and planners."""
    head: JsonObject = {"name": app_info.name}
    if app_info.version:
        head["version"] = app_info.version
    if app_info.description:
        head["description"] = app_info.description
    return {
        **head,
        "invocation": {
            "argv": [app_info.name, "COMMAND", "--json"],
            "answer": {"ok": True, "result": "matches output_schema", "meta": {}},
            "failure": {"ok": False, "error": _EXAMPLE_ERROR, "meta": {}},
            "arguments_as_json": "--input JSON|@file|-",
            "stream": "--jsonl",
            "plan_only": "--dry-run",
            "confirm": "--yes",
            "contract": "--schema [json|mcp|openai|anthropic]",
            "mcp": [app_info.name, "mcp", "serve"],
        },
        "commands": {
            tool.key or tool.name: _describe_command(app_info, tool) for tool in app_info.tools
        },
        "errors": {
            code: text
            for code, (text, _, _) in ERROR_CODES.items()
            if code[:3] not in _HTTP_ONLY_FAMILIES
        },
        "exit_codes": {str(code): text for code, text in EXIT_CODES.items()},
        "caller_convention": {
            "env_var": "TOOLI_CALLER",
            "version_var": "TOOLI_CALLER_VERSION",
            "session_var": "TOOLI_SESSION_ID",
            "well_known_values": list(KNOWN_CALLERS),
            "detect_command": [app_info.name, "detect-context", "--json"],
        },
        "environment": list(environment_variables()),
    }


_EXAMPLE_ERROR = {
    "code": "E3010",
    "category": "state",
    "message": "what is wrong",
    "field": "the parameter",
    "suggestion": {"fix": "what to do", "argv": ["a", "valid", "command", "line"]},
    "is_retryable": False,
}
_HTTP_ONLY_FAMILIES = ("E14", "E24")
"""Prefixes of error codes that only an HTTP server returns."""


def _describe_command(app_info: AppInfo, tool: Tool) -> JsonObject:
    """Describe one command, without the fields that the manifest has for all commands."""
    described = describe_tool(tool, "json")
    for name in ("name", "tool"):
        described.pop(name, None)
    if described.get("version") == app_info.version:
        described.pop("version", None)
    call = {
        "argv": [app_info.name, *tool.cli_path],
        "example": tool_facts.shortest_call(app_info.name, tool),
    }
    after = tool_facts.previous_commands(app_info, tool)
    return {**call, **described, **({"commonly_after": after} if after else {})}


def build_discovery(app_info: AppInfo) -> JsonObject:
    """Return the names and summaries of all commands. `--schema` has the details."""
    head = {"name": app_info.name, "version": app_info.version, "description": app_info.description}
    app_fields = {key: value for key, value in head.items() if value}
    return {
        **app_fields,
        "commands": [
            {"name": tool.key or tool.name, "description": tool.doc.summary}
            for tool in app_info.tools
        ],
        "schema": [app_info.name, "COMMAND", "--schema"],
    }
