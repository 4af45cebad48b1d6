"""Build the command line of a call, for suggestions, next steps and approvals.

This module is separate from `input_errors`, because successful calls also suggest commands.
"""

from __future__ import annotations

from tooli.core.command_words import is_read_as_command
from tooli.core.tool import MISSING
from tooli.schema import RawText

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.tool import Param, Tool


MAX_SUGGESTED_CHARS = 2000
"""Maximum size of the command-line arguments in an answer, in characters."""
MAX_SUGGESTED_WORDS = 100
"""Maximum number of command-line arguments in an answer: each of them costs tokens."""


class Placeholder:
    """Stands for an unknown or long value in a command line, as `<name>`."""

    def __init__(self, name: str) -> None:
        self.text = f"<{name}>"


def shorten_argument(name: str, value: object) -> Any:
    """Return an argument, or a placeholder if it is certainly too long for a suggestion.

    A suggestion shows it as a placeholder in any case. This way it is neither copied nor converted
    before, which would cost more than the check that found the problem.
    """
    pending: list[Any] = [value]
    size = 0
    while pending:
        item = pending.pop()
        size += 1
        if isinstance(item, RawText):
            size += sum([len(text) for text in item.texts])
        elif isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, (dict, list, tuple, set, frozenset)):
            size += len(item)  # pyright: ignore[reportUnknownArgumentType]
            if size <= MAX_SUGGESTED_CHARS:
                pending += _parts(item)
        if size > MAX_SUGGESTED_CHARS:
            return Placeholder(name)
    return value


def _parts(holder: Any) -> Sequence[Any]:
    return [*holder, *holder.values()] if isinstance(holder, dict) else [*holder]


def build_argv(tool: Tool, arguments: Mapping[str, Any], *flags: str) -> list[str]:
    """Return the command-line arguments after the command: positional ones, then options.

    If a positional argument begins with `-`, or the first one would be read as a command, the
    options come first, followed by `--`. `flags` are framework flags to add to the options.
    """
    positional = _positional_words(tool, arguments)
    optional: list[str] = []
    for param in tool.command_params:
        if param.kind == "option" and param.name in arguments:
            value = arguments[param.name]
            if _is_from_environment(value):
                continue  # it is read again
            if _is_needed(param) or not is_default(param, value):
                optional += option_words(param, value)
        elif param.kind == "argument" and isinstance(arguments.get(param.name), RawText):
            if _is_repeated(param, arguments[param.name]):
                for text in arguments[param.name].texts:
                    optional += [f"--{param.name}", text]
            optional += _dotted_words(f"--{param.name}", arguments[param.name])
    optional += flags
    has_dash = any(text[:1] == "-" and len(text) > 1 for text in positional)
    if has_dash or is_read_as_command(tool, positional):
        return [*optional, "--", *positional]
    return [*positional, *optional]


_UNSEEN_SOURCES = frozenset(("prompt", "envvar"))


def _is_needed(param: Param) -> bool:
    """True if the value of an option may be another one than the default without the option."""
    return param.required or not _UNSEEN_SOURCES.isdisjoint(param.option_kwargs)


def _is_from_environment(value: object) -> bool:
    return isinstance(value, RawText) and not value.is_cli_text


def _is_repeated(param: Param, value: object) -> bool:
    """True if an argument is an object of several texts, which are given by name."""
    return (
        isinstance(value, RawText)
        and len(value.texts) > 1
        and not param.is_multiple
        and param.nargs == 1
    )


