"""Help as plain text, for a pipe."""

from __future__ import annotations

from tooli.core.options import builtin_rows, help_rows
from tooli.describe.agent_help import format_bounds, format_default, type_name

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tooli.core.tool import Param, Tool
    from tooli.providers import CommandGroup


def format_app_help(group: CommandGroup, prog: str, path: tuple[str, ...], width: int) -> str:
    """Return the help of an app or a group: its description and its commands."""
    lines = [f"Usage: {' '.join((prog, *path))} COMMAND [ARGS]...", ""]
    description = group.description()
    if description:
        lines += [*wrap(description, width), ""]
    rows = [
        (name, registration.short_help((*path, name)))
        for name, registration in group.commands.items()
        if not registration.kwargs.get("hidden")
    ]
    rows += [
        (name, inner.description().partition("\n")[0])
        for name, inner in group.groups.items()
        if not inner.hidden
    ]
    if rows:
        lines += ["Commands:", *_format_rows(rows, width), ""]
    if not path and group.has_builtins:
        lines += ["Built-in commands:", *_format_rows(builtin_rows(prog, group.names), width), ""]
    lines += ["Framework options:", *_format_rows(help_rows(), width)]
    return "\n".join(lines)


def format_tool_help(
    tool: Tool,
    prog: str,
    command_path: tuple[str, ...],
    width: int,
    builtins: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the help of a command: usage, description and parameters.

    `builtins` are the rows of the built-in commands, for the only command of an app.
    """
    doc = tool.doc
    arguments = [p for p in tool.public_params if p.kind == "argument" and not p.hidden]
    options = [p for p in tool.public_params if p.kind == "option" and not p.hidden]
    usage = [prog, *command_path, *(["[OPTIONS]"] if options else [])]
    usage += [_format_argument(p) for p in arguments]
    lines = [f"Usage: {' '.join(usage)}", ""]
    if doc.summary:
        lines += [*wrap(doc.summary, width), ""]
    if doc.description:
        lines += [*wrap(doc.description, width), ""]
    if arguments:
        rows = [
            (_metavar(p) or p.name.upper(), _format_description(p, doc.params)) for p in arguments
        ]
        lines += ["Arguments:", *_format_rows(rows, width), ""]
    if options:
        rows = [(_format_flags(p), _format_description(p, doc.params)) for p in options]
        lines += ["Options:", *_format_rows(rows, width), ""]
    if builtins:
        lines += ["Built-in commands:", *_format_rows(builtins, width), ""]
    lines += ["Framework options:", *_format_rows(help_rows(), width)]
    return "\n".join(lines)


def _metavar(param: Param) -> str:
    """Return the `metavar=` of a parameter, or ""."""
    return str(param.option_kwargs.get("metavar") or "")


def _format_argument(param: Param) -> str:
    """Return an argument as the usage line shows it."""
    dots = "..." if param.is_multiple else ""
    name = _metavar(param) or f"{param.name.upper()}{dots}"
    if param.required or name.startswith("["):
        return name
    return f"[{name}]"


def _format_flags(param: Param) -> str:
    flags = ", ".join((*param.flags, *param.negations))
    return flags if param.is_flag else f"{flags} {_metavar(param) or type_name(param.shape)}"


def _format_description(param: Param, docs: Mapping[str, str]) -> str:
    text = param.help or docs.get(param.name) or ""
    notes: list[str] = []
    if param.kind == "argument":
        notes.append(type_name(param.shape))
    bounds = format_bounds(param)
    if bounds:
        notes.append(bounds.strip("()"))
    if param.required:
        notes.append("required")
    default = format_default(param)
    if default and not (param.is_flag and param.default is False):
        notes.append(f"default: {default}")
    return f"{text} [{'; '.join(notes)}]".strip() if notes else text


def _format_rows(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return names and descriptions side by side, or below each other in a narrow terminal."""
    rows = list(rows)
    name_width = min(max((len(name) for name, _ in rows), default=0), max(8, width // 2 - 2))
    lines: list[str] = []
    for name, text in rows:
        wrapped = wrap(text, max(16, width - name_width - 4)) or [""]
        if len(name) > name_width:
            lines.append(f"  {name}")
            lines += [f"  {'':{name_width}}  {part}".rstrip() for part in wrapped]
            continue
        lines.append(f"  {name:{name_width}}  {wrapped[0]}".rstrip())
        lines += [f"  {'':{name_width}}  {part}" for part in wrapped[1:]]
    return lines


def wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, wrapped between words. Indented lines are not wrapped."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        if not paragraph.strip() or paragraph[:1] == " " or len(paragraph) <= width:
            lines.append(paragraph.rstrip())
            continue
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines
