"""Problems with options: unknown names, values that are not allowed, and the closest ones."""

from __future__ import annotations

from tooli.core import BUILTIN_COMMANDS
from tooli.core._hot_tables import FLAGS
from tooli.core.call import Problem
from tooli.core.option_words import INTERFACE_WORDS, option_argv
from tooli.core.options import OPTIONS
from tooli.core.tool import MAX_PROBLEMS, MAX_QUOTED_CHARS, Choice, cut_text, item_shape, quote
from tooli.errors import DefinitionError
from tooli.pipeline.unknown_names import (
    closest_command,
    is_negation,
    unknown_parameter_problem,
    with_option_value,
)
from tooli.schema import RawText
from tooli.similar_names import closest_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from typing import Any

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


def take_settings_flag(
    line: CommandLine, name: str, explicit: str | None, rargs: list[str]
) -> None:
    """Take a flag that sets a field of the app's settings object, and its value."""
    assert line.app_settings is not None
    param, is_positive = line.app_settings.flags[name]
    if param.is_flag:
        if explicit is not None:
            line.problems.append(Problem("E1007", param.name, f"{name} takes no value"))
        line.settings_texts[param.name] = RawText([str(is_positive).lower()])
    elif explicit is None and not rargs:
        line.problems.append(Problem("E1007", param.name, f"{name} needs a value"))
    else:
        text = explicit if explicit is not None else line.take_value(rargs, name)
        known = line.settings_texts.get(param.name)
        before = known.texts if known is not None and param.is_multiple else ()
        line.settings_texts[param.name] = RawText([*before, text])


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
    if "." in name and _take_misspelled_object(parser, name, explicit, equals, rargs):
        return
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
    if not problem.suggested_value and problem.suggested_option is None and not equals:
        problem = problem.replace(hides_value=bool(rargs) and rargs[-1][:1] != "-")
    line.problems.append(problem)
    nearest_param = tool.param(problem.suggested_value) if problem.suggested_value else None
    if nearest_param is None:
        parser.has_unknown_option = True
    else:
        _take_value(parser, convert, nearest_param, param_name, explicit, equals, rargs)


def _take_value(
    parser: ArgumentParser,
    convert: Callable[[Param, RawText], object],
    param: Param,
    typed: str,
    explicit: str,
    equals: str,
    rargs: list[str],
) -> None:
    """Take the value of a parameter whose option is not spelled as it should be."""
    arguments = parser.line.arguments
    if param.is_flag:
        arguments[param.name] = not is_negation(typed, param)
        return
    texts = [explicit] if equals else []
    while len(texts) < param.nargs and rargs and rargs[-1][:1] != "-":
        texts.append(rargs.pop())
        parser.line.typer_argv.append(texts[-1])
    if len(texts) < param.nargs:
        return
    if param.kind == "argument":
        parser.named.setdefault(param.name, []).extend(texts)
        arguments[param.name] = RawText(parser.named[param.name], convert)
    else:
        parser.add_texts(param, texts)


def _take_misspelled_object(
    parser: ArgumentParser, name: str, explicit: str, equals: str, rargs: list[str]
) -> bool:
    """Take a dotted flag of an object whose name is misspelled; return False if there is none."""
    typed, _, path = name.partition(".")
    flag = closest_match(typed, list(parser.structured_flags))
    if flag is None:
        return False
    param = parser.structured_flags[flag]
    message = f"There is no parameter {typed.lstrip('-')!r}; did you mean {param.name!r}?"
    problem = Problem("E1004", typed.lstrip("-").replace("-", "_"), message, param.name)
    parser.line.problems.append(problem)
    parser.take_dotted_option(param, path, explicit, equals, rargs)
    return True


def take_unknown_letter(
    parser: ArgumentParser,
    convert: Callable[[Param, RawText], object],
    i: int,
    arg: str,
    rargs: list[str],
    before: Mapping[str, Any],
) -> bool:
    """Report an unknown short option, which is the letter `i` of an argument.

    If the argument is a long option with one hyphen, such as `-limit`, take it as this option and
    return True. `before` are the arguments before the flags of the letters before.
    """
    name, equals, explicit = arg.partition("=")
    found = parser.flags.get(f"-{name}")
    is_reserved = f"-{name}" in parser.reserved_flags
    framework_flag = None if is_reserved else FLAGS.get(f"-{name}".replace("--tooli-", "--", 1))
    parser.has_unknown_option = parser.has_unknown_option or found is None
    if i > 1 and len(name) > 3:  # rather a word than short flags
        parser.line.arguments.clear()
        parser.line.arguments.update(before)
    if len(name) < 3 or (found is None and framework_flag is None):
        known = [flag for flag in parser.flags if len(flag) == 2]
        following = () if equals else rargs
        add_unknown_option(parser.line, f"{arg[0]}{arg[i]}", following, known)
        return False
    parser.line.typer_argv.append(arg)
    field = name[1:].replace("-", "_")
    problem = Problem("E1004", field, f"There is no option {name}; did you mean -{name}?")
    if found is not None:
        parser.line.problems.append(problem.replace(suggested_value=found[0].name))
        _take_value(parser, convert, found[0], field, explicit, equals, rargs)
    elif framework_flag is not None:
        option, _, implied = framework_flag
        suggested = (option, True if implied in (None, "+") else implied)
        problem = problem.replace(field=option, suggested_option=suggested)
        problem = with_option_value(problem, explicit if equals else None, rargs)
        parser.line.problems.append(problem)
    return True


