"""Describe a parser of argparse, optparse or getopt."""

from __future__ import annotations

import argparse
import optparse
from itertools import islice
from typing import Any

from .python_types import clean_help, plain_default, schema_of_choices

MAX_DEPTH = 12
MAX_COMMANDS = 5_000
_FLAG_ACTIONS = (
    "_StoreTrueAction",
    "_StoreFalseAction",
    "_StoreConstAction",
    "_AppendConstAction",
)


def describe_argparse(parser: Any, prog: str) -> dict[str, Any]:
    """Return the description of a parser and of its subparsers."""
    walker = _Walker()
    walker.walk(parser, None, (), (), "", False)
    return {
        "prog": prog,
        "help": clean_help(_expand(parser.description, parser)),
        "levels": walker.levels,
        "commands": walker.commands,
        "skipped": walker.skipped,
    }


def subparser_actions(parser: Any) -> list[Any]:
    """Return the actions of a parser that have subparsers."""
    kind: Any = argparse._SubParsersAction
    return [action for action in parser._actions if isinstance(action, kind)]


class _Walker:
    """Walks the tree of subparsers."""

    def __init__(self) -> None:
        self.levels: list[dict[str, Any]] = []
        self.commands: list[dict[str, Any]] = []
        self.skipped: list[str] = []

    def walk(
        self,
        parser: Any,
        word: str | None,
        words: tuple[str, ...],
        above: tuple[int, ...],
        summary: str,
        is_deprecated: bool,
    ) -> None:
        """Add a parser, or all its subparsers."""
        self.levels.append(_describe_level(parser, word))
        levels = (*above, len(self.levels) - 1)
        groups = subparser_actions(parser)
        if not groups:
            text = clean_help(_expand(parser.description, parser)) or summary
            command = {"words": list(words), "levels": list(levels), "help": text}
            hidden = summary == argparse.SUPPRESS
            self.commands.append({**command, "hidden": hidden, "deprecated": is_deprecated})
        for group in groups if len(words) < MAX_DEPTH else ():
            summaries = {choice.dest: choice.help for choice in group._choices_actions}
            deprecated = getattr(group, "_deprecated", ())
            seen: set[int] = set()  # a parser may have several names
            for name, child in group.choices.items():
                if len(self.commands) >= MAX_COMMANDS:
                    self.skipped.append(f"more than {MAX_COMMANDS} commands")
                    return
                if id(child) not in seen:
                    seen.add(id(child))
                    text = clean_help(_expand(summaries.get(name), child))
                    self.walk(child, name, (*words, name), levels, text, name in deprecated)


def _describe_level(parser: Any, word: str | None) -> dict[str, Any]:
    skipped = (argparse._HelpAction, argparse._VersionAction, argparse._SubParsersAction)
    actions = [a for a in parser._actions if not isinstance(a, skipped)]
    return {
        "word": word,
        "style": "argparse",
        "prefixes": parser.prefix_chars,
        "file_prefixes": parser.fromfile_prefix_chars or "",
        "params": [_describe_action(action, parser) for action in actions],
        "takes_extra": False,
        "exclusive": [
            {"required": bool(group.required), "params": [actions.index(a) for a in members]}
            for group in parser._mutually_exclusive_groups
            for members in [[a for a in group._group_actions if a in actions]]
            if len(members) > 1
        ],
    }


