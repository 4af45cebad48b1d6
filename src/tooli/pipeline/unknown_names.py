"""Errors for names that do not exist: commands, parameters, framework options.

Each suggests the closest name.
"""

from __future__ import annotations

from tooli.core._hot_tables import CALL_OPTIONS, FLAGS
from tooli.core.call import Problem, SuggestedCall
from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.errors import InputError, Suggestion
from tooli.pipeline.argv_builder import is_short
from tooli.similar_names import closest_match, is_near

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from tooli.core.option_words import InterfaceWords
    from tooli.core.tool import Param, Tool
    from tooli.providers import CommandGroup


def unknown_parameter_problem(
    name: str, tool: Tool, words: InterfaceWords, *, suggest: bool = True, value: object = True
) -> Problem:
    """Return the problem of an unknown parameter, with the closest name if `suggest` is True.

    The closest name may be that of a framework option, which then gets the value.
    """
    name = cut_text(name, MAX_QUOTED_CHARS)
    param = tool.param(name)
    if param is not None and param.kind == "argument":
        message = f"{name!r} is an argument: give it by position, without a name"
        return Problem("E1004", name, message, name)
    message = f"There is no parameter {name!r}"
    if not suggest:
        return Problem("E1004", name, message)
    known = _known_names(tool, words)
    closest = closest_match(name, known) or ""
    meant = known.get(closest)
    if isinstance(meant, str):
        flag = closest_flag(f"--{name}", tool.param(meant)) if words.is_command_line else None
        shown = meant if flag is None else spelling_of(flag)
        return Problem("E1004", name, f"{message}; did you mean {shown!r}?", meant)
    if meant is None:
        return Problem("E1004", name, message)
    if name == closest:
        return _misplaced_option_problem(name, words, value)
    option, implied = meant
    suggested_option = (option, value if implied is None else implied)
    return Problem(
        "E1004", name, f"{message}; did you mean {closest!r}?", suggested_option=suggested_option
    )


def _known_names(tool: Tool, words: InterfaceWords) -> dict[str, str | tuple[str, Any]]:
    """Return the names that a caller may mean: of parameters, and of framework options.

    The names that a caller writes come first. On a command line these are the flags: a flag may
    have the name of another parameter. An option has the value that it implies.
    """
    params = [param for param in tool.params if param.name in tool.param_names]
    is_line = words.is_command_line
    by_flag = {
        spelling_of(flag): param.name
        for param in reversed(tool.public_params)
        for flag in ((*param.flags, *param.negations) if is_line else param.flags)
        if is_line or flag[:2] == "--"
    }
    by_name = {param.name: param.name for param in params}
    first, last = (by_flag, by_name) if is_line else (by_name, by_flag)
    known: dict[str, str | tuple[str, Any]] = dict(first)
    for name, meant in (*words.spellings().items(), *last.items()):
        known.setdefault(name, meant)
    return known


def is_certain_name(
    name: str, meant: str | tuple[str, Any], tool: Tool, words: InterfaceWords
) -> bool:
    """True if a name is certainly a misspelling of a parameter or an option, and of no other.

    An option is given as a tuple with its name. Nothing is certain about names that differ from
    each other in one letter.
    """
    known = _known_names(tool, words)
    near = [spelling for spelling in known if is_near(name, spelling)]
    siblings = [other for other in known if any([is_near(other, spelling) for spelling in near])]
    found = [known[spelling] for spelling in siblings]
    if isinstance(meant, str):
        return bool(found) and all([each == meant for each in found])
    return len(found) == 1 and isinstance(found[0], tuple) and found[0][0] == meant[0]


def closest_flag(name: str, param: Param | None) -> str | None:
    """Return the flag of a parameter that is closest to an unknown one."""
    flags = () if param is None else (*param.flags, *param.negations)
    return closest_match(name, flags) or next(iter(flags), None)


def is_negation(name: str, param: Param) -> bool:
    """True if a name is closer to an option that unsets a flag, such as `--no-color`."""
    spellings = {spelling_of(flag): False for flag in param.flags}
    spellings |= {spelling_of(flag): True for flag in param.negations}
    closest = closest_match(name, spellings)
    return closest is not None and spellings[closest]


def spelling_of(flag: str) -> str:
    """Return a flag as the name of a parameter is written."""
    return flag.lstrip("-").replace("-", "_")


