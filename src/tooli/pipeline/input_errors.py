"""Check bound arguments. One input error lists all problems and suggests a command line."""

from __future__ import annotations

import sys
from itertools import islice

from tooli.core._hot_tables import CALL_OPTIONS
from tooli.core.call import Problem
from tooli.core.option_words import spell_option, words_of
from tooli.core.tool import (
    MAX_MESSAGE_CHARS,
    MAX_PATH_CHARS,
    MAX_PROBLEMS,
    Handle,
    count_text,
    cut_message,
    cut_text,
    is_structured,
    join_path,
    unwrap_optional,
)
from tooli.errors import InputError
from tooli.pipeline.schema_checks import check_by_schema
from tooli.pipeline.unknown_names import unknown_parameter_problem
from tooli.pipeline.value_descriptions import describe_param
from tooli.schema import ConversionError, Converted, RawText

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param


def finish_binding(
    call: Call,
    bound: dict[str, Any],
    errors: Sequence[tuple[Param, ConversionError | None]],
    has_unknown: bool,
) -> JsonObject:
    """Return the arguments for the function, after the checks that few calls need.

    Args:
        call: The call.
        bound: The arguments that were converted.
        errors: The invalid parameters with their errors; the error of a missing value is None.
        has_unknown: True if arguments are not parameters of the tool.

    Raises an InputError for all problems, or an AuthError for a file that the caller may not use.
    """
    for problem in call.problems:
        if problem.denial is not None:
            raise problem.denial
    tool = call.tool
    problems: list[Problem] = []
    for param, error in errors:
        piped = _read_piped(param, call) if error is None and tool.has_handles else None
        if piped is not None:
            bound[param.name] = piped
        elif error is not None or _is_parsed(call):
            problems += conversion_problems(param, error)
    has_more = any([error is not None and error.has_more for _, error in errors])
    if tool.argument_check is not None:
        problems += check_by_schema(call, bound, {param.name for param, _ in errors})
    if call.caller.maybe_agent or tool.has_handles:
        found = list(islice(check_arguments(call, bound), MAX_PROBLEMS + 1))
        problems += found
        has_more = has_more or len(found) > MAX_PROBLEMS
    if problems or call.problems or (has_unknown and _unknown_names(call)):
        raise build_input_error(call, problems, has_more=has_more)
    return bound if tool.input_model is None else _bind_model(call, bound, *tool.input_model)


def _unknown_names(call: Call) -> list[str]:
    """Return the arguments that the tool does not have. An option that is null is not given."""
    check, unknown = call.tool.argument_check, call.arguments.keys() - call.tool.param_names
    if check is not None and check.takes_extra:
        return []
    given = [(n, v) for n, v in call.arguments.items() if n in unknown and type(v) is not Converted]
    return [name for name, value in given if value is not None or name not in CALL_OPTIONS]


def _bind_model(call: Call, bound: dict[str, Any], name: str, model: type[object]) -> JsonObject:
    """Return the arguments of a function that takes a model: the model and the injected values."""
    from tooli.schema.pydantic_bridge import validate

    fields = {param.name: bound.pop(param.name) for param in call.tool.command_params}
    try:
        return {name: validate(model, fields), **bound}
    except ConversionError as error:
        problems = list(model_problems(error))
        raise build_input_error(call, problems, has_more=error.has_more) from None


def _is_parsed(call: Call) -> bool:
    """True if the arguments of a call are known.

    Only Typer can read the line of a command that takes undeclared arguments. It has not read it if
    it rejects the line, or if a framework flag is invalid.
    """
    return not (call.tool.passes_arguments and call.caller.owns_process and call.problems)


def _read_piped(param: Param, call: Call) -> Any:
    """Return piped stdin as the value of a missing input argument; None if it cannot be used."""
    shape = unwrap_optional(param.shape)
    if param.kind != "argument" or not isinstance(shape, Handle) or call.options.stdin_consumed:
        return None
    return shape.default_when_missing(may_read_stdin=call.caller.owns_process) or None


# ------------------------------------------------------------------ problems


def conversion_problems(param: Param, error: ConversionError | None) -> Iterator[Problem]:
    """Yield the problems of one parameter: a missing value, or values that cannot be converted."""
    if error is None:
        # The message is the same on all interfaces. How to give the value is in the suggestion.
        shape = unwrap_optional(param.shape)
        if isinstance(shape, Handle):
            expected = shape.expected_value
        else:
            expected = describe_param(param, is_command_line=not is_structured(shape))
        yield Problem("E1002", param.name, f"{param.name!r} is required: {expected}")
        return
    for reason in (error, *error.other_errors):
        field = join_path(param.name, *reason.location)
        message = f"{field!r}: {reason.message}"
        if reason.suggested_value is not None and isinstance(reason.suggested_value, str):
            message += f"; did you mean {reason.suggested_value!r}?"
        yield Problem(reason.code, field, message, reason.suggested_value)


