"""Show a suggestion in the form of the caller's interface.

    SuggestedCall ─┬▶ command line   argv, and the line in `example`
                   ├▶ MCP            arguments
                   ├▶ HTTP           arguments and query, and the request line in `example`
                   └▶ Python         arguments, and the call in `example`

A suggested call keeps everything that was right in the call of the caller. `localize_error` is
called once, when an outcome is presented.
"""

from __future__ import annotations

from tooli.core._hot_tables import CALL_OPTIONS, FLAGS, OPTION_ALIASES
from tooli.core.call import SuggestedCall
from tooli.core.option_words import option_argv, words_of
from tooli.errors import copy_error, shell_quote
from tooli.pipeline.argv_builder import (
    MAX_SUGGESTED_CHARS,
    Placeholder,
    build_path,
    build_suggested_argv,
    is_default,
    to_json_value,
)
from tooli.pipeline.value_descriptions import load_corrections
from tooli.schema import (
    ConversionError,
    Converted,
    NeedsFallback,
    RawText,
    convert_unambiguous_text,
    find_placeholder,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool
    from tooli.errors import Suggestion, ToolError


def suggest_call(
    call: Call,
    arguments: Mapping[str, Any] | None = None,
    *,
    without: Sequence[str] = (),
    **options: Any,
) -> SuggestedCall:
    """Return the call with other arguments and options. Options in `without` are left out."""
    tool = call.tool
    if arguments is None:
        arguments = tool.arguments_by_param(call.arguments)
    kept = {
        name: value
        for name, value in (call.options.given or {}).items()
        if name not in without and name not in READ_OPTIONS and value is not False
    }
    return SuggestedCall(tool.path, arguments, {**kept, **options}, tool)


READ_OPTIONS = ("input", "null")
"""Options that were read: their values are arguments of the call."""


def localize_error(error: ToolError, call: Call) -> ToolError:
    """Return the error for the caller of a call, and add its own warnings to those of the call.

    The error itself is not changed, because a function may raise it again.
    """
    call.warnings.extend([line for line in error.warnings if line not in call.warnings])
    suggestion = error.suggestion
    if suggestion is None:
        return error
    localized = localize_suggestion(suggestion, call)
    if localized is suggestion:
        return error
    error = copy_error(error)
    error.suggestion = localized
    return error


def localize_suggestion(suggestion: Suggestion, call: Call) -> Suggestion:
    """Return a suggestion in the form of the caller's interface."""
    target, is_command_line = suggestion.target, words_of(call).is_command_line
    if not isinstance(target, SuggestedCall):
        target = _read_target(suggestion, call)
        if target is None:
            return suggestion if is_command_line else _without_line(suggestion, call)
        if suggestion.argv is not None and is_command_line:
            return suggestion.replace(arguments=None)
    if is_command_line:
        return _as_command_line(suggestion, target, call)
    return _as_arguments(suggestion, target, call)


def _without_line(suggestion: Suggestion, call: Call) -> Suggestion:
    """Return a suggestion without a command line of the app, which only a command line can run.

    The line of another program stays in `example`.
    """
    is_own = bool(suggestion.argv) and _is_program(suggestion.argv[0], call)
    if is_own or _example_words(suggestion, call) is not None:
        return suggestion.replace(argv=None, example=None)
    return suggestion if suggestion.argv is None else suggestion.replace(argv=None)


def show_call(target: SuggestedCall, call: Call) -> tuple[JsonObject, list[str]]:
    """Return a suggested call as the caller of `call` writes it, and its placeholders.

    On a command line this is `argv`, elsewhere `arguments` and, where they are sent apart, options.
    """
    if words_of(call).is_command_line:
        return _show_line(target, call)
    return _show_arguments(target, call)


def _as_command_line(suggestion: Suggestion, target: SuggestedCall, call: Call) -> Suggestion:
    shown, placeholders = _show_line(target, call)
    if not shown["argv"]:
        return suggestion.replace(argv=None, arguments=None)
    return suggestion.replace(
        argv=shown["argv"],
        arguments=None,
        example=" ".join(map(shell_quote, shown["argv"])),
        applicability=_applicability(suggestion, target, placeholders),
    )


def _applicability(
    suggestion: Suggestion, target: SuggestedCall, placeholders: Sequence[str]
) -> str:
    has_placeholders = placeholders or target.has_placeholders
    return "has_placeholders" if has_placeholders else suggestion.applicability


def _show_line(target: SuggestedCall, call: Call) -> tuple[JsonObject, list[str]]:
    program = call.caller.prog or (call.tool.app,)
    if target.tool is None:
        return {"argv": [*program, *(target.words or target.path)]}, []
    flags = option_argv(target.options, target.tool, call)
    arguments = target.arguments or {}
    words, shortened = _build_line(call, target.tool, arguments, *flags)
    unknown = [text for name, value in arguments.items() for text in _placeholders(name, value)]
    unknown += [value for value in target.options.values() if _is_placeholder_text(value)]
    argv = [*program, *words] if words else []
    return {"argv": argv}, [*dict.fromkeys([*shortened, *unknown])]


def _build_line(
    call: Call, tool: Tool, arguments: Mapping[str, Any], *flags: str
) -> tuple[list[str], list[str]]:
    """Return a command line without the program, and its placeholders; [] if it is not known.

    It is the line of `call` with other arguments: it keeps the options of callbacks, and the
    arguments that a tool takes without declaring them.
    """
    line = call.options.typed if tool.path == call.tool.path else None
    if line is None or tool.route is not None:
        words, placeholders = build_suggested_argv(tool, arguments, *flags)
        return [*build_path(tool, arguments, tool.cli_path), *words], placeholders
    end = line.command_prefix_length
    path, typed = line.typer_argv[:end], line.typer_argv[end:]
    if not line.is_ambiguous:
        unseen = _values_from_elsewhere(call, line.arguments, arguments)
        arguments = {name: value for name, value in arguments.items() if name not in unseen}
        words, placeholders = build_suggested_argv(tool, arguments, *flags)
        return [*path, *words], placeholders
    words = load_corrections().correct_words(call, typed, arguments)
    if words is None:
        return [], []
    placeholders = [word for word in words if word not in typed and "<" in word]
    return [*path, *flags, *words], placeholders


def _values_from_elsewhere(
    call: Call, typed: Mapping[str, Any], arguments: Mapping[str, Any]
) -> set[str]:
    """Return the parameters whose value is a default or that of a variable: it is found again."""
    found: set[str] = set()
    for name, value in call.arguments.items():
        param = call.tool.param(name)
        raw = typed.get(name)
        is_read = isinstance(raw, RawText) and not raw.is_cli_text
        is_default_value = name not in typed and not (param and param.option_kwargs.get("prompt"))
        if (is_read or is_default_value) and _unwrap(arguments.get(name)) is _unwrap(value):
            found.add(name)
    return found


def _as_arguments(suggestion: Suggestion, target: SuggestedCall, call: Call) -> Suggestion:
    """Return a suggestion with JSON arguments, for interfaces without a command line."""
    shown, placeholders = _show_arguments(target, call)
    separate: JsonObject = shown.get("query") or shown.get("options") or {}
    return suggestion.replace(
        argv=None,
        arguments=shown.get("arguments"),
        query=shown.get("query"),
        options=shown.get("options"),
        command=shown.get("command"),
        example=words_of(call).call(
            target.path, shown.get("arguments") or {}, separate, call.caller
        ),
        applicability=_applicability(suggestion, target, placeholders),
    )


def _show_arguments(target: SuggestedCall, call: Call) -> tuple[JsonObject, list[str]]:
    arguments = _json_arguments(target)
    names = call.tool.param_names if target.tool is None else target.tool.param_names
    is_apart = words_of(call).sends_options_apart
    options = {name: value for name, value in target.options.items() if value is not None}
    separate = {name: value for name, value in options.items() if is_apart or name in names}
    shown: JsonObject = {}
    if target.path != call.tool.path:
        shown["command"] = ".".join(target.path)
    if arguments is not None:
        together = {name: value for name, value in options.items() if name not in separate}
        shown["arguments"] = {**arguments, **together}
    if separate:
        shown["query" if is_apart else "options"] = separate
    placeholders = [
        text for name, value in (arguments or {}).items() for text in _placeholders(name, value)
    ]
    placeholders += [value for value in options.values() if _is_placeholder_text(value)]
    return shown, placeholders


# ------------------------------------------------------------------ JSON arguments


def _json_arguments(target: SuggestedCall) -> JsonObject | None:
    """Return the arguments in JSON types. Placeholders replace secrets and long values."""
    tool = target.tool
    if target.arguments is None or tool is None:
        return None if target.arguments is None else dict(target.arguments)
    arguments: JsonObject = {}
    for param in tool.public_params:
        if param.name in target.arguments:
            value = target.arguments[param.name]
            if not param.required and is_default(param, value):
                continue
            is_shown = not _is_too_long(value)  # to convert a long value can take seconds
            shown = _json_value(param, value) if is_shown else Placeholder(param.name).text
            arguments[param.name] = shown
    sizes = {name: len(str(value)) + len(name) for name, value in arguments.items()}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if sum(sizes.values()) <= MAX_SUGGESTED_CHARS:
            break
        arguments[name] = Placeholder(name).text
        sizes[name] = 2 * len(name)
    return arguments


def _is_too_long(value: Any) -> bool:
    """True if a value has more parts and characters than a suggestion can show."""
    remaining, parts = MAX_SUGGESTED_CHARS, [_unwrap(value)]
    while parts and remaining >= 0:
        part = parts.pop()
        if isinstance(part, str):
            remaining -= len(part)
        elif is_list(part) or is_object(part):
            remaining -= len(part)
            if remaining >= 0:
                parts += part.values() if is_object(part) else part
    return remaining < 0


def _unwrap(value: Any) -> Any:
    return value.value if isinstance(value, Converted) else value


def _json_value(param: Param, value: Any) -> Any:
    value = _unwrap(value)
    if isinstance(value, Placeholder):
        is_several = param.is_multiple or param.nargs > 1
        return [value.text] * max(param.nargs, 1) if is_several else value.text
    if isinstance(value, RawText):
        texts = list(value.texts)
        return texts if param.is_multiple or param.nargs > 1 else "".join(texts[-1:])
    if isinstance(value, (list, tuple)):
        items: Any = value  # pyright: ignore[reportUnknownVariableType]
        return [
            item.text if isinstance(item, Placeholder) else _json_value(param, item)
            for item in items
        ]
    if hasattr(value, "tooli_cli_text"):  # the location of an input or a secret, not its content
        return value.tooli_cli_text or Placeholder(param.name).text
    return to_json_value(value)


def _placeholders(name: str, value: Any) -> list[str]:
    """Return the placeholders in an argument: the value itself, or a part of it."""
    value = _unwrap(value)
    items: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    texts = [item.text for item in items if isinstance(item, Placeholder)]
    if texts:
        return texts
    found = find_placeholder(value, name)
    return [] if found is None else [found]


def _is_placeholder_text(value: object) -> bool:
    return isinstance(value, str) and value[:1] == "<" and value[-1:] == ">"


# ------------------------------------------------------------------ suggestions of an app


def _read_target(suggestion: Suggestion, call: Call) -> SuggestedCall | None:
    """Return the call that an app suggests with `argv` or `arguments`; None if it is not known."""
    tool = call.tool
    if suggestion.arguments is not None and suggestion.command is None:
        options = {
            name: value
            for name, value in suggestion.arguments.items()
            if name not in tool.param_names and name in CALL_OPTIONS
        }
        arguments = {n: v for n, v in suggestion.arguments.items() if n not in options}
        return SuggestedCall(tool.path, arguments, options, tool)
    if words_of(call).is_command_line:
        return None
    line = _example_words(suggestion, call) if suggestion.argv is None else suggestion.argv
    words = (line or ())[1:]
    if not line or tuple(words[: len(tool.cli_path)]) != tool.cli_path:
        return None
    accepted = {name for name, _ in words_of(call).spellings().values()}
    return _parse_words(tool, words[len(tool.cli_path) :], accepted)


def _example_words(suggestion: Suggestion, call: Call) -> list[str] | None:
    """Return the words of an example that is a command line of the app; None for other text.

    They are empty if it is not a valid line.
    """
    program, _, rest = (suggestion.example or "").partition(" ")
    if not rest or not _is_program(program, call):
        return None
    from shlex import split  # few errors have such an example

    try:
        return split(suggestion.example or "")
    except ValueError:
        return []


def _is_program(word: str, call: Call) -> bool:
    """True if the first word of a command line stands for the app."""
    return word == call.tool.app or (call.caller.prog is not None and word == call.caller.prog[0])


def _parse_words(tool: Tool, words: Sequence[str], accepted: set[str]) -> SuggestedCall | None:
    """Return the call of a simple command line; None for one that has anything unusual."""
    texts: dict[str, list[str]] = {}
    options: JsonObject = {}
    arguments: JsonObject = {}
    positional: list[str] = []
    flags = {flag: param for param in tool.public_params for flag in param.flags}
    rest = [*reversed(words)]
    while rest:
        word = rest.pop()
        if word == "--":
            positional += reversed(rest)
            break
        name, equals, value = word.partition("=")
        if word[:1] != "-" or len(word) == 1:
            positional.append(word)
        elif name in flags and flags[name].is_flag and not equals:
            arguments[flags[name].name] = True
        elif name in flags and (equals or rest):
            texts.setdefault(flags[name].name, []).append(value if equals else rest.pop())
        elif name in FLAGS and (FLAGS[name][1] == 0 or equals or rest):
            option, arity, implied = FLAGS[name]
            option = OPTION_ALIASES.get(option, option)
            text = implied if arity == 0 else value if equals else rest.pop()
            if option in accepted:
                options[option] = text
        else:
            return None
    params = [param for param in tool.public_params if param.kind == "argument"]
    for i, param in enumerate(params):
        taken = positional[i:] if param.is_multiple else positional[i : i + 1]
        if taken:
            texts[param.name] = taken
    has_rest = len(positional) > len(params) and not (params and params[-1].is_multiple)
    values = _convert_texts(tool, texts)
    if has_rest or values is None:
        return None
    return SuggestedCall(tool.path, {**arguments, **values}, options, tool)


def _convert_texts(tool: Tool, texts: Mapping[str, list[str]]) -> JsonObject | None:
    """Return the values of the parameters, or None if a text is not valid or not plain."""
    values: JsonObject = {}
    for name, words in texts.items():
        param = tool.param(name)
        assert param is not None
        try:
            values[name] = convert_unambiguous_text(param, RawText(words))
        except (ConversionError, NeedsFallback):
            return None
    return values
