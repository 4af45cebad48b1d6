"""Help as plain text, for a pipe."""

from __future__ import annotations

from tooli.core.docstring import clean_help, docstring_of, read_docstring
from tooli.core.options import builtin_rows, help_rows
from tooli.core.tool import is_structured, unwrap_optional
from tooli.describe.agent_help import format_bounds, format_default, type_name
from tooli.describe.model_fields import list_fields

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tooli.config.app_settings import AppSettings
    from tooli.core import AppState
    from tooli.core.tool import Param, Tool
    from tooli.providers import CommandGroup


def format_app_help(group: CommandGroup, prog: str, path: tuple[str, ...], width: int) -> str:
    """Return the help of an app or a group: its description, its options and its commands."""
    params = [p for p in group.params() if not p.hidden]
    usage = [prog, *path, *_usage_parameters(params), "COMMAND [ARGS]..."]
    lines = [f"Usage: {' '.join(usage)}", ""]
    description = clean_help(group.description)
    if description:
        lines += [*wrap(description, width), ""]
    lines += _format_parameters(params, getattr(group.callback, "__doc__", None), width)
    rows = [
        (name, read_docstring(registration.short_help((*path, name))).summary)
        for name, registration in group.commands.items()
        if not registration.kwargs.get("hidden")
    ]
    rows += [
        (name, read_docstring(inner.short_help or inner.description).summary)
        for name, inner in group.groups.items()
        if not inner.hidden
    ]
    if rows:
        lines += ["Commands:", *_format_rows(rows, width), ""]
    builtins = [*builtin_rows(prog, group.names)] if not path and group.has_builtins else []
    lines += _format_end(group.state.root, builtins, group.epilog, width)
    return "\n".join(lines).rstrip("\n")


def format_tool_help(
    state: AppState,
    tool: Tool,
    prog: str,
    command_path: tuple[str, ...],
    width: int,
    builtins: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the help of a command: usage, docstring and parameters.

    `builtins` are the rows of the built-in commands, for the only command of an app.
    """
    doc = tool.doc
    params = [p for p in tool.public_params if not p.hidden]
    lines = [f"Usage: {' '.join((prog, *command_path, *_usage_parameters(params)))}", ""]
    for text in (doc.summary, doc.description):
        if text:
            lines += [*wrap(text, width), ""]
    lines += _format_parameters(params, docstring_of(tool.fn), width)
    if doc.returns:
        lines += ["Returns:", *_indent(wrap(doc.returns, width - 2)), ""]
    if doc.raises:
        lines += ["Raises:", *_format_rows(doc.raises.items(), width), ""]
    if doc.examples:
        lines += ["Examples:", *_indent(doc.examples.split("\n")), ""]
    lines += _format_end(state, builtins, tool.epilog, width)
    return "\n".join(lines).rstrip("\n")


def _usage_parameters(params: Sequence[Param]) -> list[str]:
    """Return the parameters as the usage line shows them."""
    has_options = any(p.kind == "option" for p in params)
    arguments = [_format_argument(p) for p in params if p.kind == "argument"]
    return [*(["[OPTIONS]"] if has_options else []), *arguments]


def _format_parameters(params: Sequence[Param], docstring: str | None, width: int) -> list[str]:
    """Return the lines about the arguments and those about the options."""
    docs = read_docstring(docstring).params
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in params:
        is_argument = param.kind == "argument"
        name = (_metavar(param) or param.name.upper()) if is_argument else _format_flags(param)
        section = rows["Arguments" if is_argument else "Options"]
        section.append((name, _format_description(param, docs)))
        rows["Options"] += field_rows(param)
    lines: list[str] = []
    for title, found in rows.items():
        if found:
            lines += [f"{title}:", *_format_rows(found, width), ""]
    return lines


def field_rows(param: Param) -> list[tuple[str, str]]:
    """Return the flags of the fields of a model, such as `--user.name str`."""
    if not is_structured(unwrap_optional(param.shape)):
        return []
    return [(f"--{field.path} {field.type_name}", field.note) for field in list_fields(param)]


def _format_end(
    state: AppState, builtins: Sequence[tuple[str, str]], epilog: str | None, width: int
) -> list[str]:
    """Return the built-in commands, the framework options and the last text of the help."""
    lines: list[str] = []
    if builtins and state.shows_framework_help:
        lines += ["Built-in commands:", *_format_rows(builtins, width), ""]
    settings = settings_rows(state.app_settings)
    if settings:
        lines += ["Settings:", *_format_rows(settings, width), ""]
    if state.shows_framework_help:
        lines += ["Framework options:", *_format_rows(help_rows(), width), ""]
    if epilog:
        lines += wrap(clean_help(epilog), width)
    return lines


def settings_rows(settings: AppSettings | None) -> list[tuple[str, str]]:
    """Return the flags of the app's settings object, with their descriptions and variables."""
    if settings is None:
        return []
    texts = settings.help_texts
    return [
        (_format_flags(param), f"{_format_description(param, texts)} [env: {variable}]".strip())
        for param in settings.shown_params
        for variable in (settings.variable(param),)
    ]


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]


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
