"""Questions about the app itself: help, schema, version, and lines that name no command."""

from __future__ import annotations

import os
import sys

from tooli.core._hot_tables import DOCUMENT_OPTIONS
from tooli.core.call import Ok
from tooli.core.output_modes import find_mode
from tooli.errors import InputError, Suggestion
from tooli.pipeline.input_errors import missing_command_error, unknown_command_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.cli.argv import CommandLine
    from tooli.cli.main import Invocation
    from tooli.core.app_state import AppState
    from tooli.core.call import Call
    from tooli.core.tool import Tool
    from tooli.errors import ToolError


def run_info_option(invocation: Invocation) -> int:
    """Answer a question; the exit code. `--schema` wins over help, help over version."""
    options = invocation.line.options
    if invocation.line.unknown_word is not None or _has_unknown_option(invocation):
        return _report_unresolved(invocation)
    if "schema" in options:
        return _write_json(invocation, build_schema(invocation, options["schema"]))
    if not DOCUMENT_OPTIONS.isdisjoint(options):
        return _write_document(invocation, options)
    if "help_agent" in options:
        return _write_text(invocation, help_for_agents(invocation))
    if "help" in options:
        return _write_help(invocation)
    if invocation.state.version is None:
        invocation.line.problems.clear()
        error = InputError(f"{invocation.state.name} declares no version.", code="E1007")
        return write_error(invocation, error)
    return _write_version(invocation)


def _has_unknown_option(invocation: Invocation) -> bool:
    """Whether the question stands behind an option that nobody knows, before any command."""
    return invocation.line.tool is None and bool(invocation.line.problems)


def _report_unresolved(invocation: Invocation) -> int:
    from tooli.cli.typer_runner import run_invocation

    if invocation.is_interactive_mode and not any(
        p.code == "E1007" for p in invocation.line.problems
    ):
        return run_invocation(invocation)
    error, call = no_command_error(invocation)
    return write_error(invocation, error, call)


def write_error(invocation: Invocation, error: ToolError, call: Call | None = None) -> int:
    """Answer with an error; the exit code."""
    from tooli.core.call import Failed

    invocation.guard_stdout()
    return invocation.write_outcome(Failed(error), call or call_without_tool(invocation))


def report_missing_command(invocation: Invocation) -> int:
    """Answer a line that leads to no command; the exit code."""
    return write_error(invocation, *no_command_error(invocation))


# ------------------------------------------------------------------ help


def _write_help(invocation: Invocation) -> int:
    requested = find_mode(invocation.line.options.get("output") or invocation.mode)
    if invocation.is_interactive_mode and not requested.is_plain_text:
        return _write_typer_help(invocation)
    profile = invocation.caller_profile
    is_compact = profile is not None and profile.help == "compact"
    if is_compact and not find_mode(invocation.mode).is_plain_text:
        return _write_text(invocation, help_for_agents(invocation))
    return _write_text(invocation, plain_help(invocation))


def _write_typer_help(invocation: Invocation) -> int:
    """A person's help is Typer's, with its panels."""
    from tooli.cli.text_output import StdoutErrorScope
    from tooli.cli.typer_runner import run_invocation

    line = invocation.line
    line.typer_argv = (
        [*line.typer_argv[: line.command_prefix_length], "--help"]
        if line.tool is not None
        else line.typer_argv
    )
    if line.tool is None:
        line.typer_argv = [*line.typer_argv, "--help"]
    with StdoutErrorScope(invocation):
        return run_invocation(invocation)


def plain_help(invocation: Invocation) -> str:
    """Help without boxes, as wide as the terminal."""
    from tooli.cli.help import format_app_help, format_tool_help

    line = invocation.line
    prog = " ".join(invocation.caller().prog or (invocation.state.name,))
    if line.tool is None:
        return format_app_help(invocation.state, line.group, prog, line.path, _terminal_width())
    command_path = () if invocation.app.tree().only_command is not None else line.path
    return format_tool_help(line.tool, prog, command_path, _terminal_width())


def _terminal_width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        columns = 0
    if columns <= 0:
        try:
            columns = os.get_terminal_size().columns
        except (OSError, ValueError):
            columns = 80
    return max(30, columns or 80)


def help_for_agents(invocation: Invocation) -> str:
    """The contract in as few tokens as it takes."""
    from tooli.describe.agent_help import render_app_help, render_tool_help

    line = invocation.line
    if line.tool is not None:
        return render_tool_help(line.tool)
    return render_app_help(invocation.state, _iter_tools(line, invocation.state))


def _write_text(invocation: Invocation, text: str) -> int:
    """Text as it is; inside an envelope where the caller asked for JSON in so many words."""
    if (
        invocation.is_machine_mode
        and invocation.has_explicit_mode
        and find_mode(invocation.mode).reports_errors
    ):
        invocation.guard_stdout()
        return invocation.write_outcome(Ok(text), call_without_tool(invocation))
    return _write_stdout(invocation, text)