def _misplaced_option_problem(name: str, words: InterfaceWords, value: object) -> Problem:
    """Return the problem of a framework option among the arguments.

    Its value has the wrong type.
    """
    if words.is_command_line:  # a callback has a flag of that name
        flag = f"--tooli-{name.replace('_', '-')}"
        return Problem(
            "E1004", name, f"There is no parameter {name!r}; the framework's option is {flag}"
        )
    kind = CALL_OPTIONS[name][0]
    corrected: object = None
    if kind == "flag":
        expected, corrected = (
            "true or false",
            {"true": True, "false": False}.get(str(value).lower()),
        )
    elif kind in ("number", "count"):
        expected = "a whole number"
        corrected = int(value) if isinstance(value, str) and value.isdecimal() else None
    else:
        expected = "text"
    message = f"The option {name!r} must be {expected}, not {str(value)!r:.60}"
    option = None if corrected is None else (name, corrected)
    return Problem("E1004", name, message, suggested_option=option)


def with_option_value(problem: Problem, explicit: str | None, rargs: list[str]) -> Problem:
    """Return the problem of a misspelled framework flag, with the value of the flag.

    The value is `explicit`, or the next word of the line, which is taken from `rargs`.
    """
    if problem.suggested_option is None:
        return problem
    name, implied = problem.suggested_option
    takes_value = any(
        [
            arity == 1 and constant is None
            for option, arity, constant in FLAGS.values()
            if option == name
        ]
    )
    if not takes_value or implied is not True:
        is_negated = (explicit or "").lower() in ("false", "no", "off", "0")
        return problem.replace(suggested_option=None) if is_negated else problem
    if explicit is None and (not rargs or rargs[-1][:1] == "-"):
        return problem.replace(suggested_option=None)
    value = rargs.pop() if explicit is None else explicit
    return problem.replace(suggested_option=(name, value))


# ------------------------------------------------------------------ commands


def unknown_command_error(
    group: CommandGroup,
    name: str,
    path: Sequence[str],
    *,
    builtins: Collection[str] = (),
    words: tuple[Sequence[str], Sequence[str]] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> InputError:
    """Return the error for an unknown command, with the closest name.

    `path` are the groups before the unknown name. `builtins` are names of built-in commands.
    `words` are the words of a command line before and after the name, and `arguments` those of a
    call, if they are known.
    """
    base, at, version = name.rpartition("@")
    if at and base in group.commands:
        return unknown_version_error(base, version, _versions_of(group, base))
    known = _visible_commands(group)
    name = cut_text(name, MAX_QUOTED_CHARS)
    suggested = closest_command(name, [*group.commands, *group.groups, *known])
    suggested = suggested or closest_command(name, sorted(builtins))
    hint = f"; did you mean {suggested!r}?" if suggested else ""
    suggestion = Suggestion(
        "retry_with_modified_input",
        f"Use {suggested!r}." if suggested else "Name one of the commands.",
    )
    if suggested:
        names = suggested.split(".")
        before, after = words or (path, ())
        line = (*before, *names, *(after if is_short([*before, *after]) else ()))
        suggestion.target = SuggestedCall((*path, *names), arguments, words=line)
    problems = [problem for mount in group.mounts for problem in mount.causes_of_absence(name)]
    causes = "".join([f"; {problem.message}" for problem in problems])
    return InputError(
        f"There is no command {name!r}{hint}{causes}",
        code="E1001",
        suggestion=suggestion,
        details={"commands": known},
    )


def unknown_version_error(name: str, version: str, known: Sequence[str]) -> InputError:
    """Return the error for a version that a command does not have. It lists those there are."""
    there_are = f"it has {', '.join(known)}" if known else "it has no versions"
    return InputError(
        f"{name!r} has no version {cut_text(version, 64)!r}: {there_are}",
        code="E1001",
        suggestion=Suggestion(
            "retry_with_modified_input",
            f"Use {known[0]!r}, or leave out the version." if known else "Leave out the version.",
        ),
        details={"versions": list(known)},
    )


def _versions_of(group: CommandGroup, name: str) -> list[str]:
    registration = group.commands[name]
    own = registration.kwargs.get("version")
    return list(getattr(registration, "versions", [own] if own else []))


def closest_command(name: str, candidates: Sequence[str]) -> str | None:
    """Return the command whose name is closest to an unknown one, or None if none is close."""
    spelled = name.replace("_", "-").lower()
    if spelled != name and spelled in candidates:
        return spelled
    suggested = closest_match(spelled, candidates)
    return None if suggested == name else suggested


def missing_command_error(group: CommandGroup) -> InputError:
    """Return the error for a command line without a command."""
    return InputError(
        "No command was given.",
        code="E1001",
        suggestion=Suggestion(
            "retry_with_modified_input", "Name one of the commands in details.commands."
        ),
        details={"commands": _visible_commands(group)},
    )


def _visible_commands(group: CommandGroup) -> list[str]:
    commands = group.walk()
    return [".".join(path) for path, command in commands if not command.kwargs.get("hidden")]
