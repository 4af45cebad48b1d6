"""Correct the arguments and options of a call with input errors, and describe the corrections.

    add --nmae desk --limit x ──▶ add --name desk, "maybe_incorrect": the limit is left out

`machine_applicable` marks only a call that certainly means what the caller meant.
"""

from __future__ import annotations

from tooli.core._hot_tables import CALL_OPTIONS
from tooli.core.option_words import spell_option, words_of
from tooli.core.secret_fields import may_contain_secret
from tooli.core.tool import (
    MAX_MESSAGE_CHARS,
    SCALAR_SHAPES,
    Choice,
    ParsedText,
    Scalar,
    cut_text,
    is_handle,
    item_shape,
)
from tooli.errors import Suggestion
from tooli.pipeline.argv_builder import MAX_SUGGESTED_CHARS, Placeholder, shorten_argument
from tooli.pipeline.suggestions import READ_OPTIONS, suggest_call
from tooli.pipeline.unknown_names import closest_flag, is_certain_name, spelling_of
from tooli.pipeline.value_descriptions import describe_param, load_corrections
from tooli.records.call_options import build_options
from tooli.schema import (
    ConversionError,
    Converted,
    NeedsFallback,
    RawText,
    convert_unambiguous_text,
)
from tooli.similar_names import is_near

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.core.call import Call, Problem
    from tooli.core.tool import Param, Tool


def suggest_corrected_call(
    call: Call, problems: Sequence[Problem], *, is_parsed: bool
) -> Suggestion:
    """Return a corrected call, with placeholders `<name>` for unknown values.

    `is_parsed` is False if the arguments of the call are not known.
    """
    tool = call.tool
    arguments: dict[str, Any] = {
        k: shorten_argument(k, v.value if type(v) is Converted else v)
        for k, v in call.arguments.items()
        if k in tool.param_names
    }
    options: dict[str, Any] = {}
    is_certain = all([_correct(call, problem, arguments, options) for problem in problems])
    corrected = {_head(problem) for problem in problems} & arguments.keys()
    is_certain = is_certain and all([_is_valid(call, name, arguments[name]) for name in corrected])
    for param in tool.public_params:
        if is_parsed and param.required and param.name not in arguments:
            arguments[param.name] = Placeholder(param.name)
        elif is_handle(param.shape) and arguments.get(param.name) is not None:
            arguments[param.name] = _handle_argument(param, arguments[param.name])
        elif arguments.get(param.name) is not None and may_contain_secret(param):
            arguments[param.name] = Placeholder(param.name)
    replacement = next((p.replacement for p in problems if p.replacement), ())
    if replacement:  # another command
        return Suggestion(
            "retry_with_modified_input",
            _build_fix(call, problems),
            argv=[*(call.caller.prog or (tool.app,)), *replacement],
        )
    invalid = [
        (p.field or "").removeprefix("tooli_")
        for p in problems
        if p.code in _FRAMEWORK_OPTION_CODES or p.field not in tool.param_names
    ]
    unusable = [name for name in call.options.given or {} if not _is_valid_option(call, name)]
    is_certain = is_certain and unusable == [name for name in unusable if name in invalid]
    if call.options.typed is not None and call.options.typed.is_ambiguous:
        is_certain = False  # only Typer knows the arguments
    hides_word = any([problem.hides_value or _took_flag(call, problem) for problem in problems])
    if call.flow is None and not _EXPRESSIONS.isdisjoint(call.options.given or {}):
        is_certain = False  # Typer has rejected the line before they were checked
    suggestion = Suggestion(
        "retry_with_modified_input",
        _build_fix(call, problems),
        applicability="machine_applicable" if is_certain and not hides_word else "maybe_incorrect",
    )
    if hides_word:
        return suggestion  # a word may be its value or another argument
    target = suggest_call(call, arguments, without=[*invalid, *unusable], **options)
    parts = [
        p
        for p in problems
        if "." in (p.field or "") and p.suggested_value is None and _head(p) in arguments
    ]
    suggestion.target = target.replace(has_placeholders=bool(parts))
    return suggestion


def _took_flag(call: Call, problem: Problem) -> bool:
    """True if the invalid value of an option is a flag: `--size --dry-run` has no value."""
    value = call.arguments.get(_head(problem))
    return (
        problem.code == "E1003"
        and isinstance(value, RawText)
        and any([text[:2] == "--" and len(text) > 2 for text in value.texts])
    )


def _head(problem: Problem) -> str:
    """Return the name of the parameter that a problem belongs to."""
    return (problem.field or "").partition(".")[0]


def _correct(
    call: Call, problem: Problem, arguments: dict[str, Any], options: dict[str, Any]
) -> bool:
    """Correct one problem in the arguments and options of a suggested call.

    Return True if the corrected call certainly means what the caller meant.
    """
    tool, suggested = call.tool, problem.suggested_value
    head, _, rest = (problem.field or "").partition(".")
    if problem.suggested_option is not None:
        return _correct_option(call, head, *problem.suggested_option, options)
    if problem.code == "E1004" and problem.field == head:
        return isinstance(suggested, str) and _rename(call, head, suggested, arguments)
    if problem.code == "E1007" and head == "dry_run":
        options[head] = True  # without it, the suggested call would have effects
        return False
    if problem.code == "E1007" and isinstance(suggested, str) and head not in tool.param_names:
        options[head] = suggested
        return False
    if problem.code in ("E1040", "E1041"):
        name = head.removeprefix("tooli_")
        if suggested or (suggested is None and problem.code == "E1040"):
            options[name] = suggested or Placeholder(name).text
        return False
    if problem.code == "E1005":
        _place_extra_words(tool, suggested or (), arguments)
        return False
    if not head or problem.code in _FRAMEWORK_OPTION_CODES:
        return False  # something is left out
    is_unknown_field = hasattr(suggested, "closest")
    if suggested is not None and not (rest or is_unknown_field) and _takes_single(tool, head):
        is_same = _is_same_value(arguments.get(head), suggested)
        arguments[head] = suggested
        return is_same
    repaired = _replace_item(arguments.get(head), rest, suggested)
    if repaired is not None:
        is_same = _is_same_value(_item(arguments.get(head), rest), suggested)
        arguments[head] = repaired
        return is_same
    param = tool.param(head)
    if param is None:
        return False
    if problem.code == "E1006" and param.is_flag:
        return load_corrections().correct_flag(call, param, arguments)
    if problem.code == "E1002" and param.is_flag:
        arguments[head] = not param.negations  # a command line has no placeholder for a flag
        return False
    value = arguments.get(head)
    corrected: Any = _replace_item(value, rest, Placeholder(head))
    if rest and corrected is None:
        is_missing = problem.message.endswith("a value is required")
        correct_part = load_corrections().correct_part
        corrected = correct_part(head, value, rest.split("."), suggested, is_missing)
    arguments[head] = Placeholder(head) if corrected is None else corrected
    closest: str | None = getattr(suggested, "closest", None)  # the field that is probably meant
    if closest is not None:
        return is_near(rest.rpartition(".")[2], closest)
    return suggested is None  # otherwise it has another value


def _rename(call: Call, name: str, correct: str, arguments: dict[str, Any]) -> bool:
    """Correct the name of a parameter. Return True if it certainly has this value."""
    value = call.arguments.get(name)
    if value is not None:
        is_valid = _convert(call.tool.param(correct), value) is not None
        arguments.setdefault(correct, value if is_valid else Placeholder(correct))
    # A command line has given the value to the correct parameter already.
    is_only_value = value is None or name == correct or correct not in call.arguments
    return is_only_value and is_certain_name(name, correct, call.tool, words_of(call))


