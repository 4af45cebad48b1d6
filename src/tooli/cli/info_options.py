"""Options that describe the app instead of running a command: help, schema, version.

The modules that report errors are imported when there is an error: agents read help often, and
these modules take as long to load as the help itself.
"""

from __future__ import annotations

import os
import sys

from tooli.cli.argv import load_option_problems
from tooli.cli.process import is_terminal, write_stderr
from tooli.cli.stdout_errors import StdoutErrorScope
from tooli.core._hot_tables import CHOICES, DOCUMENT_OPTIONS
from tooli.core.call import Ok
from tooli.core.output_modes import find_mode
from tooli.errors import shell_quote

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from types import ModuleType

    from tooli.cli import CommandOutput, Invocation
    from tooli.core.call import Problem
    from tooli.core.tool import Tool


def run_info_option(output: CommandOutput) -> int:
    """Write the description that an option asks for; return the exit code.

    `--schema` wins over the help options, and those over `--version`.
    """
    invocation = output.invocation
    line, options = invocation.line, invocation.line.options
    has_unknown_option = line.tool is None and bool(line.problems)  # one before the command
    if line.unknown_command is not None or has_unknown_option:
        return _report_unresolved(output)
    if "schema" in options:
        problem = _unknown_format(invocation)
        if problem is not None:
            return _load_usage_errors().write_option_error(output, problem.message, "schema")
        return _write_json(output, build_schema(invocation, options["schema"]))
    if not DOCUMENT_OPTIONS.isdisjoint(options):
        return _write_document(output, options)
    if "help_agent" in options:
        return _write_text(output, help_for_agents(invocation))
    if "help" in options:
        return _write_help(output)
    if invocation.state.version is None:
        if invocation.is_interactive_mode:  # then it is an unknown option, as in Typer
            argv = line.typer_argv[: line.command_prefix_length or None]
            return _run_on_typer_path(output, [*argv, "--version"])
        message = f"{invocation.state.name} declares no version."
        return _load_usage_errors().write_option_error(output, message)
    return _write_version(output)


def _load_usage_errors() -> ModuleType:
    from tooli.cli import usage_errors

    return usage_errors


def _unknown_format(invocation: Invocation) -> Problem | None:
    """Return the problem of a word after `--schema` that is not a format, and no argument."""
    argv, formats = list(invocation.argv), CHOICES["schema"]
    following = argv[argv.index("--schema") + 1 :][:1] if "--schema" in argv else []
    if not following or following[0][:1] == "-" or following[0] in formats:
        return None
    return load_option_problems().unknown_format_problem(invocation.line, following[0], formats)


def report_missing_command(output: CommandOutput) -> int:
    """Write the error for a line without a command; return the exit code."""
    usage_errors = _load_usage_errors()
    return usage_errors.write_error(output, usage_errors.no_command_error(output))


def _report_unresolved(output: CommandOutput) -> int:
    """Write the error for an unknown command. Typer writes it for people and for its own groups."""
    invocation, line = output.invocation, output.invocation.line
    uses_typer = invocation.is_interactive_mode or line.needs_lookup
    if uses_typer and not line.has_invalid_option:
        return _run_on_typer_path(output)
    return report_missing_command(output)


# ------------------------------------------------------------------ help


def _write_help(output: CommandOutput) -> int:
    invocation = output.invocation
    tree = invocation.app.tree()
    code = _write_help_text(output)
    if tree.find_problems is not None:
        for _, problem in tree.find_problems(tree):  # of the providers that the help has asked
            write_stderr(f"Warning: {problem}")
    return code


def _write_help_text(output: CommandOutput) -> int:
    invocation = output.invocation
    if _uses_typer_help(invocation):
        return _write_typer_help(output)
    profile = invocation.caller_profile
    is_compact = profile is not None and profile.help == "compact"
    if is_compact and not find_mode(invocation.mode).is_plain_text:
        return _write_text(output, help_for_agents(invocation))
    return _write_text(output, plain_help(invocation))


def _uses_typer_help(invocation: Invocation) -> bool:
    """True if a person gets the help and did not ask for plain text.

    The default mode of a built-in command, such as text for `mcp serve`, does not show who reads
    its help. The caller and the terminal are checked instead.
    """
    tool = invocation.line.tool
    if tool is not None and hasattr(tool.fn, "tooli_mode") and not invocation.has_explicit_mode:
        return invocation.may_have_human and is_terminal(sys.stdout)
    requested = find_mode(invocation.line.options.get("output") or invocation.mode)
    return invocation.is_interactive_mode and not requested.is_plain_text


def _write_typer_help(output: CommandOutput) -> int:
    """Write Typer's help, with its panels."""
    line = output.invocation.line
    argv = line.typer_argv
    if line.tool is not None:
        argv = argv[: line.command_prefix_length]
    with StdoutErrorScope(output):
        return _run_on_typer_path(output, [*argv, "--help"])


def _run_on_typer_path(output: CommandOutput, argv: Sequence[str] | None = None) -> int:
    from tooli.cli.typer_runner import run_on_typer_path

    return run_on_typer_path(output, argv)


