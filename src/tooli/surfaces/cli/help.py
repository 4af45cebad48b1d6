"""Help as plain text, for a pipe or a narrow terminal. No boxes, no colour, no imports."""

from __future__ import annotations

from tooli.views.brief import bounds_of, default_of, type_word

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.contract.tool import Param, Tool


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
    ("--json | --jsonl | --text | --plain", "How to answer (also -o toon, csv, md)."),
    ("--schema, --help-agent", "The contract, for programs and agents."),
    ("--dry-run, --yes, --no-input", "Plan only; confirm; never ask."),
    ("--limit, --filter, --select", "How many records, which, what of them."),
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
    bounds = bounds_of(param)
    if bounds:
        notes.append(bounds.strip("()"))
    if param.required:
        notes.append("required")
    default = default_of(param)
    if default and not (param.is_flag and param.default is False):
        notes.append(f"default: {default}")
    return f"{text} [{'; '.join(notes)}]".strip() if notes else text


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
