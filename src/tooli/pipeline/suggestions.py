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
from tooli.schema import (
    ConversionError,
    Converted,
    NeedsFallback,
    RawText,
    convert_unambiguous_text,
)

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
        if name not in without and name not in _READ_OPTIONS and value is not False
    }
    return SuggestedCall(tool.path, arguments, {**kept, **options}, tool)


_READ_OPTIONS = ("input", "null")
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
            if suggestion.argv is None or is_command_line:
                return suggestion
            return suggestion.replace(argv=None)  # `example` has the line
        if suggestion.argv is not None and is_command_line:
            return suggestion.replace(arguments=None)
    if is_command_line:
        return _as_command_line(suggestion, target, call)
    return _as_arguments(suggestion, target, call)


def _as_command_line(suggestion: Suggestion, target: SuggestedCall, call: Call) -> Suggestion:
    program = call.caller.prog or (call.tool.app,)
    placeholders: list[str] = []
    if target.tool is None:
        words = [*target.path, *target.rest]
    else:
        flags = option_argv(target.options, target.tool)
        words, placeholders = build_suggested_argv(target.tool, target.arguments or {}, *flags)
        path = build_path(target.tool, target.arguments or {}, target.tool.cli_path)
        words = [*path, *words]
    argv = [*program, *words]
    has_placeholders = placeholders or _has_placeholder(target)
    return suggestion.replace(
        argv=argv,
        arguments=None,
        example=" ".join(map(shell_quote, argv)),
        applicability="has_placeholders" if has_placeholders else suggestion.applicability,
    )


def _as_arguments(suggestion: Suggestion, target: SuggestedCall, call: Call) -> Suggestion:
    """Return a suggestion with JSON arguments, for interfaces without a command line."""
    arguments, words = _json_arguments(target), words_of(call)
    names = call.tool.param_names if target.tool is None else target.tool.param_names
    is_apart = words.sends_options_apart
    options = {name: value for name, value in target.options.items() if value is not None}
    separate = {name: value for name, value in options.items() if is_apart or name in names}
    if arguments is not None:
        arguments |= {name: value for name, value in options.items() if name not in separate}
    has_placeholders = arguments is not None and any(map(is_placeholder_text, arguments.values()))
    is_other = target.path != call.tool.path
    return suggestion.replace(
        argv=None,
        arguments=arguments,
        query=(separate or None) if is_apart else None,
        options=None if is_apart else (separate or None),
        command=".".join(target.path) if is_other else None,
        example=words.call(target.path, arguments or {}, separate),
        applicability="has_placeholders" if has_placeholders else suggestion.applicability,
    )


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
            if param.required or not is_default(param, value):
                arguments[param.name] = _json_value(param, value)
    sizes = {name: len(str(value)) + len(name) for name, value in arguments.items()}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if sum(sizes.values()) <= MAX_SUGGESTED_CHARS:
            break
        arguments[name] = Placeholder(name).text
        sizes[name] = 2 * len(name)
    return arguments


def _json_value(param: Param, value: Any) -> Any:
    if isinstance(value, Converted):
        value = value.value
    if isinstance(value, Placeholder):
        return [value.text] * param.nargs if param.nargs > 1 else value.text
    if isinstance(value, RawText):
        texts = list(value.texts)
        return texts if param.is_multiple or param.nargs > 1 else "".join(texts[-1:])
    if isinstance(value, (list, tuple)):
        return [_json_value(param, item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if hasattr(value, "tooli_cli_text"):  # the location of an input or a secret, not its content
        return value.tooli_cli_text or Placeholder(param.name).text
    return to_json_value(value)


def is_placeholder_text(value: object) -> bool:
    """True for the text of a placeholder, such as `<items>`, or a list that contains one."""
    if isinstance(value, list):
        return any(map(is_placeholder_text, value))  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, str) and value[:1] == "<" and value[-1:] == ">"


def _has_placeholder(target: SuggestedCall) -> bool:
    return any([isinstance(value, Placeholder) for value in (target.arguments or {}).values()])


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
    if suggestion.argv is None or words_of(call).is_command_line:
        return None
    words = suggestion.argv[1:]
    if tuple(words[: len(tool.cli_path)]) != tool.cli_path:
        return None
    accepted = {name for name, _ in words_of(call).spellings().values()}
    return _parse_words(tool, words[len(tool.cli_path) :], accepted)


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
