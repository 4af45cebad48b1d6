"""What there is to tell about a tool: how to call it, what comes back, what may follow."""

from __future__ import annotations

from tooli.core.tool import ListOf, PathShape, unwrap_optional
from tooli.describe.example_arguments import sample_argv
from tooli.describe.markdown import single_line
from tooli.describe.schema_text import format_type, object_properties
from tooli.errors import ERROR_CODES, shell_quote
from tooli.schema.json_schema import output_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from tooli.core.tool import Param, Tool
    from tooli.describe.app_info import AppInfo


def command_title(tool: Tool) -> str:
    """The command as it is typed behind the program, or the program where it is the only one."""
    return " ".join(tool.cli_path) or tool.app


def file_stem(tool: Tool) -> str:
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


def format_command_line(program: str, tool: Tool, argv: Iterable[Any], *flags: str) -> str:
    """A command line; the framework's flags stand where they are read as flags."""
    arguments = [str(word) for word in argv]
    more = [flag for flag in flags if flag not in arguments]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return " ".join(
        map(shell_quote, [program, *tool.cli_path, *arguments[:at], *more, *arguments[at:]])
    )


def shortest_call(program: str, tool: Tool) -> str:
    """The shortest call that works: the author's shortest example, or one with made-up words."""
    best = best_example(tool)
    argv = sample_arguments(tool) if best is None else tool.guidance.examples[best].get("args", ())
    if tool.behavior.destructive:  # whoever copies it destroys nothing
        argv = [word for word in argv if word != "--yes"]
        return format_command_line(program, tool, argv, "--dry-run", "--json")
    return format_command_line(program, tool, argv, *output_flags(tool))


def best_example(tool: Tool) -> int | None:
    """The number of the author's shortest example."""
    lengths = [len(example.get("args", ())) for example in tool.guidance.examples]
    return lengths.index(min(lengths)) if lengths else None


def output_flags(tool: Tool) -> tuple[str, ...]:
    """The flags that an agent adds to a call, for an answer that it can read."""
    return ("--jsonl",) if tool.is_streaming else ("--json",)


def sample_arguments(tool: Tool) -> list[str]:
    """Words for what a tool needs, of the right kind."""
    argv: list[str] = []
    for param in tool.public_params:
        if param.required:
            sample = sample_argv(param)
            argv += [max(param.flags, key=len), *sample] if param.flags else sample
    return argv


# ------------------------------------------------------------------ what comes back


def result_type(tool: Tool) -> str:
    """The type of the result in a few words; nothing where the tool declares none."""
    schema = output_schema(tool)
    return "" if schema is None else format_type(schema)


def return_sentence(tool: Tool) -> str:
    """What comes back, as a sentence."""
    result = result_type(tool)
    if tool.is_streaming:
        item = result[1:-1] if result[:1] == "[" else result
        return f"Streams `{item}`, one per line with `--jsonl`; `--json` gives the list."
    if result:
        return f"Returns `{result}`."
    return "Returns what it prints, as text." if tool.returns_printed_text else ""


# ------------------------------------------------------------------ what to mind


_FORBIDDEN_SUFFIX = ", it is never run"


def effect_phrases(tool: Tool) -> list[str]:
    """What it does to the world and what it asks for first, in short phrases."""
    behavior, guard, limits = tool.behavior, tool.guard, tool.limits
    phrases: list[str] = []
    if behavior.read_only:
        phrases.append("read-only")
    if behavior.destructive:
        phrases.append(
            "destructive: `--dry-run` first" + ("" if guard.needs_human else ", `--yes` to do it")
        )
    if behavior.idempotent and not behavior.read_only:
        phrases.append("safe to repeat")
    if behavior.open_world:
        phrases.append("reaches outside this machine")
    if guard.needs_human:
        phrases.append("a human must approve each call")
    if guard.danger:
        phrases.append(
            f"danger: {guard.danger}" + _FORBIDDEN_SUFFIX * (guard.danger == "forbidden")
        )
    if guard.scopes:
        phrases.append(f"needs the scopes {', '.join(guard.scopes)}")
    if limits.cost_hint:
        phrases.append(f"cost: {single_line(str(limits.cost_hint))}")
    if tool.deprecated:
        phrases.append(
            "deprecated" if tool.deprecated is True else f"deprecated: {tool.deprecated}"
        )
    return phrases