def _describe_action(action: Any, parser: Any) -> dict[str, Any]:
    """Return the description of one action."""
    kind = type(action).__name__
    flags = list(action.option_strings)
    off: list[str] = []
    is_flag = bool(flags) and (action.nargs == 0 or kind in _FLAG_ACTIONS)
    if kind == "BooleanOptionalAction":
        off = [flag for flag in flags if flag.startswith("--no-")]
        flags = [flag for flag in flags if flag not in off]
        is_flag = True
    is_count = isinstance(action, argparse._CountAction)
    nargs: Any = 1 if action.nargs is None or is_flag else action.nargs
    if nargs in (argparse.REMAINDER, argparse.PARSER):
        nargs = "*" if nargs == argparse.REMAINDER else "+"
    is_append = isinstance(action, argparse._AppendAction) and "Extend" not in kind
    is_plain_flag = kind in ("_StoreTrueAction", "BooleanOptionalAction")
    return {
        "name": str(action.dest),
        "flags": flags,
        "off": off,
        "action": "count" if is_count else "flag" if is_flag else "value",
        "is_const": is_flag and not is_plain_flag,
        "nargs": nargs,
        "multiple": is_append,
        "schema": _schema_of(action),
        "items": None,
        "required": bool(action.required) and nargs != "*",
        "sends_default": False,
        "default": None if is_flag and not is_plain_flag else _default(action),
        "help": _help(action, parser),
        "hidden": action.help == argparse.SUPPRESS,
        "secret": False,
        "envvar": None,
        "optional_value": bool(flags) and nargs == "?",
        "is_remainder": action.nargs == argparse.REMAINDER,
    }


def _help(action: Any, parser: Any) -> str:
    text = clean_help(_expand(action.help, parser, action))
    if isinstance(action.metavar, str) and not action.option_strings and not text:
        return clean_help(action.metavar)
    return text


def _expand(text: Any, parser: Any, action: Any = None) -> str:
    """Return a help text with `%(default)s` and similar marks replaced."""
    if not isinstance(text, str) or text == argparse.SUPPRESS:
        return ""
    fields: dict[str, Any] = getattr(action, "__dict__", {})
    values: dict[str, Any] = {
        name: value for name, value in fields.items() if value is not argparse.SUPPRESS
    }
    for name, value in values.items():
        if hasattr(value, "__name__"):
            values[name] = value.__name__
    values["prog"] = parser.prog
    choices: Any = values.get("choices")
    if choices is not None:
        values["choices"] = ", ".join([str(choice) for choice in islice(choices, 100)])
    try:
        return text % values
    except (ValueError, KeyError, TypeError):
        return text


def _default(action: Any) -> Any:
    default = action.default
    return None if default is argparse.SUPPRESS else plain_default(default)


def _schema_of(action: Any) -> dict[str, Any]:
    """Return the schema of one word of the value."""
    kind: Any = action.type
    if action.choices is not None:
        schema = _schema_of_range(action.choices) or schema_of_choices(action.choices)
        is_same = kind in (None, str, int, float)
        return schema if is_same else {"type": "string", "x-note": _choices_note(schema)}
    if _metavar_choices(action):
        return {"type": "string", "enum": _metavar_choices(action)}
    if kind is int or kind is float:
        return {"type": "integer" if kind is int else "number"}
    if isinstance(kind, getattr(argparse, "FileType", ())):
        return {"type": "string", "x-stdin": "r" in kind._mode}
    if kind is bool:
        return {"type": "string", "x-note": "Any text but an empty one means yes."}
    return {"type": "string"}


def _schema_of_range(choices: Any) -> dict[str, Any] | None:
    if isinstance(choices, range) and len(choices) > 20 and choices.step == 1:
        return {"type": "integer", "minimum": choices[0], "maximum": choices[-1]}
    return None


def _metavar_choices(action: Any) -> list[str]:
    """Return the choices that a metavar such as `{auto,never}` lists."""
    metavar = action.metavar
    if not isinstance(metavar, str) or metavar[:1] + metavar[-1:] != "{}":
        return []
    return [part.strip() for part in metavar[1:-1].split(",") if part.strip()]


def _choices_note(schema: dict[str, Any]) -> str:
    found = ", ".join(map(str, schema.get("enum", ())[:50]))
    return f"One of: {found}" if found else ""


# ------------------------------------------------------------------ optparse


