"""The agent manifest: everything about an app and each of its commands, as one JSON document."""

from __future__ import annotations

from tooli.describe import tool_facts
from tooli.describe.schema_formats import ENVIRONMENT_VARIABLES, describe_tool
from tooli.errors import ERROR_CODES, EXIT_CODES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

KNOWN_CALLERS = (
    *("claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode"),
    *("openai-agents", "langchain", "google-adk", "claude-agent-sdk", "pydantic-ai"),
)
"""Names that agents go by; any other will do as well."""


def build_manifest(app_info: AppInfo) -> dict[str, Any]:
    """All that there is to know, for a program that plans with it."""
    head: dict[str, Any] = {"name": app_info.name}
    if app_info.version:
        head["version"] = app_info.version
    if app_info.description:
        head["description"] = app_info.description
    return {
        **head,
        "invocation": {
            "argv": [app_info.name, "COMMAND", "--json"],
            "answer": {"ok": True, "result": "as output_schema says", "meta": {}},
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
        "environment": list(ENVIRONMENT_VARIABLES),
    }


_EXAMPLE_ERROR = {
    "code": "E3010",
    "category": "state",
    "message": "what is wrong",
    "field": "the parameter",
    "suggestion": {"fix": "what to do", "argv": ["a", "line", "that", "works"]},
    "is_retryable": False,
}
_HTTP_ONLY_FAMILIES = ("E14", "E24")
"""Families of codes that only an HTTP server answers with."""


def _describe_command(app_info: AppInfo, tool: Tool) -> dict[str, Any]:
    """One command; what the app says for all of them is not said again."""
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


def build_discovery(app_info: AppInfo) -> dict[str, Any]:
    """The names of all commands and what they do: the first step; `--schema` is the second."""
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