def _correct_option(
    call: Call, typed: str, name: str, value: object, options: dict[str, Any]
) -> bool:
    """Set a framework option. Return True if it is certainly what the caller meant."""
    if name in (call.options.given or {}):
        return False  # the value with the right name is kept
    if _is_valid_value(name, value):
        options[name] = value
        is_certain = is_certain_name(typed, (name, value), call.tool, words_of(call))
        return is_certain and name not in _UNCERTAIN_OPTIONS
    if name == "dry_run":
        options[name] = True  # without it, the suggested call would have effects
    return False


def _is_valid(call: Call, name: str, value: object) -> bool:
    """True if a parameter accepts a corrected value, of which another part may be wrong."""
    param = call.tool.param(name)
    if param is None or value is None or isinstance(value, Placeholder):
        return True
    if not isinstance(value, RawText):  # on a command line it is a value of the declaration
        return call.caller.owns_process or _convert(param, value) is not None
    try:
        convert_unambiguous_text(param, value)
    except NeedsFallback:
        return _convert(param, value) is not None
    except ConversionError:
        return False
    return True


def _is_valid_option(call: Call, name: str) -> bool:
    return name in READ_OPTIONS or _is_valid_value(name, (call.options.given or {})[name])


_EXPRESSIONS = frozenset(("filter", "fields", "cursor"))
_UNCERTAIN_OPTIONS = _EXPRESSIONS | {"yes", "apply"}
"""A corrected call with such an option may be invalid, or do what nobody has confirmed."""


def _is_valid_value(name: str, value: object) -> bool:
    """True if an option accepts a value. Expressions and cursors are checked elsewhere."""
    if name not in CALL_OPTIONS:
        return True  # only the command line has it, and has checked it
    options, problems = build_options({name: value})
    records = options.result_options
    return not problems and (records is None or not records.problems)


def _place_extra_words(tool: Tool, words: Sequence[str], arguments: dict[str, Any]) -> None:
    """Assign each surplus word to the option that it fits, if there is exactly one."""
    for word in words:
        fitting = [
            param
            for param in tool.public_params
            if param.kind == "option"
            and not param.is_flag
            and param.nargs == 1
            and param.name not in arguments
            and isinstance(item_shape(param.shape), (Choice, Scalar, ParsedText))
            and item_shape(param.shape) != SCALAR_SHAPES[str]
            and _convert(param, RawText([word])) is not None
        ]
        if len(fitting) == 1:
            arguments[fitting[0].name] = RawText([word])


def _is_same_value(value: object, suggested: object) -> bool:
    """True if a suggested value is certainly what an invalid one means."""
    text = value.texts[-1] if isinstance(value, RawText) and value.texts else value
    return isinstance(suggested, str) and isinstance(text, str) and is_near(text, suggested)


def _item(value: Any, index: str) -> object:
    items = value.texts if isinstance(value, RawText) else value
    return items[int(index)] if int(index) < len(items) else None


_FRAMEWORK_OPTION_CODES = ("E1007", "E1040", "E1041", "E1042")
"""Codes of problems with framework options. The suggested command line omits these options."""


def _handle_argument(param: Param, value: object) -> Any:
    """Return the location of an input or a secret; a placeholder if it was given by value."""
    converted = None if isinstance(value, Placeholder) else _convert(param, value)
    if converted is None:
        return Placeholder(param.name)
    items = converted if param.is_multiple or param.nargs > 1 else [converted]
    locations = [item.tooli_cli_text if hasattr(item, "tooli_cli_text") else item for item in items]
    return Placeholder(param.name) if None in locations else locations


def _takes_single(tool: Tool, name: str) -> bool:
    """True if a suggestion for this parameter replaces its whole value."""
    param = tool.param(name)
    return param is not None and not param.is_multiple and param.nargs == 1


def _replace_item(value: object, index: str, suggested_value: object) -> list[Any] | None:
    """Return a list with one item replaced; None if there is no such item, or if it is long."""
    items: Any = value.texts if isinstance(value, RawText) else value
    if suggested_value is None or type(items) not in (list, tuple) or not index.isdigit():
        return None
    if len(items) > MAX_SUGGESTED_CHARS or int(index) >= len(items):
        return None
    return [*items[: int(index)], suggested_value, *items[int(index) + 1 :]]


