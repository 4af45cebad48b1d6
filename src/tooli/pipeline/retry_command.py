"""Build the command line that repeats a call with other framework options."""

from __future__ import annotations

from tooli.pipeline.input_errors import build_argv
from tooli.schema.convert import Converted

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.records.result_options import ResultOptions


def build_retry_argv(call: Call, **changes: Any) -> list[str]:
    """Return the command line of a call with some framework options changed."""
    tool = call.tool
    program = list(call.caller.prog or (tool.app,))
    tool_flags = {flag for param in tool.params for flag in (*param.flags, *param.negations)}
    result_options = call.options.result_options
    if result_options is not None and result_options.argv is not None:
        words = list(result_options.argv)
        for name, value in changes.items():
            words = _set_flag(words, tool.cli_path, _flag_names(name, tool_flags), str(value))
        return [*program, *words]
    requested = {**_requested_options(result_options), **changes}
    flags: list[str] = []
    for name, value in requested.items():
        text = str(value)
        flag = _flag_names(name, tool_flags)[0]
        flags += [f"{flag}={text}"] if text[:1] == "-" else [flag, text]
    if call.options.yes:
        flags.append(_flag_names("yes", tool_flags)[0])
    if call.options.detailed:
        flags += [_flag_names("response_format", tool_flags)[0], "detailed"]
    arguments = {
        name: value.value if isinstance(value, Converted) else value
        for name, value in (
            call.arguments if call.flow is None else call.flow.raw_arguments
        ).items()
    }
    return [*program, *tool.cli_path, *build_argv(tool, arguments, *flags)]


def _requested_options(result_options: ResultOptions | None) -> Mapping[str, Any]:
    if result_options is None:
        return {}
    names = ("limit", "filter", "fields", "cursor", "max_items")
    sizes = () if result_options.has_default_sizes else ("max_bytes", "max_tokens")
    values = {name: getattr(result_options, name) for name in (*names, *sizes)}
    return {name: value for name, value in values.items() if value is not None}


def _flag_names(name: str, tool_flags: set[str]) -> tuple[str, ...]:
    """Return the flags of a framework option, the preferred one first."""
    plain = name.replace("_", "-")
    if f"--{plain}" in tool_flags:
        return (f"--tooli-{plain}",)
    return f"--{plain}", f"--tooli-{plain}"


def _set_flag(
    words: list[str], path: Sequence[str], flags: tuple[str, ...], value: str
) -> list[str]:
    """Return the arguments with the last value of a flag changed, or with the flag added."""
    end = words.index("--") if "--" in words else len(words)
    for i in range(end - 1, -1, -1):
        word, equals, _ = words[i].partition("=")
        if word in flags and equals:
            return [*words[:i], f"{word}={value}", *words[i + 1 :]]
        if word in flags and i + 1 < len(words):
            return [*words[: i + 1], value, *words[i + 2 :]]
    added = [flags[0], value]
    if end == len(words):
        return [*words, *added]
    insert_at = len(path) if words[: len(path)] == list(path) else 0
    return [*words[:insert_at], *added, *words[insert_at:]]