def build_path(tool: Tool, arguments: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    """Return the path of a command, with the options of callbacks before the names."""
    if tool.route is None:
        return [*path]
    words: list[str] = []
    for level, name in enumerate(path):
        routed = [(n, r.param) for n, r in tool.route.params.items() if r.level == level]
        for given, param in routed:
            value = arguments.get(given)
            if given in arguments and (_is_needed(param) or not is_default(param, value)):
                is_option = param.kind == "option"
                words += option_words(param, value) if is_option else value_words(value)
        words.append(name)
    return words


def build_suggested_argv(
    tool: Tool, arguments: Mapping[str, Any], *flags: str
) -> tuple[list[str], list[str]]:
    """Return the same as `build_argv`, with a placeholder for each value that is too long.

    The second list has the placeholders, such as `<items>`.
    """
    argv = build_argv(tool, arguments, *flags)
    if is_short(argv):
        return argv, []
    sizes = {name: sum([len(word) + 1 for word in value_words(v)]) for name, v in arguments.items()}
    shortened = dict(arguments)
    placeholders: list[str] = []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if name in tool.param_names:
            placeholder = shortened[name] = Placeholder(name)
            placeholders.append(placeholder.text)
            argv = build_argv(tool, shortened, *flags)
            if is_short(argv):
                break
    return argv, placeholders


def is_short(argv: Sequence[str]) -> bool:
    """True if command-line arguments are short enough to be repeated in an answer."""
    return len(argv) <= MAX_SUGGESTED_WORDS and (
        sum([len(word) + 1 for word in argv]) <= MAX_SUGGESTED_CHARS
    )


def is_default(param: Param, value: object) -> bool:
    """True if a value is the default of its parameter."""
    return type(value) is type(param.default) and value == param.default


def _positional_words(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return the positional arguments, up to the last one that is not a default."""
    words: list[str] = []
    needed_count = 0
    for param in tool.command_params:
        if param.kind == "argument" and not _is_repeated(param, arguments.get(param.name)):
            value = arguments.get(param.name, param.default)
            if _is_from_environment(value):
                continue
            words += value_words(value) * (param.nargs if isinstance(value, Placeholder) else 1)
            if not is_default(param, value):
                needed_count = len(words)
    return words[:needed_count]


def option_words(param: Param, value: object) -> list[str]:
    """Return an option as command-line arguments."""
    if param.is_flag and isinstance(value, bool):
        return list((param.flags if value else param.negations)[:1])
    if not param.flags:
        return []
    flag = max(param.flags, key=len)
    if param.option_kwargs.get("count") and isinstance(value, int):
        return [flag] * min(value, 9)
    texts = value_words(value) * (param.nargs if isinstance(value, Placeholder) else 1)
    if param.nargs > 1 and len(texts) == param.nargs:
        return [flag, *texts]
    words: list[str] = []
    for text in texts:  # Typer reads `-n=-5` as the text "=-5"
        is_joined = text[:1] == "-" and flag[:2] == "--"
        words += [f"{flag}={text}"] if is_joined else [flag, text]
    return words + _dotted_words(flag, value)


def _dotted_words(flag: str, value: object) -> list[str]:
    """Return the dotted flags of an object, such as `--user.name Ada`."""
    if not isinstance(value, RawText):
        return []
    dotted = (value.dotted or {}).items()
    pairs = [(f"{flag}.{path}", text) for path, texts in dotted for text in texts]
    words = [[f"{name}={text}"] if text[:1] == "-" else [name, text] for name, text in pairs]
    return [word for pair in words for word in pair]


def value_words(value: Any) -> list[str]:
    """Return a value as command-line arguments. None results in an empty list."""
    if isinstance(value, RawText):
        return list(value.texts)
    if isinstance(value, Placeholder):
        return [value.text]
    if value is None or value is MISSING:
        return []
    if type(value) in (list, tuple, set, frozenset):
        return [text for item in value for text in value_words(item)]
    if type(value) in (str, int, float):
        return [str(value)]
    if hasattr(value, "tooli_cli_text"):  # the location of a secret, not its value
        return [value.tooli_cli_text or f"<{value.field or 'value'}>"]
    from tooli.text.json_encoder import encode

    json_value = to_json_value(value)
    return [json_value if isinstance(json_value, str) else encode(json_value, []).decode()]


def to_json_value(value: object) -> Any:
    """Return a value in JSON types."""
    from tooli.text.jsonable import to_jsonable

    return to_jsonable(value, [])