def plain_help(invocation: Invocation) -> str:
    """Return the help without boxes, as wide as the terminal."""
    from tooli.cli.help import format_app_help, format_tool_help

    line = invocation.line
    prog = " ".join(map(shell_quote, invocation.caller.prog or (invocation.state.name,)))
    if line.tool is None:
        return format_app_help(line.group, prog, line.path, _terminal_width())
    tree = invocation.app.tree()
    if tree.only_command is None:
        return format_tool_help(
            invocation.state.root, line.tool, prog, line.path, _terminal_width()
        )
    from tooli.core.options import builtin_rows

    builtins = [*builtin_rows(prog, tree.names)] if tree.has_builtins else []
    return format_tool_help(invocation.state.root, line.tool, prog, (), _terminal_width(), builtins)


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
    """Return the compact help for agents, with the settings object of the app."""
    text, settings = _help_of_tools(invocation), invocation.state.app_settings
    if settings is None:
        return text
    from tooli.describe.agent_help import render_settings_line

    return f"{text.rstrip()}\n{render_settings_line(settings)}\n"


def _help_of_tools(invocation: Invocation) -> str:
    from tooli.describe.agent_help import render_app_help, render_tool_help

    tool = invocation.line.tool
    if tool is not None:
        if invocation.line.typer_reason is not None:  # its callbacks may have options
            tool = invocation.app.find(tool.key) or tool
        tool = _resolve_handoffs(invocation, tool)
        if tool.guidance.examples:
            from tooli.describe.calls import drop_broken_examples

            tool, problems = drop_broken_examples(invocation.app, tool)
            for problem in problems:
                write_stderr(f"Warning: {problem}")
        return render_tool_help(tool)
    return render_app_help(invocation.state, _list_tools(invocation))


def _write_text(output: CommandOutput, text: str) -> int:
    """Write plain text, or an envelope if a mode with envelopes was requested explicitly."""
    invocation = output.invocation
    if (
        invocation.is_machine_mode
        and invocation.has_explicit_mode
        and find_mode(invocation.mode).reports_errors
    ):
        output.take_stdout()
        return output.write_outcome(Ok(text), _load_usage_errors().make_output_call(output))
    return _write_stdout(output, text)


def _write_stdout(output: CommandOutput, text: str) -> int:
    with StdoutErrorScope(output):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    return 0


def _write_version(output: CommandOutput) -> int:
    invocation, state = output.invocation, output.invocation.state
    if invocation.is_machine_mode and invocation.has_explicit_mode:
        output.take_stdout()
        value = {"name": state.name, "version": state.version}
        return output.write_outcome(Ok(value), _load_usage_errors().make_output_call(output))
    return _write_stdout(output, f"{state.name} {state.version}")


# ------------------------------------------------------------------ schema and documents


def build_schema(invocation: Invocation, form: str) -> object:
    """Return the schema of the command, or of every command of the app."""
    from tooli.describe.schema_formats import describe_app, describe_tool

    tool, state = invocation.line.tool, invocation.state
    if tool is not None and invocation.line.typer_reason is not None:
        tool = invocation.app.find(tool.key) or tool  # with the options of its callbacks
    if tool is not None:
        return describe_tool(_resolve_handoffs(invocation, tool), form)
    variables = state.app_settings.variables if state.app_settings is not None else ()
    return describe_app(state.name, state.version, _list_tools(invocation), form, variables)


def _resolve_handoffs(invocation: Invocation, tool: Tool) -> Tool:
    """Return a tool without handoffs to unknown commands; a warning on stderr names the first."""
    if not tool.guidance.handoffs:
        return tool  # avoids the catalog, which reads every command of the app
    catalog = invocation.app.catalog
    if tool.key in catalog.problems:
        write_stderr(f"Warning: {catalog.problems[tool.key]}")
    return catalog[tool.key]


def _list_tools(invocation: Invocation) -> Iterator[Tool]:
    """Return the tools of a group. Warnings on stderr name the invalid definitions."""
    catalog, path = invocation.app.catalog, invocation.line.path
    for key, problem in catalog.problems.items():
        if not path or key.startswith(f"{'.'.join(path)}."):
            prefix = "" if key in catalog else f"{key} is left out: "
            write_stderr(f"Warning: {prefix}{problem}")
    return (tool for tool in catalog if tool.path[: len(path)] == path)


def _write_json(output: CommandOutput, document: object) -> int:
    """Write a JSON document without an envelope."""
    if output.invocation.is_interactive_mode and is_terminal(sys.stdout):
        import json

        return _write_stdout(output, json.dumps(document, indent=2, ensure_ascii=False))
    from tooli.text.json_encoder import encode

    data = encode(document, [])
    output.take_stdout_for_data()
    output.emit(data)
    return 0


def _write_document(output: CommandOutput, options: Container[str]) -> int:
    """Write a document about the whole app: bootstrap text, manifest or list of commands."""
    from tooli.describe import agent_documents
    from tooli.describe.sections import collect_app_info

    description = collect_app_info(output.invocation.app)
    for problem in description.problems:
        write_stderr(f"Warning: {problem}")
    if "agent_bootstrap" in options:
        from tooli.detect import detect_from_environment

        caller_id = detect_from_environment().caller_id
        text = agent_documents.render_bootstrap(description, caller_id)
        return _write_text(output, text.rstrip("\n"))
    if "agent_manifest" in options:
        return _write_json(output, agent_documents.build_manifest(description))
    return _write_json(output, agent_documents.build_discovery(description))
