"""Input errors: messages for every problem with a call, and a corrected command line."""

from __future__ import annotations

import sys

from tooli.core.call import Problem
from tooli.core.tool import (
    MISSING,
    Choice,
    Handle,
    ListOf,
    PathShape,
    Scalar,
    Structured,
    is_handle,
    is_structured,
    unwrap_optional,
)
from tooli.errors import InputError, Suggestion, closest_match
from tooli.schema.convert import ConversionError, Converted, RawText

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.tool import Param, Shape, Tool
    from tooli.providers.local import CommandGroup


def conversion_problems(param: Param, error: ConversionError | None) -> Iterator[Problem]:
    """Yield the problems of one parameter: a missing value, or values that cannot be converted."""
    if error is None:
        yield Problem("E1002", param.name, f"{param.name!r} is required: {describe_param(param)}")
        return
    for reason in (error, *error.other_errors):
        field = ".".join([param.name, *map(str, reason.location)])
        message = f"{field!r}: {reason.message}"
        if reason.suggested_value is not None and isinstance(reason.suggested_value, str):
            message += f"; did you mean {reason.suggested_value!r}?"
        yield Problem(reason.code, field, message, reason.suggested_value)


def model_problems(error: ConversionError) -> Iterator[Problem]:
    """Yield the problems of arguments that are invalid in combination."""
    for reason in (error, *error.other_errors):
        field = ".".join(map(str, reason.location)) or None
        yield Problem("E1003", field, f"{field!r}: {reason.message}" if field else reason.message)


def unknown_parameter_problem(name: str, tool: Tool) -> Problem:
    """Return the problem of an unknown parameter, with the closest name."""
    if name in tool.param_names:
        message = f"{name!r} is an argument: give it by position, without a name"
        return Problem("E1004", name, message, name)
    names_by_word = {name: name for name in tool.param_names}
    for param in tool.public_params:
        for flag in param.flags:
            names_by_word.setdefault(flag.lstrip("-").replace("-", "_"), param.name)
    suggested = names_by_word.get(closest_match(name, names_by_word) or "")
    hint = f"; did you mean {suggested!r}?" if suggested else ""
    return Problem("E1004", name, f"There is no parameter {name!r}{hint}", suggested)


def build_input_error(call: Call, wrong: Sequence[Problem]) -> InputError:
    """Return one error for all problems of a call, with a suggestion."""
    tool = call.tool
    unknown_problems = [
        unknown_parameter_problem(name, tool)
        for name, value in call.arguments.items()
        if name not in tool.param_names and type(value) is not Converted
    ]
    surface_problems = (
        _exclude_known(call.problems, [*unknown_problems, *wrong]) if call.problems else []
    )
    suggested_names = {problem.suggested_value for problem in unknown_problems}
    missing = [p for p in wrong if p.code == "E1002" and p.field in suggested_names]
    wrong = sorted([p for p in wrong if p not in missing], key=_typer_order(call))
    extra_words = [p for p in surface_problems if p.code == "E1005"]
    problems = [
        *[p for p in surface_problems if p.code != "E1005"],
        *unknown_problems,
        *wrong,
        *extra_words,
    ]
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    details = [
        {"field": p.field, "code": p.code, "message": p.message}
        if p.field is not None
        else {"code": p.code, "message": p.message}
        for p in problems
    ]
    return InputError(
        first.message + more,
        code=first.code,
        field=first.field,
        suggestion=_suggest_command(call, problems),
        details={"errors": details},
    )


