"""Facts about a tool for documents: calls, results, effects, errors and related commands."""

from __future__ import annotations

from hashlib import sha256

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

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool
    from tooli.describe.app_info import AppInfo


def command_title(tool: Tool) -> str:
    """Return the command as it is typed after the program name.

    For an app with a single command, return the program name.
    """
    return " ".join(tool.cli_path) or tool.app


def file_stem(tool: Tool) -> str:
    """Return the command's name for use in a file name."""
    parts = tool.path or (tool.app,)
    plain_parts = [
        "".join([c if c.isalnum() or c in "-_" else "-" for c in part]) for part in parts
    ]
    name = ".".join(plain_parts).strip("-.") or "command"
    if tuple(plain_parts) == tool.path and name.islower():
        return name
    # A digest keeps names unique if characters were replaced or names differ only in case.
    return f"{name}-{sha256(repr(parts).encode()).hexdigest()[:6]}"


# ------------------------------------------------------------------ calls


def format_command_line(program: str, tool: Tool, argv: Iterable[Any], *flags: str) -> str:
    """Return a command line. `flags` are inserted before `--`, where they count as flags."""
    arguments = [str(argument) for argument in argv]
    more = [flag for flag in flags if flag not in arguments]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return " ".join(
        map(shell_quote, [program, *tool.cli_path, *arguments[:at], *more, *arguments[at:]])
    )


def shortest_call(program: str, tool: Tool) -> str:
    """Return a short valid call: the author's shortest example, or a call with sample values."""
    best = best_example(tool)
    argv = sample_arguments(tool) if best is None else tool.guidance.examples[best].get("args", ())
    if tool.behavior.destructive:  # copying the line must not destroy anything
        argv = [argument for argument in argv if argument != "--yes"]
        return format_command_line(program, tool, argv, "--dry-run", "--json")
    return format_command_line(program, tool, argv, *output_flags(tool))


def best_example(tool: Tool) -> int | None:
    """Return the index of the author's shortest example, or None."""
    lengths = [len(example.get("args", ())) for example in tool.guidance.examples]
    return lengths.index(min(lengths)) if lengths else None


def output_flags(tool: Tool) -> tuple[str, ...]:
    """Return the output flag that an agent adds to a call."""
    return ("--jsonl",) if tool.is_streaming else ("--json",)


def sample_arguments(tool: Tool) -> list[str]:
    """Return sample values for the required parameters, as an argv."""
    argv: list[str] = []
    for param in tool.public_params:
        if param.required:
            sample = sample_argv(param)
            argv += [max(param.flags, key=len), *sample] if param.flags else sample
    return argv


# ------------------------------------------------------------------ results


def result_type(tool: Tool) -> str:
    """Return the type of the result in short notation; "" if none is declared."""
    schema = output_schema(tool)
    return "" if schema is None else format_type(schema)


def return_sentence(tool: Tool) -> str:
    """Return a sentence about the result."""
    result = result_type(tool)
    if tool.is_streaming:
        item = result[1:-1] if result[:1] == "[" else result
        return f"Streams `{item}`, one per line with `--jsonl`; `--json` returns a list."
    if result:
        return f"Returns `{result}`."
    return "Returns its printed text." if tool.returns_printed_text else ""


# ------------------------------------------------------------------ effects, limits, errors


_FORBIDDEN_SUFFIX = ", never runs"


def effect_phrases(tool: Tool) -> list[str]:
    """Return short phrases about a tool's effects, approval, cost and deprecation."""
    behavior, guard, limits = tool.behavior, tool.guard, tool.limits
    phrases: list[str] = []
    if behavior.read_only:
        phrases.append("read-only")
    if behavior.destructive:
        phrases.append(
            "destructive: `--dry-run` first" + ("" if guard.needs_human else ", `--yes` to confirm")
        )
    if behavior.idempotent and not behavior.read_only:
        phrases.append("safe to repeat")
    if behavior.open_world:
        phrases.append("accesses other machines")
    if guard.needs_human:
        phrases.append("a human must approve each call")
    if guard.danger:
        phrases.append(
            f"danger: {guard.danger}" + _FORBIDDEN_SUFFIX * (guard.danger == "forbidden")
        )
    if guard.scopes:
        phrases.append(f"requires the scopes {', '.join(guard.scopes)}")
    if limits.cost_hint:
        phrases.append(f"cost: {single_line(str(limits.cost_hint))}")
    if tool.deprecated:
        phrases.append(
            "deprecated" if tool.deprecated is True else f"deprecated: {tool.deprecated}"
        )
    return phrases


