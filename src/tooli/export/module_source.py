"""A generated module put together: what it is, imports, constants, functions, tools."""

from __future__ import annotations

from tooli.export.python_source import call_source, docstring, value_literal, wrap_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.export.export_spec import ExportedTool, ExportSpec
    from tooli.export.runner_source import RunnerSource

ENVELOPE_NOTE = """\
A tool answers with an envelope, as JSON: {"ok": true, "result": ...}, or {"ok": false, "error": \
{"code": ..., "message": ..., "suggestion": ...}}. No error ends the agent's run."""


def render_module(
    head: str,
    standard: Iterable[str],
    others: Iterable[str],
    app_import: str | None,
    constants: str,
    functions: Iterable[str],
    values: Iterable[str],
) -> str:
    """The text of a module. `standard`: names of the standard library's modules, or from-lines."""
    plain = sorted([f"import {name}" for name in standard if " " not in name])
    named = sorted([name for name in standard if " " in name])
    blocks = ["from __future__ import annotations", "\n".join([*plain, *named])]
    blocks += ["\n".join(sorted(others))] if others else []
    blocks += [app_import] if app_import else []
    first = "\n\n".join([docstring(head), *[block for block in (*blocks, constants) if block]])
    return "\n\n\n".join([*filter(None, [first, *functions, "\n\n".join(values)])]) + "\n"


def module_docstring(spec: ExportSpec, subject: str, usage: str, note: str = "") -> str:
    """What a generated module says about itself."""
    parts = [f"{spec.title} {subject}.", usage.strip("\n")]
    parts += [wrap_text(note)] if note else []
    return "\n\n".join(
        [*parts, f"Made by tooli. To make it again:\n\n    {spec.regenerate_command}"]
    )


def standard_imports(runner_code: RunnerSource, *extra: str) -> list[str]:
    """The standard library's modules that a module with this runner needs."""
    return [*dict.fromkeys([*runner_code.imports, *extra]), "from typing import Any"]


def tool_assignment(
    spec: ExportSpec, entry: ExportedTool, maker: str = "make_tool", **extra: Any
) -> str:
    """The lines that make one tool."""
    keywords: dict[str, Any] = {**extra}
    if entry.timeout is not None:
        keywords["timeout"] = entry.timeout
    if entry.flags:
        keywords["flags"] = entry.flags
    prints_only = spec.is_in_process and entry.tool.returns_printed_text
    value = call_source(
        maker,
        entry.name,
        call_target(spec, entry),
        columns_before=len(entry.variable) + 3,
        description=entry.description,
        schema=entry.schema,
        **keywords,
    )
    return f"{_PRINTS_COMMENT if prints_only else ''}{entry.variable} = {value}"


_PRINTS_COMMENT = (
    "# It prints instead of returning: here that goes to stdout, and not to the model.\n"
)


def call_target(spec: ExportSpec, entry: ExportedTool) -> str | list[str]:
    """What `call` is told to run: a command's words, or a tool's name in its app."""
    return entry.tool.key if spec.is_in_process else list(entry.tool.cli_path)


def call_target_parameter(spec: ExportSpec) -> tuple[str, str]:
    """The name and the type of that parameter."""
    return ("target", "str") if spec.is_in_process else ("words", "list[str]")


def tools_list(entries: Iterable[ExportedTool], kind: str) -> str:
    """The list of a module's tools."""
    from tooli.export.python_source import SourceText

    names = [SourceText(entry.variable) for entry in entries]
    return f"TOOLS: list[{kind}] = {value_literal(names, columns_before=len(kind) + 17)}"


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """A template with its blanks filled in."""
    from string import Template

    return Template(template.strip("\n")).safe_substitute(values)


def make_tool_values(spec: ExportSpec, entries: Iterable[ExportedTool]) -> dict[str, str]:
    """What the templates of `make_tool` leave open."""
    name, kind = call_target_parameter(spec)
    flags = any([entry.flags for entry in entries])
    return {
        "target": name,
        "kind": kind,
        "flags": "\n    flags: tuple[str, ...] = ()," if flags else "",
        "given": ", flags" if flags else "",
    }