def requirement_phrases(tool: Tool) -> list[str]:
    """The details that a planner asks for: capabilities, time, tokens, who should do it."""
    guard, limits = tool.guard, tool.limits
    phrases: list[str] = []
    if guard.capabilities:
        phrases.append(f"capabilities: {', '.join([f'`{name}`' for name in guard.capabilities])}")
    if limits.timeout:
        phrases.append(f"takes up to {limits.timeout:g} s")
    if limits.max_tokens:
        phrases.append(f"answers with {limits.max_tokens} tokens at most")
    if tool.guidance.delegation_hint:
        phrases.append(f"delegate: {single_line(tool.guidance.delegation_hint)}")
    return phrases


def declared_errors(tool: Tool) -> list[tuple[str, str]]:
    """The tool's own errors: code, and when it comes."""
    return [(code, single_line(text)) for code, text in tool.guidance.error_codes.items()]


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


def code_meaning(code: str) -> str:
    """What a code of the framework's means."""
    return ERROR_CODES[code][0] if code in ERROR_CODES else ""


# ------------------------------------------------------------------ what may follow


def next_commands(tool: Tool) -> list[tuple[str, str]]:
    """The commands that may come next, and when."""
    return [
        (handoff.command.replace(".", " "), single_line(handoff.when))
        for handoff in tool.guidance.handoffs
    ]


def previous_commands(app_info: AppInfo, tool: Tool) -> list[str]:
    """The commands that it commonly comes after: those that hand over to it."""
    return [
        command_title(other)
        for other in app_info.tools
        if other is not tool
        and any([handoff.command == tool.key for handoff in other.guidance.handoffs])
    ]


def pipe_examples(app_info: AppInfo) -> list[str]:
    """Command lines that feed one command's result to another, where types and names allow it."""
    found: list[str] = []
    for source in app_info.tools:
        if source.behavior.destructive or source.guard.may_need_approval:
            continue
        for target in _pipe_targets(app_info, source):
            line = _pipe_example(app_info.name, source, target)
            if line:
                found.append(line)
    return found[:3]


def _pipe_targets(app_info: AppInfo, source: Tool) -> Iterator[Tool]:
    """The tools that may take a result: those it hands over to, then other read-only ones."""
    named = [handoff.command for handoff in source.guidance.handoffs]
    for tool in app_info.tools:
        if tool is not source and (tool.key in named or (not named and tool.behavior.read_only)):
            yield tool


def _pipe_example(program: str, source: Tool, target: Tool) -> str | None:
    """One result's field as the words of a command that takes any number of them."""
    positionals = [param for param in target.public_params if param.kind == "argument"]
    if len(positionals) != 1 or not positionals[0].is_multiple:
        return None
    field = _matching_field(positionals[0], object_properties(output_schema(source) or {}))
    if field is None:
        return None
    select = f".{field}" if source.is_streaming else f".result[].{field}"
    first = shortest_call(program, source)
    return f"{first} | jq -r '{select}' | tr '\\n' '\\0' | xargs -0 {program} {command_title(target)} --json"


def _matching_field(param: Param, fields: dict[str, Any]) -> str | None:
    """The field whose values the parameter takes: by name, or a path for paths."""
    names: Sequence[str] = [param.name, param.name.removesuffix("s")]
    item = unwrap_optional(param.shape)
    if isinstance(item, ListOf) and isinstance(item.item, PathShape):
        names = [*names, "path", "file"]
    for name in names:
        if name in fields and format_type(fields[name]) == "str":
            return name
    return None
