"""file-tools 1.0.0 as tools for the Claude Agent SDK.

    from claude_agent_sdk import ClaudeAgentOptions
    from file_tools_claude import READ_ONLY, server

    options = ClaudeAgentOptions(mcp_servers={"file_tools": server}, allowed_tools=READ_ONLY)

A tool answers with an envelope, as JSON: {"ok": true, "result": ...}, or {"ok": false, "error":
{"code": ..., "message": ..., "suggestion": ...}}. No error ends the agent's run.

Made by tooli. To make it again:

    file-tools export --target claude --mode import
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from claude_agent_sdk import SdkMcpTool, ToolAnnotations, create_sdk_mcp_server, tool

from examples.file_tools.app import app

CALLER = "claude-agent-sdk"
TIMEOUT = 120.0  # seconds
FIXES = {
    "E1003": "Say true or false.",
    "E4050": "It may be half done: look first. Then ask for less at once.",
}


async def call(
    target: str, arguments: dict[str, Any], timeout: float, flags: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Call a tool of the app and return its envelope, whatever happens.

    The arguments named in `flags` are meant for the framework: they become options.
    """
    options = {flag: arguments[flag] for flag in flags if flag in arguments}
    arguments = {key: value for key, value in arguments.items() if key not in options}
    if not all(isinstance(value, bool) for value in options.values()):
        return failure("E1003", f"{', '.join(options)}: neither true nor false.")
    try:
        answer = app.options(caller=CALLER, **options).acall(target, **arguments)
        return (await asyncio.wait_for(answer, timeout)).to_dict()
    except asyncio.TimeoutError:
        return failure("E4050", f"No answer within {timeout:g} seconds.")


def failure(code: str, message: str) -> dict[str, Any]:
    """The envelope of a call that the app itself could not answer."""
    action = "ask_human" if code == "E4040" else "retry_with_modified_input"
    error = {
        "code": code,
        "category": "input" if code.startswith("E1") else "runtime",
        "message": message,
        "suggestion": {"action": action, "fix": FIXES[code]},
        "is_retryable": action != "ask_human",
    }
    return {"ok": False, "error": error, "meta": {"tool": "file-tools"}}


def make_tool(
    name: str,
    target: str,
    *,
    description: str,
    schema: dict[str, Any],
    hints: ToolAnnotations,
    timeout: float = TIMEOUT,
    flags: tuple[str, ...] = (),
) -> SdkMcpTool[Any]:
    """One tool: its content is the envelope, as text."""

    @tool(name, description, schema, hints)
    async def invoke(arguments: dict[str, Any]) -> dict[str, Any]:
        envelope = await call(target, arguments, timeout, flags)
        text = json.dumps(envelope, ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}], "is_error": not envelope["ok"]}

    return invoke


find_files = make_tool(
    "find_files",
    "find-files",
    description="Find files by name, in a folder and the folders below it.",
    schema={
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "description": "Glob for the file's name, such as '*.py'.",
            },
            "root": {
                "type": "string",
                "format": "path",
                "description": "Folder to start in.",
                "default": ".",
            },
            "max_depth": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "description": "Levels of folders to look at; 1 is the root alone.",
                "default": 10,
            },
            "include_hidden": {
                "type": "boolean",
                "description": "Look at names that start with a dot, too.",
                "default": False,
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    hints=ToolAnnotations(readOnlyHint=True, idempotentHint=True, openWorldHint=False),
)

search = make_tool(
    "search",
    "search",
    description="Find lines that contain a text; each is given out as soon as it is found.",
    schema={
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to look for."},
            "pattern": {
                "type": "string",
                "description": "Glob for the names of the files to read.",
                "default": "*",
            },
            "root": {
                "type": "string",
                "format": "path",
                "description": "Folder to start in.",
                "default": ".",
            },
            "ignore_case": {
                "type": "boolean",
                "description": "Take upper and lower case for the same.",
                "default": False,
            },
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    hints=ToolAnnotations(readOnlyHint=True, idempotentHint=True, openWorldHint=False),
)

checksum = make_tool(
    "checksum",
    "checksum",
    description="Compute the digests of files, all at the same time.",
    schema={
        "type": "object",
        "properties": {
            "files": {
                "type": "array",
                "items": {"type": "string", "format": "path"},
                "description": "The files to read.",
            },
            "algorithm": {
                "type": "string",
                "enum": ["sha256", "sha1", "md5", "blake2b"],
                "description": "Which digest.",
                "default": "sha256",
            },
        },
        "required": ["files"],
        "additionalProperties": False,
    },
    hints=ToolAnnotations(readOnlyHint=True, idempotentHint=True, openWorldHint=False),
)

rename = make_tool(
    "rename",
    "rename",
    description="Rename the files of one folder by a rule; nothing is ever overwritten.",
    schema={
        "type": "object",
        "properties": {
            "rule": {
                "description": (
                    "The rule: JSON, @file, or part by part, as in --rule.match '*.txt'."
                ),
                "properties": {
                    "match": {
                        "description": "Glob for the names to change, such as 'IMG_*.jpg'.",
                        "type": "string",
                    },
                    "prefix": {
                        "default": "",
                        "description": "Written in front of the name.",
                        "type": "string",
                    },
                    "ending": {
                        "anyOf": [{"type": "string"}, {"type": "null"}],
                        "default": None,
                        "description": "The new ending, such as '.md'.",
                    },
                    "replace": {
                        "anyOf": [
                            {
                                "description": (
                                    "One text in the name, and what to write in its place."
                                ),
                                "properties": {
                                    "old": {"minLength": 1, "type": "string"},
                                    "new": {"default": "", "type": "string"},
                                },
                                "required": ["old"],
                                "type": "object",
                            },
                            {"type": "null"},
                        ],
                        "default": None,
                        "description": "A text to exchange.",
                    },
                },
                "required": ["match"],
                "type": "object",
            },
            "root": {
                "type": "string",
                "format": "path",
                "description": "The folder.",
                "default": ".",
            },
        },
        "required": ["rule"],
        "additionalProperties": False,
    },
    hints=ToolAnnotations(destructiveHint=False, openWorldHint=False),
)

delete = make_tool(
    "delete",
    "delete",
    description="Delete files, and say what was deleted.",
    schema={
        "type": "object",
        "properties": {
            "files": {
                "type": "array",
                "items": {"type": "string", "format": "path"},
                "description": "The files to delete. If one of them is missing, all of them stay.",
            },
            "yes": {
                "type": "boolean",
                "description": "Confirm: this may destroy data. Without it the call is refused.",
                "default": False,
            },
            "dry_run": {
                "type": "boolean",
                "description": "Only tell what would be done.",
                "default": False,
            },
        },
        "required": ["files"],
        "additionalProperties": False,
    },
    hints=ToolAnnotations(destructiveHint=True, openWorldHint=False),
    flags=("yes", "dry_run"),
)

TOOLS: list[SdkMcpTool[Any]] = [find_files, search, checksum, rename, delete]
READ_ONLY = ["mcp__file_tools__find_files", "mcp__file_tools__search", "mcp__file_tools__checksum"]
server = create_sdk_mcp_server("file_tools", "1.0.0", TOOLS)
