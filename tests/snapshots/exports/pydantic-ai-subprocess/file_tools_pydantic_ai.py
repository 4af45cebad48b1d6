"""file-tools 1.0.0 as a toolset for Pydantic AI.

    from pydantic_ai import Agent
    from file_tools_pydantic_ai import toolset

    agent = Agent(model, toolsets=[toolset])

A tool answers with an envelope, as JSON: {"ok": true, "result": ...}, or {"ok": false, "error":
{"code": ..., "message": ..., "suggestion": ...}}. No error ends the agent's run.

Made by tooli. To make it again:

    file-tools export --target pydantic-ai --mode subprocess
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolFailed

COMMAND = ["file-tools"]
CALLER = "pydantic-ai"
TIMEOUT = 120.0  # seconds
FIXES = {
    "E1003": "Say true or false.",
    "E4040": "Ask the user to see whether the program is installed, and runs.",
    "E4050": "It may be half done: look first. Then ask for less at once.",
}
RETRIES = 3  # how often in a row a model may mend a call


async def call(
    words: list[str], arguments: dict[str, Any], timeout: float, flags: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Run a command and return its envelope, whatever happens.

    The arguments go in as JSON on stdin: no value of theirs can pass for an option.
    Those named in `flags` are meant for the program itself, and become options.
    """
    options = {flag: arguments[flag] for flag in flags if flag in arguments}
    arguments = {key: value for key, value in arguments.items() if key not in options}
    if not all(isinstance(value, bool) for value in options.values()):
        return failure("E1003", f"{', '.join(options)}: neither true nor false.")
    said = [f"--{flag.replace('_', '-')}" for flag, value in options.items() if value]
    try:
        process = await asyncio.create_subprocess_exec(
            *[*COMMAND, *words, *said, "--json", "--input", "-"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "TOOLI_CALLER": CALLER},
            start_new_session=True,  # so that its own children can be stopped with it
        )
    except OSError as error:
        return failure("E4040", f"{COMMAND[0]} cannot be started: {error.strerror}.")
    try:
        payload = json.dumps(arguments).encode()
        out, err = await asyncio.wait_for(process.communicate(payload), timeout)
    except asyncio.TimeoutError:
        return failure("E4050", f"No answer within {timeout:g} seconds.")
    finally:
        if process.returncode is None:
            stop(process)
            await asyncio.wait([asyncio.create_task(process.wait())], timeout=5)
    return envelope_of(process.returncode, out, err)


def envelope_of(code: int | None, out: bytes, err: bytes) -> dict[str, Any]:
    """What the program printed, if that is an envelope; otherwise one that says so."""
    try:
        envelope = json.loads(out)
        if isinstance(envelope["ok"], bool):
            return envelope
    except (ValueError, TypeError, KeyError):
        pass
    said = (err or out).decode(errors="replace").strip()[-1000:]
    return failure("E4040", f"{COMMAND[0]} ended with exit code {code}: {said}")


def stop(process: asyncio.subprocess.Process) -> None:
    """End a program and what it has started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass


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
    words: list[str],
    *,
    description: str,
    schema: dict[str, Any],
    timeout: float = TIMEOUT,
    flags: tuple[str, ...] = (),
) -> Tool:
    """One tool: it returns the envelope, or raises it as what the model should make of it."""

    async def invoke(context: RunContext[Any], /, **arguments: Any) -> dict[str, Any]:
        envelope = await call(words, arguments, timeout, flags)
        if envelope["ok"]:
            return envelope
        error = envelope["error"]
        text = json.dumps(envelope, ensure_ascii=False)
        asks = error.get("suggestion", {}).get("action") == "ask_human"
        if error["is_retryable"] and not asks and not context.last_attempt:
            raise ModelRetry(text)
        raise ToolFailed(text)  # one retry too many would end the run

    return Tool.from_schema(invoke, name, description, schema, takes_ctx=True)


find_files = make_tool(
    "find_files",
    ["find-files"],
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
)

search = make_tool(
    "search",
    ["search"],
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
)

checksum = make_tool(
    "checksum",
    ["checksum"],
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
)

rename = make_tool(
    "rename",
    ["rename"],
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
)

delete = make_tool(
    "delete",
    ["delete"],
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
    flags=("yes", "dry_run"),
)

TOOLS: list[Tool] = [find_files, search, checksum, rename, delete]
toolset = FunctionToolset(TOOLS, id="file_tools", max_retries=RETRIES)