def valued_flag_problem(flag: str, typed: str, value: str) -> Problem:
    """Return the problem of a framework flag with a value that it does not take."""
    option, _, implied = FLAGS[flag]
    problem = Problem("E1007", option, f"{typed} takes no value")
    if value.lower() in ("true", "yes", "on", "1"):
        set_value = True if implied in (None, "+") else implied
        return problem.replace(suggested_option=(option, set_value))
    return problem


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
        is_last = equals or not rargs or rargs[-1][:1] == "-"
        line.problems.append(unknown_option_problem(name, known).replace(hides_value=not is_last))
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


def unknown_format_problem(line: CommandLine, value: str, formats: Sequence[str]) -> Problem | None:
    """Return the problem of a word after `--schema` that is not a format; None for an argument.

    A word that looks like the name of a format is one, unless the command accepts this word.
    """
    is_extra = any(problem.code == "E1005" for problem in line.problems)
    params = () if line.tool is None else line.tool.params
    shapes = [item_shape(param.shape) for param in params if param.kind == "argument"]
    is_accepted = any(isinstance(shape, Choice) and value in shape.labels for shape in shapes)
    is_name = value.replace("-", "").replace("_", "").isalnum() and not is_accepted
    if is_extra or is_name or closest_match(value, formats):
        problem = choice_problem("--schema", "schema", value, formats)
        if is_extra:
            return problem
        return problem.replace(message=f"{problem.message} (an argument goes before --schema)")
    return None


def unknown_option_problem(name: str, known: Sequence[str]) -> Problem:
    """Return the problem for an option that is not one of the known options."""
    suggestion, hint = _closest_match(name, known)
    message = f"There is no option {cut_text(name, MAX_QUOTED_CHARS)}{hint}"
    return Problem("E1004", None, message, suggestion)


def extra_arguments_problem(
    line: CommandLine, words: tuple[str, ...], positional: Sequence[str]
) -> Problem:
    """Return the problem for arguments that belong to no parameter.

    In an app with one command, the first one may be the misspelled name of a command.
    """
    message = f"Too many arguments: {cut_text(' '.join(words), MAX_QUOTED_CHARS)}"
    problem = Problem("E1005", None, message, words)
    only, tool = line.group.only_command, line.tool
    if only is None or tool is None or line.is_left_to_typer(tool):
        return problem
    first = positional[0]
    closest = closest_command(first, [only.command_name, *sorted(BUILTIN_COMMANDS)])
    if closest is None:
        return problem
    rest = [*line.typer_argv]
    rest.remove(first)
    line.has_replacement = True
    return problem.replace(
        message=f"{message}; did you mean the command {closest!r}?",
        replacement=(closest, *rest, *option_argv(line.options, None)),
    )


def is_known_flag(line: CommandLine, word: str) -> bool:
    """True if a word is a flag of the framework, of the command or of a callback."""
    word = word.partition("=")[0]
    params = () if line.tool is None else line.tool.params
    own = {flag for param in params for flag in (*param.flags, *param.negations)}
    return word in own or word in line.parent_flags or word.replace("--tooli-", "--", 1) in FLAGS


_PROTECTING_OPTIONS = frozenset(
    [option.name for option in OPTIONS if option.group in ("confirm", "run")]
)


def check_flag_values(
    parser: ArgumentParser, find_flag: Callable[[str, Container[str]], str | None]
) -> None:
    """Report options whose value is a framework flag that protects the call, such as `--dry-run`.

    Such a flag is rarely meant as text, and without it, the call has effects. Typer takes any next
    word as the value, so lines that Typer parses are not checked.
    """
    line, tool = parser.line, parser.tool
    if line.is_left_to_typer(tool):
        return
    for field, name, value in line.flag_values:
        flag = find_flag(value.partition("=")[0], parser.reserved_flags)
        if flag is None or FLAGS[flag][0] not in _PROTECTING_OPTIONS:
            continue
        param = tool.param(field)
        names = [name, *(param.flags if param is not None else ())]
        long_name = next((found for found in names if found[:2] == "--"), None)
        literal = f"{name}{value}" if long_name is None else f"{long_name}={value}"
        message = (
            f"Option {name} needs a value, and {value} is an option itself; "
            f"write {literal} if it is the value"
        )
        line.problems.append(Problem("E1007", field or None, message, hides_value=True))


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
