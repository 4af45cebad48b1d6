"""Problems with options: unknown names, values that are not allowed, and the closest ones."""

from __future__ import annotations

from tooli.core._hot_tables import FLAGS
from tooli.core.call import Problem
from tooli.core.option_words import INTERFACE_WORDS
from tooli.core.tool import MAX_PROBLEMS, MAX_QUOTED_CHARS, cut_text, quote
from tooli.errors import DefinitionError, closest_match
from tooli.pipeline.unknown_names import unknown_parameter_problem, with_option_value
from tooli.schema import RawText

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tooli.cli.argv import ArgumentParser, CommandLine
    from tooli.core.tool import Param, Tool
    from tooli.providers import CommandGroup


_REPLACEMENTS = {
    "--serve-mcp": ("mcp", "serve", "--transport"),
    "--export": ("export", "--target"),
    "--force": ("--yes",),
    "-h": ("--help",),
    "--page": (),
    "--offset": (),
}
"""Options of other programs and of older versions, and what to write in their place."""

_PAGES = "--limit N, and --cursor with meta.page.next_cursor of the page before"


def take_unknown_option(
    parser: ArgumentParser,
    convert: Callable[[Param, RawText], object],
    name: str,
    explicit: str,
    equals: str,
    rargs: list[str],
) -> None:
    """Report an unknown option; assign its value to the parameter with the closest name.

    `convert` converts text that `tooli.schema` cannot convert.
    """
    line, tool = parser.line, parser.tool
    line.typer_argv.append(f"{name}={explicit}" if equals else name)
    param_name = name.lstrip("-").replace("-", "_")
    if "_" in name or param_name in tool.param_names:
        line.has_other_spelling = True
    is_listed = len(line.problems) < MAX_PROBLEMS
    words = INTERFACE_WORDS["cli"]
    problem = unknown_parameter_problem(param_name, tool, words, suggest=is_listed)
    if name in _REPLACEMENTS and not problem.suggested_value:
        following = [explicit] if equals else rargs[-1:]
        problem = _replaced_option_problem(name, following, tool.cli_path)
        if not equals and problem.replacement[-1:] == (*following,):
            line.typer_argv.append(rargs.pop())
        line.has_replacement = not line.is_left_to_typer(tool)
        if problem.replacement == ("--yes",):
            problem = problem.replace(replacement=(), suggested_option=("yes", True))
    else:
        problem = with_option_value(problem, explicit if equals else None, rargs)
    line.problems.append(problem)
    nearest_param = tool.param(problem.suggested_value) if problem.suggested_value else None
    texts = [explicit] if equals else []
    if nearest_param is None:
        parser.has_unknown_option = True
    elif not nearest_param.is_flag:
        while len(texts) < nearest_param.nargs and rargs and rargs[-1][:1] != "-":
            arg = rargs.pop()
            line.typer_argv.append(arg)
            texts.append(arg)
    if nearest_param is not None and nearest_param.name not in line.arguments:
        if nearest_param.is_flag:
            line.arguments[nearest_param.name] = True
        elif len(texts) == nearest_param.nargs:
            line.arguments[nearest_param.name] = RawText(texts, convert)


def _replaced_option_problem(
    name: str, following: Sequence[str], path: tuple[str, ...] = ()
) -> Problem:
    """Return the problem for an option that has a counterpart.

    `following` is the next word, `path` the path of the command before the option.
    """
    words = _REPLACEMENTS[name]
    if len(words) > 1:
        has_value = following and following[0][:1] != "-"
        words = (*words, *following) if has_value else words[:-1]
    message = f"There is no option {name}; use {' '.join(words) or _PAGES}"
    if words == ("--help",):
        words = (*path, *words)
    return Problem("E1004", None, message, replacement=words)


def add_unknown_option(
    line: CommandLine, arg: str, rargs: Sequence[str], known: Sequence[str]
) -> None:
    """Report an unknown option before the command, or an unknown short option.

    `rargs` are the remaining words, the next one last. `known` are the known options.
    """
    name, equals, explicit = arg.partition("=")
    if name not in _REPLACEMENTS:
        line.problems.append(unknown_option_problem(name, known))
        return
    path = () if line.tool is None else line.tool.cli_path
    problem = _replaced_option_problem(name, [explicit] if equals else rargs[-1:], path)
    line.problems.append(problem)
    tools = [line.tool] if line.tool is not None else _read_signatures(line.group)
    line.has_replacement = any([not line.is_left_to_typer(tool) for tool in tools])


def _read_signatures(group: CommandGroup) -> Iterator[Tool]:
    for _, registration in group.walk():
        try:
            yield registration.read_signature()
        except DefinitionError:
            continue


def choice_problem(source: str, name: str, value: str, allowed: Sequence[str]) -> Problem:
    """Return the problem for an option whose value is not one of the allowed values."""
    suggestion, hint = _closest_match(value, allowed)
    message = f"{source}: {quote(value)} is not one of {', '.join(allowed)}{hint}"
    return Problem("E1007", name, message, suggestion or tuple(allowed))


def unknown_option_problem(name: str, known: Sequence[str]) -> Problem:
    """Return the problem for an option that is not one of the known options."""
    suggestion, hint = _closest_match(name, known)
    message = f"There is no option {cut_text(name, MAX_QUOTED_CHARS)}{hint}"
    return Problem("E1004", None, message, suggestion)


def extra_arguments_problem(words: tuple[str, ...]) -> Problem:
    """Return the problem for arguments that belong to no parameter."""
    message = f"Too many arguments: {cut_text(' '.join(words), MAX_QUOTED_CHARS)}"
    return Problem("E1005", None, message, words)


def unknown_framework_flag_problem(name: str, explicit: str | None, rargs: list[str]) -> Problem:
    """Return the problem for an unknown flag `--tooli-NAME`, which is never an argument."""
    known = {f"--tooli-{flag[2:]}": flag for flag in FLAGS if flag[:2] == "--"}
    problem = unknown_option_problem(name, [*known]).replace(code="E1007")
    if problem.suggested_value is None:
        return problem
    option, _, implied = FLAGS[known[problem.suggested_value]]
    suggested = (option, True if implied in (None, "+") else implied)
    problem = problem.replace(suggested_value=None, suggested_option=suggested)
    return with_option_value(problem, explicit, rargs)


def _closest_match(text: str, known: Sequence[str]) -> tuple[str | None, str]:
    """Return the closest known text, and the end of a message that suggests it."""
    suggestion = closest_match(text, known)
    return suggestion, f"; did you mean {suggestion}?" if suggestion else ""
