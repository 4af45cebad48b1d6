"""Command lines for documents: short valid calls of a command."""

from __future__ import annotations

from tooli.core.command_words import command_words
from tooli.describe.schema_text import sample_argv
from tooli.errors import shell_quote

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tooli.core.tool import Tool


def command_title(tool: Tool) -> str:
    """Return the command as it is typed after the program name.

    For an app with a single command, return the program name.
    """
    return " ".join(tool.cli_path) or tool.app


def format_command_line(program: str, tool: Tool, argv: Iterable[object], *flags: str) -> str:
    """Return a command line. Flags that are not in the arguments are added."""
    arguments = [str(argument) for argument in argv]
    arguments = insert_flags(arguments, [flag for flag in flags if flag not in arguments])
    return " ".join(map(shell_quote, [program, *command_words(tool, arguments)]))


def insert_flags(argv: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Return the arguments with flags at the end, or before `--`, which ends the options."""
    end = argv.index("--") if "--" in argv else len(argv)
    return [*argv[:end], *flags, *argv[end:]]


def shortest_call(program: str, tool: Tool) -> str:
    """Return a short valid call: the author's shortest example, or a call with sample values."""
    argv = shortest_argv(tool)
    if tool.behavior.destructive:  # copying the line must not destroy anything
        argv = [argument for argument in argv if argument != "--yes"]
        return format_command_line(program, tool, argv, "--dry-run", "--json")
    return format_command_line(program, tool, argv, *output_flags(tool))


def shortest_argv(tool: Tool) -> list[str]:
    """Return the arguments of a short valid call."""
    best = best_example(tool)
    if best is None:
        return sample_arguments(tool)
    return [str(argument) for argument in tool.guidance.examples[best].get("args", ())]


def best_example(tool: Tool) -> int | None:
    """Return the index of the author's shortest example, or None."""
    lengths = [len(example.get("args", ())) for example in tool.guidance.examples]
    return lengths.index(min(lengths)) if lengths else None


def output_flags(tool: Tool) -> tuple[str, ...]:
    """Return the output flag that an agent adds to a call."""
    return ("--jsonl",) if tool.is_streaming else ("--json",)


def sample_arguments(tool: Tool, chosen: Mapping[str, str] = {}) -> list[str]:
    """Return sample values for the required parameters, as an argv.

    `chosen` contains values of parameters, by name, which need not be required.
    """
    argv: list[str] = []
    for param in tool.command_params:
        if param.required or param.name in chosen:
            sample = [chosen[param.name]] if param.name in chosen else sample_argv(param)
            argv += [max(param.flags, key=len), *sample] if param.flags else sample
    return argv