def model_problems(error: ConversionError) -> Iterator[Problem]:
    """Yield the problems of arguments that are invalid in combination."""
    for reason in (error, *error.other_errors):
        field = join_path(*reason.location) or None
        yield Problem("E1003", field, f"{field!r}: {reason.message}" if field else reason.message)


def build_input_error(
    call: Call, value_problems: Sequence[Problem], *, has_more: bool = False
) -> InputError:
    """Return one error for all problems of a call, with a suggestion.

    It lists at most `MAX_PROBLEMS`, and has the number of all problems. `has_more` is True if there
    may be more problems than those that were found, because the checks stopped early.
    """
    tool, unknown_names = call.tool, _unknown_names(call)
    unknown_problems = [
        unknown_parameter_problem(name, tool, words_of(call), value=call.arguments[name])
        for name in unknown_names[:MAX_PROBLEMS]
    ]
    unlisted_count = len(unknown_names) - len(unknown_problems)
    has_more = has_more or len(call.problems) > MAX_PROBLEMS  # the interface may have stopped early
    surface_problems = _exclude_known(call.problems, [*unknown_problems, *value_problems])
    known = {problem.suggested_value for problem in unknown_problems}
    known |= {problem.field for problem in call.problems if problem.code == "E1006"}
    misspelled = [p for p in value_problems if p.code == "E1002" and p.field in known]
    problems = [
        *[p for p in surface_problems if p.code != "E1005"],
        *unknown_problems,
        *sorted([p for p in value_problems if p not in misspelled], key=_typer_order(call)),
        *[p for p in surface_problems if p.code == "E1005"],
    ]
    count = len(problems) + unlisted_count
    problems = [_bound_problem(problem) for problem in problems[:MAX_PROBLEMS]]
    first = problems[0]
    # The arguments of agents are checked in this module, and most of them are right.
    from tooli.pipeline.corrected_calls import suggest_corrected_call

    return InputError(
        first.message + count_text(count, is_minimum=has_more),
        code=first.code,
        field=first.field,
        suggestion=suggest_corrected_call(call, problems, is_parsed=_is_parsed(call)),
        details=problem_details(problems, count, is_minimum=has_more),
    )


def problem_details(
    problems: Sequence[Problem], count: int, *, is_minimum: bool = False
) -> JsonObject:
    """Return the `details` of an error that lists problems; `count` is the number of all."""
    errors = [
        {**({} if p.field is None else {"field": p.field}), "code": p.code, "message": p.message}
        for p in problems
    ]
    if count == len(errors):
        return {"errors": errors}
    return {"errors": errors, "error_count": count, "is_minimum_count": is_minimum}


def _bound_problem(problem: Problem) -> Problem:
    """Return the problem with a message and a field of limited length."""
    message, field = problem.message, problem.field
    if len(message) <= MAX_MESSAGE_CHARS and (field is None or len(field) <= MAX_PATH_CHARS):
        return problem
    return problem.replace(
        message=cut_message(message),
        field=None if field is None else cut_text(field, MAX_PATH_CHARS),
    )


