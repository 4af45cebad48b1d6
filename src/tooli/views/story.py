"""What there is to tell about a tool: how to call it, what comes back, what may follow."""

from __future__ import annotations

from tooli.contract.schema import output_schema
from tooli.contract.tool import ListOf, PathShape, plain
from tooli.errors import CODES, quote
from tooli.views.markdown import flat
from tooli.views.samples import sample_words
from tooli.views.types import brief
from tooli.views.values import parts_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from tooli.contract.tool import Param, Tool
    from tooli.views.portrait import Portrait


def title(tool: Tool) -> str:
    """The command as it is typed behind the program, or the program where it is the only one."""
    return " ".join(tool.words) or tool.app


def stem(tool: Tool) -> str:
    """The command's name as part of a file's name."""
    parts = tool.path or (tool.app,)
    plain_parts = [
        "".join([c if c.isalnum() or c in "-_" else "-" for c in part]) for part in parts
    ]
    name = ".".join(plain_parts).strip("-.") or "command"
    if tuple(plain_parts) == tool.path and name.islower():
        return name
    from hashlib import sha256  # letters were lost, or are not told apart: another name tells

    return f"{name}-{sha256(repr(parts).encode()).hexdigest()[:6]}"


# ------------------------------------------------------------------ calling it


def typed(program: str, tool: Tool, words: Iterable[Any], *flags: str) -> str:
    """A command line; the framework's flags stand where they are read as flags."""
    given = [str(word) for word in words]
    more = [flag for flag in flags if flag not in given]
    at = given.index("--") if "--" in given else len(given)
    return " ".join(map(quote, [program, *tool.words, *given[:at], *more, *given[at:]]))


def shortest(program: str, tool: Tool) -> str:
    """The shortest call that works: the author's shortest example, or one with made-up words."""
    best = best_example(tool)
    words = made_up(tool) if best is None else tool.guidance.examples[best].get("args", ())
    if tool.behavior.destructive:  # whoever copies it destroys nothing
        words = [word for word in words if word != "--yes"]
        return typed(program, tool, words, "--dry-run", "--json")
    return typed(program, tool, words, *answer_flags(tool))


def best_example(tool: Tool) -> int | None:
    """The number of the author's shortest example."""
    lengths = [len(example.get("args", ())) for example in tool.guidance.examples]
    return lengths.index(min(lengths)) if lengths else None


def answer_flags(tool: Tool) -> tuple[str, ...]:
    """The flags that an agent adds to a call, for an answer that it can read."""
    return ("--jsonl",) if tool.streams else ("--json",)


def made_up(tool: Tool) -> list[str]:
    """Words for what a tool needs, of the right kind."""
    words: list[str] = []
    for param in tool.public:
        if param.required:
            sample = sample_words(param)
            words += [max(param.flags, key=len), *sample] if param.flags else sample
    return words


# ------------------------------------------------------------------ what comes back


def result_of(tool: Tool) -> str:
    """The type of the result in a few words; nothing where the tool declares none."""
    schema = output_schema(tool)
    return "" if schema is None else brief(schema)


def returning(tool: Tool) -> str:
    """What comes back, as a sentence."""
    result = result_of(tool)
    if tool.streams:
        item = result[1:-1] if result[:1] == "[" else result
        return f"Streams `{item}`, one per line with `--jsonl`; `--json` gives the list."
    if result:
        return f"Returns `{result}`."
    return "Returns what it prints, as text." if tool.prints else ""


# ------------------------------------------------------------------ what to mind


_FATAL = ", it is never run"


def effects(tool: Tool) -> list[str]:
    """What it does to the world and what it asks for first, in short phrases."""
    behaviour, guard, limits = tool.behavior, tool.guard, tool.limits
    said: list[str] = []
    if behaviour.read_only:
        said.append("read-only")
    if behaviour.destructive:
        said.append(
            "destructive: `--dry-run` first" + ("" if guard.human else ", `--yes` to do it")
        )
    if behaviour.idempotent and not behaviour.read_only:
        said.append("safe to repeat")
    if behaviour.open_world:
        said.append("reaches outside this machine")
    if guard.human:
        said.append("a human must approve each call")
    if guard.danger:
        said.append(f"danger: {guard.danger}" + _FATAL * (guard.danger == "forbidden"))
    if guard.scopes:
        said.append(f"needs the scopes {', '.join(guard.scopes)}")
    if limits.cost:
        said.append(f"cost: {flat(str(limits.cost))}")
    if tool.deprecated:
        said.append("deprecated" if tool.deprecated is True else f"deprecated: {tool.deprecated}")
    return said


