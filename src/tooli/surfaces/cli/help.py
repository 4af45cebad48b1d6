"""Help as text: compact for an agent, plain for a pipe. No boxes, no colour, no imports."""

from __future__ import annotations

from tooli.call.repair import choice_words
from tooli.contract.reading import returns_of
from tooli.contract.tool import (
    MISSING,
    Choice,
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


# ------------------------------------------------------------------ for agents


def app_for_agents(house: Any, tools: Iterable[Tool]) -> str:
    """Every command of an app, a line each: signature, what it returns, what it does."""
    head = " ".join(filter(None, (house.name, house.version)))
    about = _first_line(house.description)
    lines = [f"{head}: {about}" if about else head]
    lines += [tool_for_agents(tool) for tool in tools if not tool.hidden]
    lines.append("any command: --json --schema --help-agent --dry-run --yes")
    return "\n".join(lines)


def tool_for_agents(tool: Tool) -> str:
    """One command in one line."""
    words = [*tool.words, *map(_brief, tool.public)]
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
    return " ".join(words)


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
    return "\n".join(lines)


def _brief(param: Param) -> str:
    kind = type_word(param.shape)
    bounds = _bounds(param)
    if param.kind == "argument":
        word = f"{param.name}:{kind}{bounds}"
        return f"<{word}>" if param.required else f"[{word}]"
    if param.is_flag:
        word = f"{_name(param)}" + ("/" + param.negations[0] if param.default is True else "")
        return f"[{word}]"
    default = _default_word(param)
    word = f"{_name(param)}={default if default else '<' + kind + '>'}"
    if default:
        word += f":{kind}"
    word += bounds
    return word if param.required else f"[{word}]"


def _bounds(param: Param) -> str:
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
            return "|".join(choice_words(shape))
        case ListOf(item):
            return f"{type_word(item)}..."
        case TupleOf(items):
            return ",".join(type_word(item) for item in items)
        case Structured():
            return "json"
        case _:
            return str(getattr(getattr(shape, "annotation", None), "__name__", "value")).lower()


def _default_word(param: Param) -> str:
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


# ------------------------------------------------------------------ for pipes and narrow eyes


def app_plainly(house: Any, branch: Any, prog: str, path: tuple[str, ...], width: int) -> str:
    """An app or a group: what it is, and its commands."""
    lines = [f"Usage: {' '.join((prog, *path))} COMMAND [ARGS]...", ""]
    about = house.description if not path else None
    if about:
        lines += [*wrap(about, width), ""]
    rows = [
        (word, registration.about((*path, word)))
        for word, registration in branch.commands.items()
        if not registration.said.get("hidden")
    ]
    rows += [(word, "(group)") for word in branch.groups]
    if rows:
        lines += ["Commands:", *_table(rows, width), ""]
    lines += ["Options:", *_table(FRAMEWORK_ROWS, width)]
    return "\n".join(lines)


def tool_plainly(tool: Tool, prog: str, words: tuple[str, ...], width: int) -> str:
    """One command: usage, what it does, its parameters."""
    doc = tool.doc
    arguments = [p for p in tool.public if p.kind == "argument" and not p.hidden]
    options = [p for p in tool.public if p.kind == "option" and not p.hidden]
    usage = [prog, *words, "[OPTIONS]"] if options else [prog, *words]
    usage += [_placeholder(p) for p in arguments]
    lines = [f"Usage: {' '.join(usage)}", ""]
    if doc.summary:
        lines += [*wrap(doc.summary, width), ""]
    if doc.description:
        lines += [*wrap(doc.description, width), ""]
    if arguments:
        rows = [(p.name.upper(), _meaning(p, doc.params)) for p in arguments]
        lines += ["Arguments:", *_table(rows, width), ""]
    if options:
        rows = [(_flag_words(p), _meaning(p, doc.params)) for p in options]
        lines += ["Options:", *_table(rows, width), ""]
    lines += ["Framework options:", *_table(FRAMEWORK_ROWS, width)]
    return "\n".join(lines)


def _placeholder(param: Param) -> str:
    word = param.name.upper() if param.required else f"[{param.name.upper()}]"
    return f"{word}..." if param.many else word


FRAMEWORK_ROWS = [
    ("--json | --jsonl | --text | --plain", "How to answer (also -o MODE)."),
    ("--schema, --help-agent", "The contract, for programs and agents."),
    ("--dry-run, --yes, --no-input", "Plan only; confirm; never ask."),
    ("-q, -v, --no-color, --help, --version", "Less, more, no colour, help, version."),
]


def _flag_words(param: Param) -> str:
    words = ", ".join((*param.flags, *param.negations))
    return words if param.is_flag else f"{words} {type_word(param.shape)}"


def _meaning(param: Param, docs: Any) -> str:
    text = param.help or docs.get(param.name) or ""
    notes: list[str] = []
    if param.kind == "argument":
        notes.append(type_word(param.shape))
    bounds = _bounds(param)
    if bounds:
        notes.append(bounds.strip("()"))
    if param.required:
        notes.append("required")
    default = _default_word(param)
    if default and not (param.is_flag and param.default is False):
        notes.append(f"default: {default}")
    return f"{text} [{'; '.join(notes)}]".strip() if notes else text


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _table(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Names and meanings: side by side where there is room, else one below the other."""
    rows = list(rows)
    left = min(max((len(name) for name, _ in rows), default=0), max(8, width // 2 - 2))
    lines: list[str] = []
    for name, text in rows:
        folded = wrap(text, max(16, width - left - 4)) or [""]
        if len(name) > left:
            lines.append(f"  {name}")
            lines += [f"  {'':{left}}  {part}".rstrip() for part in folded]
            continue
        lines.append(f"  {name:{left}}  {folded[0]}".rstrip())
        lines += [f"  {'':{left}}  {part}" for part in folded[1:]]
    return lines


def wrap(text: str, width: int) -> list[str]:
    """Text folded at words; indented lines and blank lines stay as they are."""
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