def _exclude_known(found: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """Return the problems in `found` that are not in `known`.

    A problem counts as known if `known` has one with the same code, for the same field or for a
    part of it.
    """
    places: set[tuple[str, str]] = set()
    for problem in known:
        at = problem.field or ""
        while at and (problem.code, at) not in places:
            places.add((problem.code, at))
            at = at.rpartition(".")[0]
    return [problem for problem in found if (problem.code, problem.field) not in places]


def unknown_command_error(group: CommandGroup, name: str, typed: Sequence[str]) -> InputError:
    """Return the error for an unknown command, with the closest name."""
    known = [
        ".".join(path)
        for path, registration in group.walk()
        if not registration.settings.get("hidden")
    ]
    suggested = closest_match(name.replace("_", "-"), [*group.commands, *group.groups, *known])
    hint = f"; did you mean {suggested!r}?" if suggested else ""
    if suggested is not None:
        argv = [*typed, *suggested.split(".")]
        suggestion = Suggestion(
            "retry_with_modified_input",
            f"Use {suggested!r}.",
            argv=argv,
        )
    else:
        suggestion = Suggestion("retry_with_modified_input", "Name one of the commands.")
    return InputError(
        f"There is no command {name!r}{hint}",
        code="E1001",
        suggestion=suggestion,
        details={"commands": known},
    )


def missing_command_error(group: CommandGroup) -> InputError:
    """Return the error for a command line without a command."""
    known = [
        ".".join(path)
        for path, registration in group.walk()
        if not registration.settings.get("hidden")
    ]
    return InputError(
        "No command was given.",
        code="E1001",
        suggestion=Suggestion(
            "retry_with_modified_input", "Name one of the commands; --help-agent describes them."
        ),
        details={"commands": known},
    )


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


def _suggest_command(call: Call, problems: Sequence[Problem]) -> Suggestion:
    """Return a corrected command line, with placeholders `<name>` for unknown values."""
    tool = call.tool
    arguments: dict[str, Any] = {
        k: v.value if type(v) is Converted else v
        for k, v in call.arguments.items()
        if k in tool.param_names
    }
    is_certain = True
    for problem in problems:
        field = problem.field or ""
        head, _, rest = field.partition(".")
        if problem.code == "E1004":
            value = call.arguments.get(head)
            if problem.suggested_value and value is not None:
                is_convertible = _is_convertible(tool, problem.suggested_value, value)
                arguments.setdefault(
                    problem.suggested_value,
                    value if is_convertible else _Placeholder(problem.suggested_value),
                )
            is_certain = is_certain and problem.suggested_value is not None
        elif problem.code == "E1005":
            continue
        elif not head or problem.code in _FRAMEWORK_OPTION_CODES:
            is_certain = False
        elif problem.suggested_value is not None and not rest and _takes_single_value(tool, head):
            arguments[head] = problem.suggested_value
        elif (
            repaired := _replace_item(arguments.get(head), rest, problem.suggested_value)
        ) is not None:
            arguments[head] = repaired
        elif head in tool.param_names:
            param = tool.param(head)
            arguments[head] = True if param is not None and param.is_flag else _Placeholder(head)
    for param in tool.public_params:
        if param.required and param.name not in arguments:
            arguments[param.name] = _Placeholder(param.name)
        elif is_handle(param.shape) and arguments.get(param.name) is not None:
            arguments[param.name] = _handle_argument(param, arguments[param.name])
        elif is_structured(param.shape) and param.name in arguments and _has_secret_parts(param):
            arguments[param.name] = _Placeholder(param.name)
    has_placeholders = any(isinstance(value, _Placeholder) for value in arguments.values())
    argv = [*(call.caller.prog or (tool.app,)), *tool.cli_path, *build_argv(tool, arguments)]
    if has_placeholders:
        applicability = "has_placeholders"
    else:
        applicability = "machine_applicable" if is_certain else "maybe_incorrect"
    return Suggestion(
        "retry_with_modified_input",
        _build_fix(tool, problems),
        applicability=applicability,
        argv=argv,
    )


_FRAMEWORK_OPTION_CODES = ("E1007", "E1040", "E1041", "E1042")
"""Codes of problems with framework options. The suggested command line omits these options."""


def _handle_argument(param: Param, value: Any) -> Any:
    """Return the location of an input or a secret; a placeholder if it was given by value."""
    if isinstance(value, _Placeholder):
        return value
    try:
        converted = _convert(param, value)
    except ConversionError:
        return _Placeholder(param.name)
    names_by_word = [
        item.tooli_cli_text for item in (converted if param.is_multiple else [converted])
    ]
    return _Placeholder(param.name) if None in names_by_word else names_by_word


def _has_secret_parts(param: Param) -> bool:
    """True if a part of the parameter is a secret. Suggestions then do not contain its value."""
    if "tooli.inputs.secret" not in sys.modules:  # without this module there is no secret
        return False
    from tooli.schema.json_schema import param_schema

    return "'writeOnly': True" in repr(param_schema(param))


def _takes_single_value(tool: Tool, name: str) -> bool:
    """True if a suggestion for this parameter replaces its whole value."""
    param = tool.param(name)
    return param is not None and not param.is_multiple and param.nargs == 1


def _replace_item(value: Any, index: str, suggested_value: Any) -> list[Any] | None:
    """Return a list with one item replaced; None if there is no such item."""
    items: Any = value.texts if isinstance(value, RawText) else value
    if suggested_value is None or type(items) not in (list, tuple) or not index.isdigit():
        return None
    return [*items[: int(index)], suggested_value, *items[int(index) + 1 :]]


def _is_convertible(tool: Tool, name: str, value: Any) -> bool:
    param = tool.param(name)
    try:
        return param is not None and _convert(param, value) is not None
    except ConversionError:
        return False


def _convert(param: Param, value: Any) -> Any:
    from tooli.schema.convert_values import convert  # most usage errors do not need it

    return convert(param, value)


class _Placeholder:
    def __init__(self, name: str) -> None:
        self.text = f"<{name}>"


def _build_fix(tool: Tool, problems: Sequence[Problem]) -> str:
    parts: list[str] = []
    for problem in problems:
        param = tool.param((problem.field or "").partition(".")[0])
        if problem.code == "E1004" and (problem.field is None or problem.field in tool.param_names):
            parts.append(f"{problem.message}.")
        elif problem.code == "E1004":
            known = ", ".join(p.name for p in tool.public_params) or "none"
            parts.append(
                f"Use {problem.suggested_value!r} instead of {problem.field!r}."
                if problem.suggested_value
                else f"Leave {problem.field!r} out; the parameters are: {known}."
            )
        elif problem.code == "E1005":
            parts.append("Remove the extra arguments.")
        elif problem.code in _FRAMEWORK_OPTION_CODES:
            parts.append(problem.message if problem.message[-1] == "?" else f"{problem.message}.")
        elif param is not None:
            parts.append(f"Give {param.name!r} {describe_param(param)}.")
        elif problem.code == "E1003":
            parts.append("Change the arguments so that they fit together.")
        else:
            parts.append("Give the option its value.")
    return " ".join(dict.fromkeys(parts))


def describe_param(param: Param) -> str:
    """Describe the values of a parameter, with its bounds."""
    low, high = param.settings.get("min"), param.settings.get("max")
    if low is not None and high is not None:
        return f"{describe_shape(param.shape)} from {low} to {high}"
    if low is not None:
        return f"{describe_shape(param.shape)}, {low} or more"
    return (
        describe_shape(param.shape)
        if high is None
        else f"{describe_shape(param.shape)}, {high} at most"
    )


def describe_shape(shape: Shape) -> str:
    """Describe the values of a shape."""
    shape = unwrap_optional(shape)
    if isinstance(shape, Scalar):
        return {str: "text", int: "an integer", float: "a number", bool: "true or false"}[
            shape.type
        ]
    if isinstance(shape, PathShape):
        return "a path"
    if isinstance(shape, Choice):
        return "one of " + ", ".join(shape.labels)
    if isinstance(shape, ListOf):
        return f"one or more values, each {describe_shape(shape.item)}"
    if isinstance(shape, Structured):
        return "a JSON object (or @file)"
    if isinstance(shape, Handle):
        return shape.expected_text
    name = getattr(getattr(shape, "annotation", None), "__name__", None)
    return f"a {name}" if name else "a value"


# ------------------------------------------------------------------ a call as a command line


def build_argv(tool: Tool, arguments: Mapping[str, Any], *flags: str) -> list[str]:
    """Return the command-line arguments after the command: positional ones, then options.

    `flags` are framework flags to add to the options.
    """
    positional = _positional_words(tool, arguments)
    optional: list[str] = []
    for param in tool.public_params:
        if param.kind == "option" and param.name in arguments:
            value = arguments[param.name]
            if not _is_default(param, value):
                optional += _option_words(param, value)
    optional += flags
    if any(text[:1] == "-" and len(text) > 1 for text in positional):
        return [*optional, "--", *positional]
    return [*positional, *optional]


def _is_default(param: Param, value: Any) -> bool:
    return type(value) is type(param.default) and value == param.default


def _positional_words(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return the positional arguments, up to the last one that is needed."""
    names_by_word: list[str] = []
    needed_count = 0
    for param in tool.public_params:
        if param.kind == "argument":
            value = arguments.get(param.name, param.default)
            names_by_word += _value_words(value)
            if not _is_default(param, value):
                needed_count = len(names_by_word)
    return names_by_word[:needed_count]


def _option_words(param: Param, value: Any) -> list[str]:
    """Return an option as command-line arguments."""
    if param.is_flag and isinstance(value, bool):
        return list((param.flags if value else param.negations)[:1])
    if not param.flags:
        return []
    flag = max(param.flags, key=len)
    if param.settings.get("count") and isinstance(value, int):
        return [flag] * min(value, 9)
    texts = _value_words(value)
    if param.nargs > 1 and len(texts) == param.nargs:
        return [flag, *texts]
    names_by_word: list[str] = []
    for text in texts:
        names_by_word += [f"{flag}={text}"] if text[:1] == "-" else [flag, text]
    if isinstance(value, RawText):
        for path, parts in (value.dotted or {}).items():
            for text in parts:
                names_by_word += [f"{flag}.{path}", text]
    return names_by_word


def _value_words(value: Any) -> list[str]:
    """Return a value as command-line arguments. None results in an empty list."""
    if isinstance(value, RawText):
        return list(value.texts)
    if isinstance(value, _Placeholder):
        return [value.text]
    if value is None or value is MISSING:
        return []
    if type(value) in (list, tuple, set, frozenset):
        return [text for item in value for text in _value_words(item)]
    if type(value) in (str, int, float):
        return [str(value)]
    if hasattr(value, "tooli_cli_text"):  # the location of a secret, not its value
        return [value.tooli_cli_text or f"<{value.field or 'value'}>"]
    from tooli.text.json_encoder import encode
    from tooli.text.jsonable import to_jsonable

    step = to_jsonable(value, [])
    return [step if isinstance(step, str) else encode(step, []).decode()]
