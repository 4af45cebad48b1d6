"""A tool in as few words as it takes: what an agent reads before it calls."""

from __future__ import annotations

from tooli.contract.reading import returns_of
from tooli.contract.tool import (
    MISSING,
    Choice,
    Handle,
    ListOf,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    plain,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.contract.tool import Param, Shape, Tool


def app_for_agents(house: Any, tools: Iterable[Tool]) -> str:
    """Every command of an app, a line each: signature, what it returns, what it does."""
    head = " ".join(filter(None, (house.name, house.version)))
    about = _first_line(house.description)
    lines = [_line(f"{head}: {about}" if about else head)]
    lines += [tool_for_agents(tool) for tool in tools if not tool.hidden]
    lines.append(
        f"call: {house.name} COMMAND … --json -> "
        '{"ok":true,"result":…} | {"ok":false,"error":{code,message,suggestion}}'
    )
    lines.append("any command: --schema --help-agent --dry-run --yes --limit --filter --select")
    return "\n".join(lines)


def tool_for_agents(tool: Tool) -> str:
    """One command in one line."""
    words = [call_for_agents(tool)]
    result = _result_word(returns_of(tool))
    if result:
        words.append(f"-> {result}")
    summary = tool.doc.summary
    behaviour = ", ".join(tool.behavior.words())
    if summary or behaviour:
        words.append("|")
    if summary:
        words.append(summary)
    if behaviour:
        words.append(f"({behaviour})")
    return " ".join(map(_line, words))


def _line(text: str) -> str:
    """A text on one line, without what a terminal obeys and no reader sees."""
    if text.isprintable():
        return text
    from tooli.contract.docstring import readable

    return text[: len(text) - len(text.lstrip(" "))] + " ".join(readable(text).split())


def call_for_agents(tool: Tool) -> str:
    """A command and what it takes, as it is typed: in brackets what may be left out."""
    return " ".join([*tool.words, *[_brief(p) for p in tool.public if p.required or not p.hidden]])


def details_for_agents(tool: Tool) -> str:
    """One command with its parameters' meaning, examples and errors."""
    lines = [tool_for_agents(tool)]
    docs = tool.doc.params
    for param in tool.public:
        text = param.help or docs.get(param.name)
        if text:
            lines.append(f"  {_name(param)}: {text}")
    if tool.guidance.when_to_use:
        lines.append(f"use when: {tool.guidance.when_to_use}")
    from tooli.errors import quote

    for example in tool.guidance.examples:
        command = " ".join([tool.app, *tool.words, *map(quote, map(str, example.get("args", ())))])
        about = example.get("description")
        lines.append(f"example: {command}" + (f"  # {about}" if about else ""))
    for code, meaning in tool.guidance.error_codes.items():
        lines.append(f"error {code}: {meaning}")
    lines += _minded(tool)
    for handoff in tool.guidance.handoffs:
        command = handoff.command.replace(".", " ")
        lines.append(f"next: {command}" + (f"  # {handoff.when}" if handoff.when else ""))
    return "\n".join([_line(line) for line in lines])


def _minded(tool: Tool) -> list[str]:
    """What a planner has to mind, a line each."""
    guard, limits = tool.guard, tool.limits
    said = {
        "needs": "a human's approval" if guard.human else "",
        "scopes": ", ".join(guard.scopes or ()),
        "capabilities": ", ".join(guard.capabilities),
        "danger": guard.danger,
        "cost": limits.cost,
        "timeout": f"{limits.timeout:g} s" if limits.timeout else "",
        "delegate": tool.guidance.delegation_hint,
        "deprecated": "yes" if tool.deprecated is True else tool.deprecated,
    }
    return [f"{name}: {value}" for name, value in said.items() if value]


def _brief(param: Param) -> str:
    kind = type_word(param.shape)
    bounds = bounds_of(param)
    if param.kind == "argument":
        word = f"{param.name}:{kind}{bounds}"
        return f"<{word}>" if param.required else f"[{word}]"
    if param.is_flag:
        word = f"{_name(param)}" + ("/" + param.negations[0] if param.default is True else "")
        return f"[{word}]"
    default = default_of(param)
    word = f"{_name(param)}={default if default else '<' + kind + '>'}"
    if default:
        word += f":{kind}"
    word += bounds
    return word if param.required else f"[{word}]"


def bounds_of(param: Param) -> str:
    """The least and the most that a number may be, in brackets."""
    low, high = param.settings.get("min"), param.settings.get("max")
    if low is None and high is None:
        return ""
    return f"({'' if low is None else low}..{'' if high is None else high})"


def _name(param: Param) -> str:
    return max(param.flags, key=len) if param.flags else param.name


def type_word(shape: Shape) -> str:
    """The type of a parameter in one word."""
    shape = plain(shape)
    match shape:
        case Scalar(kind):
            return kind.__name__
        case PathShape():
            return "path"
        case Choice():
            return "|".join(shape.words)
        case ListOf(item):
            return f"{type_word(item)}..."
        case TupleOf(items):
            return ",".join(type_word(item) for item in items)
        case Structured():
            return "json"
        case Handle():
            return shape.metavar.lower()
        case _:
            return str(getattr(getattr(shape, "annotation", None), "__name__", "value")).lower()


def default_of(param: Param) -> str:
    """The default in a word; nothing where there is none to speak of."""
    default = param.default
    if default in (MISSING, None, "", [], (), {}):
        return ""
    return str(getattr(default, "value", default))


def _result_word(annotation: Any) -> str:
    if annotation in (MISSING, None):
        return ""
    fields = getattr(annotation, "__annotations__", None)
    if isinstance(annotation, type) and annotation.__module__ != "builtins" and fields:
        return "{" + ",".join(fields) + "}"
    arguments = getattr(annotation, "__args__", ())
    name = getattr(getattr(annotation, "__origin__", annotation), "__name__", str(annotation))
    if name in ("list", "Iterator", "Generator", "AsyncIterator", "AsyncGenerator") and arguments:
        return f"[{_result_word(arguments[0])}]"
    return name


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
