"""The agent manifest: everything about an app and each of its commands, as one JSON document."""

from __future__ import annotations

from tooli.errors import CODES, EXIT_CODES
from tooli.views import story
from tooli.views.schema import ENVIRONMENT, describe_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Tool
    from tooli.views.portrait import Portrait

CALLERS = (
    *("claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode"),
    *("openai-agents", "langchain", "google-adk", "claude-agent-sdk", "pydantic-ai"),
)
"""Names that agents go by; any other will do as well."""


def manifest(portrait: Portrait) -> dict[str, Any]:
    """All that there is to know, for a program that plans with it."""
    head: dict[str, Any] = {"name": portrait.name}
    if portrait.version:
        head["version"] = portrait.version
    if portrait.description:
        head["description"] = portrait.description
    return {
        **head,
        "invocation": {
            "argv": [portrait.name, "COMMAND", "--json"],
            "answer": {"ok": True, "result": "as output_schema says", "meta": {}},
            "failure": {"ok": False, "error": _ERROR, "meta": {}},
            "arguments_as_json": "--input JSON|@file|-",
            "stream": "--jsonl",
            "plan_only": "--dry-run",
            "confirm": "--yes",
            "contract": "--schema [json|mcp|openai|anthropic]",
            "mcp": [portrait.name, "mcp", "serve"],
        },
        "commands": {tool.key or tool.name: _command(portrait, tool) for tool in portrait.tools},
        "errors": {code: text for code, (text, _, _) in CODES.items() if code[:3] not in _SERVED},
        "exit_codes": {str(code): text for code, text in EXIT_CODES.items()},
        "caller_convention": {
            "env_var": "TOOLI_CALLER",
            "version_var": "TOOLI_CALLER_VERSION",
            "session_var": "TOOLI_SESSION_ID",
            "well_known_values": list(CALLERS),
        },
        "environment": list(ENVIRONMENT),
    }


_ERROR = {
    "code": "E3010",
    "category": "state",
    "message": "what is wrong",
    "field": "the parameter",
    "suggestion": {"fix": "what to do", "argv": ["a", "line", "that", "works"]},
    "is_retryable": False,
}
_SERVED = ("E14", "E24")
"""Families of codes that only an HTTP server answers with."""


def _command(portrait: Portrait, tool: Tool) -> dict[str, Any]:
    """One command; what the app says for all of them is not said again."""
    described = describe_tool(tool, "json")
    for name in ("name", "tool"):
        described.pop(name, None)
    if described.get("version") == portrait.version:
        described.pop("version", None)
    call = {"argv": [portrait.name, *tool.words], "example": story.shortest(portrait.name, tool)}
    after = story.leaders(portrait, tool)
    return {**call, **described, **({"commonly_after": after} if after else {})}


def discovery(portrait: Portrait) -> dict[str, Any]:
    """The names of all commands and what they do: the first step; `--schema` is the second."""
    head = {"name": portrait.name, "version": portrait.version, "description": portrait.description}
    shown = {key: value for key, value in head.items() if value}
    return {
        **shown,
        "commands": [
            {"name": tool.key or tool.name, "description": tool.doc.summary}
            for tool in portrait.tools
        ],
        "schema": [portrait.name, "COMMAND", "--schema"],
    }