def describe_optparse(parser: Any, prog: str) -> dict[str, Any]:
    """Return the description of a parser of optparse, whose other arguments have no declaration."""
    options = [
        option
        for container in (parser, *parser.option_groups)
        for option in container.option_list
        if option.action not in ("help", "version")
    ]
    usage = "" if parser.usage in (None, optparse.SUPPRESS_USAGE) else str(parser.get_usage())
    arguments = {
        **_EMPTY,
        "name": "arguments",
        "nargs": "*",
        "schema": {"type": "string"},
        "help": clean_help(f"The arguments that are not options. {usage}"),
    }
    params = [*[_describe_option(option, parser) for option in options], arguments]
    text = clean_help(parser.get_description() if parser.description else "")
    return _describe_program(prog, text, params, parser.allow_interspersed_args)


def _describe_program(
    prog: str, text: str, params: list[dict[str, Any]], is_interspersed: bool
) -> dict[str, Any]:
    """Return the description of a program that has no subcommands."""
    level = {
        "word": None,
        "style": "optparse",
        "prefixes": "-",
        "is_interspersed": is_interspersed,
        "params": params,
        "takes_extra": False,
        "exclusive": [],
    }
    command = {"words": [], "levels": [0], "help": text, "hidden": False, "deprecated": False}
    return {"prog": prog, "help": text, "levels": [level], "commands": [command], "skipped": []}


_EMPTY: dict[str, Any] = {
    "flags": [],
    "off": [],
    "action": "value",
    "is_const": False,
    "nargs": 1,
    "multiple": False,
    "items": None,
    "required": False,
    "sends_default": False,
    "default": None,
    "hidden": False,
    "secret": False,
    "envvar": None,
    "optional_value": False,
}


def _describe_option(option: Any, parser: Any) -> dict[str, Any]:
    flags = [*option._long_opts, *option._short_opts]
    kinds = {"int": "integer", "long": "integer", "float": "number"}
    schema: dict[str, Any] = {"type": kinds.get(option.type, "string")}
    if option.choices:
        schema = schema_of_choices(option.choices)
    is_flag = not option.takes_value() and option.action != "count"
    default = parser.defaults.get(option.dest) if option.dest else None
    if default is not None and schema["type"] in ("integer", "number"):
        default = default if isinstance(default, (int, float)) else None
    is_plain_flag = option.action == "store_true"
    help_text = "" if option.help == optparse.SUPPRESS_HELP else str(option.help or "")
    return {
        **_EMPTY,
        "name": str(option.dest or flags[0]),
        "flags": flags,
        "action": "count" if option.action == "count" else "flag" if is_flag else "value",
        "is_const": is_flag and not is_plain_flag,
        "nargs": option.nargs or 1,
        "multiple": option.action == "append",
        "schema": schema,
        "default": None if is_flag and not is_plain_flag else plain_default(default),
        "help": clean_help(help_text.replace("%default", str(default))),
        "hidden": option.help == optparse.SUPPRESS_HELP,
    }


# ------------------------------------------------------------------ getopt


def describe_getopt(shortopts: str, longopts: Any, is_gnu: bool, prog: str) -> dict[str, Any]:
    """Return the description of the options that a program passes to getopt."""
    names = [longopts] if isinstance(longopts, str) else [*longopts]
    options = [(f"--{name.rstrip('=?')}", name.endswith("=")) for name in names]
    letters = shortopts.lstrip("+")
    for index, letter in enumerate(letters):
        if letter != ":":
            options.append((f"-{letter}", letters[index + 1 : index + 2] == ":"))
    params = [
        {
            **_EMPTY,
            "name": flag.lstrip("-"),
            "flags": [flag],
            "action": "value" if takes_value else "flag",
            "schema": {"type": "string"},
            "help": "",
        }
        for flag, takes_value in options
        if flag not in ("--help", "--version", "-h")
    ]
    text = {"help": "The arguments that are not options."}
    arguments = {**_EMPTY, "name": "arguments", "nargs": "*", "schema": {"type": "string"}, **text}
    is_interspersed = is_gnu and not shortopts.startswith("+")
    return _describe_program(prog, "", [*params, arguments], is_interspersed)