def _exclude_known(found: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """Return the problems in `found` that are not in `known`.

    A problem counts as known if `known` has one with the same code, for the same field or for a
    part of it.
    """
    known_fields: set[tuple[str, str]] = set()
    for problem in known:
        field = problem.field or ""
        while field and (problem.code, field) not in known_fields:
            known_fields.add((problem.code, field))
            field = field.rpartition(".")[0]
    return [problem for problem in found if (problem.code, problem.field) not in known_fields]


def _typer_order(call: Call) -> Callable[[Problem], tuple[int, int]]:
    """Return a sort key for the order of Typer: options as typed, then arguments, then the rest."""
    typed = {
        name: i
        for i, (name, value) in enumerate(call.arguments.items())
        if not isinstance(value, RawText) or value.is_cli_text
    }
    declared = {param.name: (i, param.kind) for i, param in enumerate(call.tool.params)}

    def key(problem: Problem) -> tuple[int, int]:
        name = (problem.field or "").partition(".")[0]
        position, kind = declared.get(name, (0, "option"))
        if kind == "argument":
            return 1, position
        return (0, typed[name]) if name in typed else (2, position)

    return key


# ------------------------------------------------------------------ checks of bound arguments

_MAX_DEPTH = 50
_TYPES_WITHOUT_TEXT = frozenset((int, float, bool, type(None)))


def check_arguments(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems with the bound arguments of a call that conversion does not find.

    Text from an agent must not contain control characters: terminals, logs and file systems act on
    them. `Verbatim` turns this check off.
    """
    if call.caller.maybe_agent:
        yield from _check_agent_values(call, bound)
    if call.tool.has_handles:
        yield from _check_streams(call, bound)


def _check_agent_values(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    for param in call.tool.params:
        name = param.name
        if name not in bound or name not in call.arguments:
            continue
        value = bound[name]
        kind = value.__class__
        if kind in _TYPES_WITHOUT_TEXT or (kind is str and value.isprintable()):
            continue
        from tooli.inputs.constraints import Verbatim, find_control_character  # few values need it

        if param.kind == "injected" or Verbatim in param.constraints:
            continue
        for path, text in _iterate_texts(value, (), 0):
            character = find_control_character(text)
            if character:
                field = join_path(name, *path)
                message = f"{field!r}: contains the control character {character}: remove it"
                yield Problem("E1030", field, message)


def _iterate_texts(
    value: Any, path: tuple[Any, ...], depth: int
) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield every text with non-printable characters inside a value, with its path."""
    if isinstance(value, str):
        if not value.isprintable():
            yield path, value
    elif depth > _MAX_DEPTH or isinstance(value, (int, float, bytes, type(None))):
        return
    elif isinstance(value, dict):
        items: Any = value.items()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        for key, item in items:
            yield from _iterate_texts(key, path, depth + 1)
            yield from _iterate_texts(
                item, (*path, key if str(key).isprintable() else "?"), depth + 1
            )
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts: Any = value  # pyright: ignore[reportUnknownVariableType]
        for i, item in enumerate(parts):
            yield from _iterate_texts(item, (*path, i), depth + 1)
    elif hasattr(value, "__fspath__"):
        yield from _iterate_texts(value.__fspath__(), path, depth)
    elif hasattr(value, "tooli_location"):
        yield from _iterate_texts(value.tooli_location, path, depth)
    elif not hasattr(value, "tooli_json"):
        fields = getattr(value.__class__, "__dataclass_fields__", ())  # a dataclass may have slots
        attributes: Any = {name: getattr(value, name, None) for name in fields}
        yield from _iterate_texts(attributes or getattr(value, "__dict__", None), path, depth + 1)


def _check_streams(call: Call, bound: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each argument that names stdin or stdout but cannot use it.

    Also pass the option `nul` on to the inputs.
    """
    readers: list[str] = []
    for name, value in bound.items():
        for item in value if isinstance(value, (list, tuple, set, frozenset)) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if getattr(item, "is_stdin", False):  # pyright: ignore[reportUnknownArgumentType]
                readers.append(name)
                yield from _check_stdin(call, name)
            elif getattr(item, "is_stdout", False):  # pyright: ignore[reportUnknownArgumentType]
                yield from _check_stdout(call, name)
            if call.options.nul and hasattr(item, "nul"):  # pyright: ignore[reportUnknownArgumentType]
                item.nul = True  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    if len(readers) > 1:
        message = f"stdin can be read only once, and {readers[0]!r} reads it"
        yield Problem("E1035", readers[-1], f"{readers[-1]!r}: {message}")


def _check_stdin(call: Call, name: str) -> Iterator[Problem]:
    stdin: Any = sys.stdin
    if call.caller.is_remote:
        message = "stdin is not available here: give a path, a URL, or the content"
    elif call.options.stdin_consumed:
        message = "stdin can be read only once, and an option reads it"
    elif stdin is None:
        message = "stdin is closed"
    elif call.options.no_input and stdin.isatty():
        no_input = spell_option(call, "no_input")
        message = f"stdin is a terminal, which {no_input} does not read: give a path or a URL"
    else:
        return
    yield Problem("E1035", name, f"{name!r}: {message}")


def _check_stdout(call: Call, name: str) -> Iterator[Problem]:
    """Yield a problem if stdout is reserved for the answer of the call.

    A command whose printed text is its result may write to stdout.
    """
    if call.tool.returns_printed_text or call.options.dry_run:
        return
    if call.options.is_machine_mode or call.caller.is_remote:
        text_mode = "" if call.caller.is_remote else ", or use --text"
        message = f"stdout is reserved for the answer: name a file{text_mode}"
        yield Problem("E1036", name, f"{name!r}: {message}")