def needs(tool: Tool) -> list[str]:
    """The details that a planner asks for: capabilities, time, tokens, who should do it."""
    guard, limits = tool.guard, tool.limits
    said: list[str] = []
    if guard.capabilities:
        said.append(f"capabilities: {', '.join([f'`{name}`' for name in guard.capabilities])}")
    if limits.timeout:
        said.append(f"takes up to {limits.timeout:g} s")
    if limits.max_tokens:
        said.append(f"answers with {limits.max_tokens} tokens at most")
    if tool.guidance.delegation_hint:
        said.append(f"delegate: {flat(tool.guidance.delegation_hint)}")
    return said


def failures(tool: Tool) -> list[tuple[str, str]]:
    """The tool's own errors: code, and when it comes."""
    return [(code, flat(text)) for code, text in tool.guidance.error_codes.items()]


_REMEDIES = {
    "E1": "mend the call as `error.suggestion` says",
    "E2": "ask the human; do not try another way in",
    "E3": "look at the state it names, then call again",
    "E4": "call again later, or do without",
    "E5": "report it: the tool is broken",
}


def remedy(code: str) -> str:
    """What to do about an error, by its family."""
    return _REMEDIES.get(code[:2], "read `error.suggestion`")


def meaning(code: str) -> str:
    """What a code of the framework's means."""
    return CODES[code][0] if code in CODES else ""


# ------------------------------------------------------------------ what may follow


def followers(tool: Tool) -> list[tuple[str, str]]:
    """The commands that may come next, and when."""
    return [
        (handoff.command.replace(".", " "), flat(handoff.when))
        for handoff in tool.guidance.handoffs
    ]


def leaders(portrait: Portrait, tool: Tool) -> list[str]:
    """The commands that it commonly comes after: those that hand over to it."""
    return [
        title(other)
        for other in portrait.tools
        if other is not tool
        and any([handoff.command == tool.key for handoff in other.guidance.handoffs])
    ]


def pipes(portrait: Portrait) -> list[str]:
    """Command lines that feed one command's result to another, where types and names allow it."""
    found: list[str] = []
    for giver in portrait.tools:
        if giver.behavior.destructive or giver.guard.careful:
            continue
        for taker in _takers(portrait, giver):
            line = _pipe(portrait.name, giver, taker)
            if line:
                found.append(line)
    return found[:3]


def _takers(portrait: Portrait, giver: Tool) -> Iterator[Tool]:
    """The tools that may take a result: those it hands over to, then other read-only ones."""
    named = [handoff.command for handoff in giver.guidance.handoffs]
    for tool in portrait.tools:
        if tool is not giver and (tool.key in named or (not named and tool.behavior.read_only)):
            yield tool


def _pipe(program: str, giver: Tool, taker: Tool) -> str | None:
    """One result's field as the words of a command that takes any number of them."""
    places = [param for param in taker.public if param.kind == "argument"]
    if len(places) != 1 or not places[0].many:
        return None
    field = _matching(places[0], parts_of(output_schema(giver) or {}))
    if field is None:
        return None
    select = f".{field}" if giver.streams else f".result[].{field}"
    first = shortest(program, giver)
    return f"{first} | jq -r '{select}' | tr '\\n' '\\0' | xargs -0 {program} {title(taker)} --json"


def _matching(param: Param, fields: dict[str, Any]) -> str | None:
    """The field whose values the parameter takes: by name, or a path for paths."""
    names: Sequence[str] = [param.name, param.name.removesuffix("s")]
    item = plain(param.shape)
    if isinstance(item, ListOf) and isinstance(item.item, PathShape):
        names = [*names, "path", "file"]
    for name in names:
        if name in fields and brief(fields[name]) == "str":
            return name
    return None