def requirement_phrases(tool: Tool) -> list[str]:
    """Return short phrases about capabilities, timeout, token limit and delegation."""
    guard, limits = tool.guard, tool.limits
    phrases: list[str] = []
    if guard.capabilities:
        phrases.append(f"capabilities: {', '.join([f'`{name}`' for name in guard.capabilities])}")
    if limits.timeout:
        phrases.append(f"takes up to {limits.timeout:g} s")
    if limits.max_tokens:
        phrases.append(f"returns at most {limits.max_tokens} tokens")
    if tool.guidance.delegation_hint:
        phrases.append(f"delegate: {single_line(tool.guidance.delegation_hint)}")
    return phrases


def declared_errors(tool: Tool) -> list[tuple[str, str]]:
    """Return the errors that the tool declares: code and meaning."""
    return [(code, single_line(text)) for code, text in tool.guidance.error_codes.items()]


_REMEDIES = {
    "E1": "correct the call as `error.suggestion` says",
    "E2": "ask the human; do not try a workaround",
    "E3": "check the state it names, then call again",
    "E4": "retry later, or do without",
    "E5": "report a bug in the tool",
}


def remedy(code: str) -> str:
    """Return advice about an error, which depends on the first digit of its code."""
    return _REMEDIES.get(code[:2], "read `error.suggestion`")


def code_meaning(code: str) -> str:
    """Return the meaning of a framework error code; "" if it is unknown."""
    return ERROR_CODES[code][0] if code in ERROR_CODES else ""


# ------------------------------------------------------------------ related commands


def next_commands(tool: Tool) -> list[tuple[str, str]]:
    """Return the commands that may follow, and when."""
    return [
        (handoff.command.replace(".", " "), single_line(handoff.when))
        for handoff in tool.guidance.handoffs
    ]


def previous_commands(app_info: AppInfo, tool: Tool) -> list[str]:
    """Return the commands that hand off to this one."""
    return [
        command_title(other)
        for other in app_info.tools
        if other is not tool
        and any([handoff.command == tool.key for handoff in other.guidance.handoffs])
    ]


def pipe_examples(app_info: AppInfo) -> list[str]:
    """Return up to three pipes from one command's result to another's arguments."""
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
    """Yield the tools that may use a result: the handoffs, or read-only tools if there are none."""
    named = [handoff.command for handoff in source.guidance.handoffs]
    for tool in app_info.tools:
        if tool is not source and (tool.key in named or (not named and tool.behavior.read_only)):
            yield tool


def _pipe_example(program: str, source: Tool, target: Tool) -> str | None:
    """Return a pipe from a field of one result to a command with a repeated argument, or None."""
    positionals = [param for param in target.public_params if param.kind == "argument"]
    if len(positionals) != 1 or not positionals[0].is_multiple:
        return None
    field = _matching_field(positionals[0], object_properties(output_schema(source) or {}))
    if field is None:
        return None
    select = f".{field}" if source.is_streaming else f".result[].{field}"
    first = shortest_call(program, source)
    last = f"{program} {command_title(target)} --json"
    return f"{first} | jq -r '{select}' | tr '\\n' '\\0' | xargs -0 {last}"


def _matching_field(param: Param, fields: JsonObject) -> str | None:
    """Return the field of a result that can be passed as a parameter, or None.

    It has the name of the parameter, or is `path` or `file` if the parameter takes paths.
    """
    names: Sequence[str] = [param.name, param.name.removesuffix("s")]
    item = unwrap_optional(param.shape)
    if isinstance(item, ListOf) and isinstance(item.item, PathShape):
        names = [*names, "path", "file"]
    for name in names:
        if name in fields and format_type(fields[name]) == "str":
            return name
    return None
