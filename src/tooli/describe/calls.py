"""Command lines for documents: short valid calls of a command, checked with the app's parser."""

from __future__ import annotations

from tooli.core.command_words import callback_options, command_words
from tooli.describe.sample_values import sample_argv
from tooli.errors import shell_quote

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import ToolSource
    from tooli.core.tool import Param, Tool


def command_title(tool: Tool) -> str:
    """Return the command as it is typed after the program name.

    For an app with a single command, return the program name.
    """
    return " ".join(tool.cli_path) or tool.app


def format_command_line(program: str, tool: Tool, argv: Iterable[object], *flags: str) -> str:
    """Return a command line. Flags that are not in the arguments are added.

    `program` is the start of the line, quoted for a shell.
    """
    return " ".join([program, *map(shell_quote, line_words(tool, argv, *flags))])


def line_words(tool: Tool, argv: Iterable[object], *flags: str) -> list[str]:
    """Return the words of a command line after the program. Flags that are missing are added."""
    arguments = [str(argument) for argument in argv]
    spelled = [spell_flag(tool, flag) for flag in flags]
    arguments = insert_flags(arguments, [flag for flag in spelled if flag not in arguments])
    return _with_required_options(tool, command_words(tool, arguments))


def spell_flag(tool: Tool, flag: str) -> str:
    """Return a framework flag as it is written for a command.

    It is `--tooli-yes` if the command has its own `--yes`, or takes undeclared arguments.
    """
    is_taken = tool.passes_arguments or any(
        [flag in (*param.flags, *param.negations) for param in tool.params]
    )
    return f"--tooli-{flag[2:]}" if is_taken and flag[:2] == "--" else flag


def drop_broken_examples(app: ToolSource, tool: Tool) -> tuple[Tool, list[str]]:
    """Return the tool without the examples that the app's parser rejects, and what is wrong.

    An example in a document is copied as it is, so a broken one does more harm than none.
    """
    kept: list[Mapping[str, Any]] = []
    problems: list[str] = []
    for example in tool.guidance.examples:
        argv = example.get("args", ())
        found = app._find_line_problems(line_words(tool, argv, *output_flags(tool)))
        if not found:
            kept.append(example)
            continue
        line = " ".join(map(shell_quote, command_words(tool, [str(word) for word in argv])))
        problems.append(
            f"{tool.key or tool.name}: the example {line!r} does not work: {found[0]}. "
            "It is left out. Correct examples=."
        )
    if problems:
        tool = tool.replace(guidance=tool.guidance.replace(examples=tuple(kept)))
    return tool, problems


def _with_required_options(tool: Tool, words: list[str]) -> list[str]:
    """Return the words of a call, with sample values for the required options of callbacks."""
    required = {
        path: [word for param in params if param.required for word in _sample(param)]
        for path, params in callback_options([tool]).items()
    }
    if not any(required.values()):
        return words
    found: list[str] = []
    for i, word in enumerate(words):
        found += required.get(tool.cli_path[:i], ()) if i < len(tool.cli_path) else ()
        found.append(word)
    return found


def _sample(param: Param) -> list[str]:
    sample = sample_argv(param)
    return [max(param.flags, key=len), *sample] if param.flags else sample


def insert_flags(argv: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Return the arguments with flags at the end, or before `--`, which ends the options."""
    end = argv.index("--") if "--" in argv else len(argv)
    return [*argv[:end], *flags, *argv[end:]]


def shortest_call(program: str, tool: Tool) -> str:
    """Return a short valid call: the author's shortest example, or a call with sample values."""
    argv = shortest_argv(tool)
    if tool.behavior.destructive:  # copying the line must not destroy anything
        argv = [argument for argument in argv if argument != spell_flag(tool, "--yes")]
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
    options: list[str] = []
    positionals: list[str] = []
    for param in tool.command_params:
        if param.required or param.name in chosen:
            sample = [chosen[param.name]] if param.name in chosen else sample_argv(param)
            if param.flags:
                options += [max(param.flags, key=len), *sample]
            else:
                positionals += sample
    if any([text[:1] == "-" and text != "-" for text in positionals]):  # such as -1
        return [*options, "--", *positionals]
    return [*positionals, *options]
