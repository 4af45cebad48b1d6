"""SKILL.md: what an agent has to know to use an app, as one page of Markdown."""

from __future__ import annotations

from tooli.contract.tool import MISSING, plain
from tooli.errors import CODES, quote

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tooli.contract.tool import Param, Tool


def write_skill(name: str, description: str | None, tools: Iterable[Tool]) -> str:
    """The page of an app: when to use it, its commands, examples, and what can go wrong."""
    shown = [tool for tool in tools if not tool.hidden]
    about = description or f"The commands of {name}."
    parts = [
        f"---\nname: {_slug(name)}\ndescription: {_one_line(about)}\n---",
        f"# {name}",
        about.strip(),
        *_when(shown),
        "## Commands",
        *[_command(name, tool) for tool in shown],
        *_errors(shown),
    ]
    return "\n\n".join(parts) + "\n"


def _slug(name: str) -> str:
    letters = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower())
    return letters.strip("-")[:64] or "app"


def _one_line(text: str) -> str:
    """Text as a value of the front matter: YAML reads a JSON string."""
    from json import dumps

    line = " ".join(text.split())
    return dumps(line[:1024], ensure_ascii=False)


def _when(tools: list[Tool]) -> Iterator[str]:
    hints = [(tool, tool.guidance.when_to_use) for tool in tools if tool.guidance.when_to_use]
    if hints:
        yield "## When to use it"
        yield "\n".join([f"- `{' '.join(tool.path)}`: {_flat(hint)}" for tool, hint in hints])


def _command(app: str, tool: Tool) -> str:
    lines = [f"### `{signature(app, tool)}`", "", tool.doc.summary or "(no description)"]
    behaviour = tool.behavior.words()
    if behaviour:
        lines += ["", f"Behaviour: {', '.join(behaviour)}."]
    if tool.guard.approval:
        lines += ["", "A human must approve each call."]
    docs = tool.doc.params
    told = [(p, p.help or docs.get(p.name)) for p in tool.public if not p.hidden]
    lines += ["", *[f"- `{_word(p)}`: {_flat(text)}" for p, text in told if text]]
    for example in tool.guidance.examples:
        words = [app, *tool.words, *[str(arg) for arg in example.get("args", ())]]
        said = example.get("description")
        lines += ["", *([str(said)] if said else [])]
        lines += ["```", " ".join(map(quote, words)), "```"]
    return "\n".join(lines).rstrip()


def signature(app: str, tool: Tool) -> str:
    """A command with its parameters, as it is typed: what is in brackets may be left out."""
    words = [app, *tool.words]
    for param in tool.public:
        if not param.hidden:
            word = _word(param)
            words.append(word if param.required else f"[{word}]")
    return " ".join(words)


def _word(param: Param) -> str:
    if param.kind == "argument":
        return param.name.upper()
    flag = param.flags[0] if param.flags else f"--{param.name}"
    return flag if param.is_flag else f"{flag} {_value(param)}"


def _value(param: Param) -> str:
    values: Any = getattr(plain(param.shape), "values", None)
    if values and len(values) <= 6:
        return "|".join([str(getattr(value, "value", value)) for value in values])
    default = param.default
    return param.name.upper() if default in (MISSING, None) else f"{param.name.upper()}={default}"


def _errors(tools: list[Tool]) -> Iterator[str]:
    own = {code: text for tool in tools for code, text in tool.guidance.error_codes.items()}
    common = {code: CODES[code][0] for code in ("E1002", "E1003", "E2101", "E3010")}
    yield "## Errors"
    yield (
        'With `--json` a failure is `{"ok": false, "error": {…}}`; `error.suggestion` says what '
        "to do about it."
    )
    yield "\n".join([f"- `{code}`: {_flat(text)}" for code, text in {**common, **own}.items()])


def _flat(text: str) -> str:
    return " ".join(text.split())
