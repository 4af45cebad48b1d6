"""Render compact help for agents (`--help-agent`): one line per command, or one command in detail.

For speed, this module reads `Shape`s and annotations and loads no JSON Schema code. Its start-up
time is benchmarked.
"""

from __future__ import annotations

from tooli.core.command_words import command_words
from tooli.core.secret_fields import documented_default
from tooli.core.tool import (
    MISSING,
    Choice,
    Handle,
    ListOf,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    unwrap_optional,
)
from tooli.schema.tool_reader import return_annotation

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.core import AppState
    from tooli.core.tool import Param, Shape, Tool


def render_app_help(state: AppState, tools: Iterable[Tool]) -> str:
    """Return one line for each command: usage, result type, summary."""
    head = " ".join(filter(None, (state.name, state.version)))
    summary = _first_line(state.description)
    lines = [_single_line(f"{head}: {summary}" if summary else head)]
    lines += [render_tool_line(tool) for tool in tools if not tool.hidden]
    command = "" if state.has_one_command else " COMMAND"
    lines.append(
        f"call: {state.name}{command} … --json -> "
        '{"ok":true,"result":…} | {"ok":false,"error":{code,message,suggestion}}'
    )
    lines.append("any command: --schema --help-agent --dry-run --yes --limit --filter --select")
    return "\n".join(lines)


def render_tool_line(tool: Tool) -> str:
    """Return one line for a command."""
    parts = [render_usage(tool)]
    result = _result_type_name(return_annotation(tool))
    if result:
        parts.append(f"-> {result}")
    summary = tool.doc.summary
    behavior = ", ".join(tool.effects.labels())
    if summary or behavior:
        parts.append("|")
    if summary:
        parts.append(summary)
    if behavior:
        parts.append(f"({behavior})")
    return " ".join(map(_single_line, parts))


def _single_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    if text.isprintable():
        return text
    from tooli.core.docstring import sanitize_doc_text

    return text[: len(text) - len(text.lstrip(" "))] + " ".join(sanitize_doc_text(text).split())


def render_usage(tool: Tool) -> str:
    """Return a command with its parameters. Optional parameters are in brackets."""
    return " ".join(
        [
            *tool.cli_path,
            *[_format_parameter(p) for p in tool.command_params if p.required or not p.hidden],
        ]
    )


def render_tool_help(tool: Tool) -> str:
    """Return the help of one command: parameters, examples, errors, restrictions."""
    lines = [render_tool_line(tool)]
    docs = tool.doc.params
    for param in tool.command_params:
        text = param.help or docs.get(param.name)
        if text:
            lines.append(f"  {_display_name(param)}: {text}")
    if tool.guidance.when_to_use:
        lines.append(f"use when: {tool.guidance.when_to_use}")
    lines += _example_lines(tool)
    for code, meaning in tool.guidance.error_codes.items():
        lines.append(f"error {code}: {meaning}")
    lines += _constraint_lines(tool)
    for handoff in tool.guidance.handoffs:
        command = handoff.command.replace(".", " ")
        lines.append(f"next: {command}" + (f"  # {handoff.when}" if handoff.when else ""))
    return "\n".join([_single_line(line) for line in lines])


def _example_lines(tool: Tool) -> list[str]:
    """Return one line for each of the author's examples."""
    if not tool.guidance.examples:
        return []
    from tooli.errors import shell_quote

    lines: list[str] = []
    for example in tool.guidance.examples:
        words = command_words(tool, [str(word) for word in example.get("args", ())])
        command = " ".join(map(shell_quote, [tool.app, *words]))
        description = example.get("description")
        lines.append(f"example: {command}" + (f"  # {description}" if description else ""))
    return lines


def _constraint_lines(tool: Tool) -> list[str]:
    """Return one line for each restriction and limit."""
    guard, limits = tool.guard, tool.limits
    facts = {
        "needs": "a human's approval" if guard.needs_human else "",
        "scopes": ", ".join(guard.scopes or ()),
        "capabilities": ", ".join(guard.capabilities),
        "danger": guard.danger,
        "cost": limits.cost_hint,
        "timeout": f"{limits.timeout:g} s" if limits.timeout else "",
        "delegate": tool.guidance.delegation_hint,
        "deprecated": "yes" if tool.deprecated is True else tool.deprecated,
    }
    return [f"{name}: {value}" for name, value in facts.items() if value]


def _format_parameter(param: Param) -> str:
    kind = type_name(param.shape)
    bounds = format_bounds(param)
    if param.kind == "argument":
        text = f"{param.name}:{kind}{bounds}"
        return f"<{text}>" if param.required else f"[{text}]"
    if param.is_flag:
        negation = "".join([f"/{flag}" for flag in param.negations[:1] if param.default is True])
        return f"[{_display_name(param)}{negation}]"
    default = format_default(param)
    value = f"{default}:{kind}" if default else f"<{kind}>"
    text = f"{_display_name(param)}={value}{bounds}"
    return text if param.required else f"[{text}]"


def format_bounds(param: Param) -> str:
    """Return the bounds of a number, such as `(1..100)`; "" if it has none."""
    low, high = param.option_kwargs.get("min"), param.option_kwargs.get("max")
    if low is None and high is None:
        return ""
    return f"({'' if low is None else low}..{'' if high is None else high})"


def _display_name(param: Param) -> str:
    return max(param.flags, key=len) if param.flags else param.name


def type_name(shape: Shape) -> str:
    """Return a short name of a parameter's type, such as `int`, `path` or `a|b`."""
    shape = unwrap_optional(shape)
    match shape:
        case Scalar(kind):
            return kind.__name__
        case PathShape():
            return "path"
        case Choice():
            return "|".join(shape.labels)
        case ListOf(item):
            return f"{type_name(item)}..."
        case TupleOf(items):
            return ",".join(type_name(item) for item in items)
        case Structured():
            return "json"
        case Handle():
            return shape.metavar.lower()
        case _:
            return str(getattr(getattr(shape, "annotation", None), "__name__", "value")).lower()


def format_default(param: Param) -> str:
    """Return the default as text; "" if there is none or it is empty."""
    default = documented_default(param)
    if default in (MISSING, None, "", [], (), {}):
        return ""
    return str(getattr(default, "value", default))


def _result_type_name(annotation: object) -> str:
    if annotation in (MISSING, None):
        return ""
    fields = getattr(annotation, "__annotations__", None)
    if isinstance(annotation, type) and annotation.__module__ != "builtins" and fields:
        return "{" + ",".join(fields) + "}"
    arguments = getattr(annotation, "__args__", ())
    name = getattr(getattr(annotation, "__origin__", annotation), "__name__", str(annotation))
    if name in ("list", "Iterator", "Generator", "AsyncIterator", "AsyncGenerator") and arguments:
        return f"[{_result_type_name(arguments[0])}]"
    return name


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
