"""Describe an app of cyclopts."""

from __future__ import annotations

from typing import Any

from .python_types import (
    clean_help,
    plain_default,
    schema_of_choices,
    schema_of_type,
    strip_optional,
)

MAX_DEPTH = 12
MAX_COMMANDS = 5_000


def describe_cyclopts(app: Any, prog: str) -> dict[str, Any]:
    """Return the description of an app and of its commands."""
    app = getattr(app, "_meta_parent", None) or app  # the meta app only starts the other one
    walker = _Walker()
    walker.walk(app, None, (), (), False)
    return {
        "prog": prog,
        "help": clean_help(_help(app)),
        "levels": walker.levels,
        "commands": walker.commands,
        "skipped": walker.skipped,
    }


class _Walker:
    """Walks the tree of apps."""

    def __init__(self) -> None:
        self.levels: list[dict[str, Any]] = []
        self.commands: list[dict[str, Any]] = []
        self.skipped: list[str] = []

    def walk(
        self,
        app: Any,
        word: str | None,
        words: tuple[str, ...],
        above: tuple[int, ...],
        is_hidden: bool,
    ) -> None:
        """Add an app, and the apps below it."""
        level: dict[str, Any] = {
            "word": word,
            "style": "cyclopts",
            "prefixes": "-",
            "exclusive": [],
        }
        children = {name: app[name] for name in app if not name.startswith("-")}
        self.levels.append({**level, "params": [], "takes_extra": False})
        levels = (*above, len(self.levels) - 1)
        if app.default_command is not None:
            own = {**level, "params": _params(app), "takes_extra": False}
            self.levels.append(own)
            self.commands.append(
                {
                    "words": list(words),
                    "levels": [*above, len(self.levels) - 1],
                    "is_group": bool(children),
                    "help": clean_help(_help(app)),
                    "hidden": is_hidden,
                    "deprecated": False,
                }
            )
        seen: set[int] = set()
        for name, child in children.items() if len(words) < MAX_DEPTH else ():
            if id(child) in seen or len(self.commands) >= MAX_COMMANDS:
                continue
            seen.add(id(child))
            try:
                self.walk(child, name, (*words, name), levels, child.show is False)
            except Exception as failure:
                path = " ".join((*words, name))
                self.skipped.append(f"{path}: {type(failure).__name__}: {failure}")


def _help(app: Any) -> str:
    text = app.help
    if not text and app.default_command is not None:
        text = app.default_command.__doc__
    if not isinstance(text, str):
        return ""
    lines: list[str] = []
    for line in text.strip().splitlines():
        if line.strip() in ("Parameters", "Args:", "Returns:", "Returns", ":param"):
            break
        lines.append(line)
    return "\n".join(lines)


def _params(app: Any) -> list[dict[str, Any]]:
    """Return the parameters of the default command of an app."""
    found: list[dict[str, Any]] = []
    for argument in _assemble(app):
        if argument.parameter.parse is False or getattr(argument, "children", None):
            continue
        found.append(_describe_argument(argument))
    return found


def _assemble(app: Any) -> Any:
    try:
        return app.assemble_argument_collection(parse_docstring=True)
    except TypeError:  # an older version
        return app.assemble_argument_collection()


def _describe_argument(argument: Any) -> dict[str, Any]:
    hint = strip_optional(argument.hint)
    count, takes_all = argument.token_count()
    # A list in a keyword is repeated; a positional one takes the rest of the words.
    is_positional = argument.index is not None and not any(
        name.startswith("-") for name in argument.names
    )
    negatives = list(argument.negatives)  # they are among the names
    flags = [n for n in argument.names if n.startswith("-") and n not in negatives]
    off = [name for name in negatives if not name.startswith("--empty-")]
    items, schema = None, {"type": "string"}
    origin, parts = getattr(hint, "__origin__", None), getattr(hint, "__args__", ())
    is_flag = count == 0
    choices = argument.get_choices()
    if choices:
        schema = schema_of_choices(choices)
    elif takes_all and parts:
        schema = schema_of_type(parts[0])
    elif count > 1 and origin is tuple:
        items = [schema_of_type(part) for part in parts]
    elif not is_flag:
        schema = schema_of_type(hint)
    default, keys = argument.field_info.default, tuple(getattr(argument, "keys", ()))
    text = argument.parameter.help
    return {
        "name": str(argument.name).lstrip("-") if keys else str(argument.field_info.name),
        "flags": flags,
        "off": off if is_flag else [],
        "action": "flag" if is_flag else "value",
        "is_const": False,
        "nargs": "*" if is_positional and takes_all else count or 1,
        "multiple": bool(takes_all) and not is_positional,
        "schema": schema,
        "items": items,
        "required": bool(argument.required),
        "sends_default": False,
        "default": plain_default(default) if default is not type(default) else None,
        "help": clean_help(text),
        "hidden": argument.show is False,
        "secret": False,
        "envvar": None,
        "optional_value": False,
    }