def _convert(param: Param | None, value: object) -> Any:
    """Return an argument as the function receives it, or None if it is not valid."""
    from tooli.schema.convert_values import convert_argument  # most usage errors do not need it

    try:
        return None if param is None else convert_argument(param, value)
    except ConversionError:
        return None


def _suggested_name(call: Call, problem: Problem) -> str | None:
    """Return the parameter that is suggested in place of an unknown one, as a caller writes it."""
    if not problem.suggested_value:
        return None
    flag = closest_flag(f"--{problem.field}", call.tool.param(problem.suggested_value))
    if flag is None or not words_of(call).is_command_line:
        return problem.suggested_value
    return spelling_of(flag)


def _build_fix(call: Call, problems: Sequence[Problem]) -> str:
    tool = call.tool
    parts: list[str] = []
    for problem in problems:
        param = tool.param((problem.field or "").partition(".")[0])
        if problem.code == "E1004" and (problem.field is None or problem.field in tool.param_names):
            parts.append(load_corrections().describe_option_advice(problem.message))
        elif hasattr(problem.suggested_value, "closest"):
            parts.append(load_corrections().describe_field_fix(problem))
        elif problem.code == "E1004" and problem.suggested_option is not None:
            parts.append(f"Use {spell_option(call, *problem.suggested_option)}.")
        elif problem.code == "E1004" and _suggested_name(call, problem) == problem.field:
            parts.append(load_corrections().describe_option_advice(problem.message))
        elif problem.code == "E1004":
            known = ", ".join(p.name for p in tool.public_params) or "none"
            parts.append(
                f"Use {_suggested_name(call, problem)!r} instead of {problem.field!r}."
                if problem.suggested_value
                else f"Leave {problem.field!r} out; the parameters are: {known}."
            )
        elif problem.code == "E1005":
            name = problem.replacement[:1]
            advice = "Remove the extra arguments, or give them to an option."
            parts.append(f"Use {name[0]!r}." if name else advice)
        elif problem.code == "E1007":
            parts.append(describe_option_fix(problem))
        elif problem.code == "E1030":
            parts.append("Remove the characters that the message names.")
        elif problem.code in _FRAMEWORK_OPTION_CODES:
            parts.append(_describe_expression_fix(problem))
        elif param is not None:
            is_command_line = words_of(call).is_command_line
            if param.is_flag and is_command_line and problem.code == "E1002":
                flags = [*param.flags[:1], *param.negations[:1]]
                parts.append(f"Give {' or '.join(flags)}.")
                continue
            expected = describe_param(param, is_command_line=is_command_line)
            parts.append(f"Give {param.name!r} {expected}.")
        elif problem.code == "E1003":
            parts.append("Change the arguments so that they fit together.")
        else:
            parts.append("Give the option its value.")
    return cut_text(" ".join(dict.fromkeys(parts)), MAX_MESSAGE_CHARS)


def _describe_expression_fix(problem: Problem) -> str:
    """Return how to correct a filter, a selection of fields or a cursor."""
    message = problem.message if problem.message[-1] == "?" else f"{problem.message}."
    if problem.suggested_value:
        return f"{message} Write {problem.suggested_value}"
    if problem.code == "E1040" and problem.suggested_value is None and "quotes" not in message:
        return f"{message} Put text in quotes: name == 'Ada' and size > 10."
    return message


def describe_option_fix(problem: Problem) -> str:
    """Return how to correct an invalid framework option."""
    suggested = problem.suggested_value
    if suggested is not None:
        values = suggested if isinstance(suggested, str) else f"one of {', '.join(suggested)}"
        return f"Use {values} as {problem.field!r}."
    if problem.field is None:  # the message says where the option belongs
        return load_corrections().describe_option_advice(problem.message)
    return f"Leave {problem.field!r} out, or correct it: {problem.message}."