def _write_stdout(invocation: Invocation, text: str) -> int:
    from tooli.cli.text_output import StdoutErrorScope

    with StdoutErrorScope(invocation):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    return 0


def _write_version(invocation: Invocation) -> int:
    state = invocation.state
    if invocation.is_machine_mode and invocation.has_explicit_mode:
        invocation.guard_stdout()
        value = {"name": state.name, "version": state.version}
        return invocation.write_outcome(Ok(value), call_without_tool(invocation))
    return _write_stdout(invocation, f"{state.name} {state.version}")


# ------------------------------------------------------------------ schema


def build_schema(invocation: Invocation, form: str) -> Any:
    """The schema of the command, or of every command of the app."""
    from tooli.describe.schema_formats import describe_app, describe_tool

    line = invocation.line
    if line.tool is not None:
        return describe_tool(line.tool, form)
    return describe_app(
        invocation.state.name, invocation.state.version, _iter_tools(line, invocation.state), form
    )


def _iter_tools(line: CommandLine, state: AppState) -> Iterator[Tool]:
    """The tools below a place; one that cannot be loaded is named on stderr and left out."""
    from tooli.cli.process import write_stderr
    from tooli.errors import DefinitionError

    for path, registration in line.group.walk(line.path):
        try:
            yield registration.tool(path, state)
        except DefinitionError as error:
            write_stderr(f"Warning: {'.'.join(path)} is left out: {error}")


def _write_json(invocation: Invocation, document: Any) -> int:
    """A document that is JSON itself, without an envelope."""
    from tooli.cli.process import StdoutGuard, is_terminal
    from tooli.text.json_encoder import encode

    data = encode(document, [])
    if invocation.is_interactive_mode and is_terminal(sys.stdout):
        import json

        return _write_stdout(invocation, json.dumps(document, indent=2, ensure_ascii=False))
    invocation.stdout_guard = invocation.stdout_guard or StdoutGuard()
    invocation.emit(data)
    return 0


# ------------------------------------------------------------------ documents


def _write_document(invocation: Invocation, options: Mapping[str, Any]) -> int:
    """What is told about the whole app: the manifest, the list of commands, or a page to read."""
    from tooli.describe.app_info import collect_app_info

    description = collect_app_info(invocation.app)
    if "agent_bootstrap" in options:
        from tooli.describe.bootstrap import render_bootstrap
        from tooli.detect import detect_execution_context

        text = render_bootstrap(description, detect_execution_context().caller_id)
        return _write_text(invocation, text.rstrip("\n"))
    from tooli.describe.manifest import build_discovery, build_manifest

    return _write_json(
        invocation,
        build_manifest(description)
        if "agent_manifest" in options
        else build_discovery(description),
    )


# ------------------------------------------------------------------ no command


def no_command_error(invocation: Invocation) -> tuple[ToolError, Call]:
    """The error of a line that names no command, an unknown one, or only a wrong flag."""
    line = invocation.line
    call = call_without_tool(invocation)
    if line.problems:
        first = line.problems[0]
        argv = None
        if isinstance(first.suggested_value, str):
            argv = _corrected_argv(invocation, first.message, first.suggested_value)
        advice = Suggestion(
            "retry_with_modified_input",
            f"Use {first.suggested_value}."
            if first.suggested_value
            else "See --help-agent for what there is.",
            example=" ".join(argv) if argv else None,
            argv=argv,
        )
        details = {"errors": [{"code": p.code, "message": p.message} for p in line.problems]}
        return (
            InputError(
                first.message,
                code=first.code,
                field=first.field,
                suggestion=advice,
                details=details,
            ),
            call,
        )
    prog = invocation.caller().prog or (invocation.state.name,)
    if line.unknown_word is not None:
        return unknown_command_error(line.group, line.unknown_word, (*prog, *line.path)), call
    return missing_command_error(line.group), call


def _corrected_argv(invocation: Invocation, message: str, meant: str) -> list[str] | None:
    """The line with the wrong flag replaced by the one that was meant."""
    for i, word in enumerate(invocation.argv):
        name, equals, value = word.partition("=")
        if name and f" {name}" in message:
            argv = [*invocation.argv]
            argv[i] = f"{meant}={value}" if equals else meant
            return [*(invocation.caller().prog or (invocation.state.name,)), *argv]
    return None


def call_without_tool(invocation: Invocation) -> Call:
    """A call of the app itself, for the envelope of an answer that no tool gives."""
    from tooli.core.call import Call
    from tooli.core.tool import Tool

    line, state = invocation.line, invocation.state
    tool = line.tool or Tool(
        state.name, (), state.name, (), _noop, (), frozenset(), version=state.version
    )
    return Call(tool, {}, invocation.caller(), invocation.warnings, policy=state.policy)


def _noop() -> None:
    """What is run when nothing is."""
