"""Describe a command of Click or Typer.

Classes are recognized by their names: the module of Click may be `click`, or a copy in Typer.
"""

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
_INFO_FLAGS = {"--help", "--version", "--install-completion", "--show-completion"}
_PLAIN_TYPES = {
    "StringParamType": "string",
    "UnprocessedParamType": "string",
    "IntParamType": "integer",
    "FloatParamType": "number",
    "BoolParamType": "boolean",
}


def describe_click(command: Any, prog: str) -> dict[str, Any]:
    """Return the description of a command and of the commands below it."""
    walker = _Walker()
    walker.walk(command, prog, None, (), ())
    return {
        "prog": prog,
        "help": clean_help(getattr(command, "help", "")),
        "levels": walker.levels,
        "commands": walker.commands,
        "skipped": walker.skipped,
    }


class _Walker:
    """Walks the tree of commands."""

    def __init__(self) -> None:
        self.levels: list[dict[str, Any]] = []
        self.commands: list[dict[str, Any]] = []
        self.skipped: list[str] = []

    def walk(
        self, command: Any, name: str, parent: Any, words: tuple[str, ...], above: tuple[int, ...]
    ) -> None:
        """Add a command, or all commands of a group."""
        context = command.context_class(command, info_name=name, parent=parent)
        level = describe_level(command, context, name if words else None)
        self.levels.append(level)
        levels = (*above, len(self.levels) - 1)
        if not hasattr(command, "list_commands"):
            self._add(command, words, levels)
            return
        if getattr(command, "invoke_without_command", False) and not command.no_args_is_help:
            self._add(command, words, levels, is_group=True)
        if len(words) >= MAX_DEPTH:
            return
        for child_name in command.list_commands(context):
            if len(self.commands) >= MAX_COMMANDS:
                self.skipped.append(f"more than {MAX_COMMANDS} commands")
                return
            path = (*words, child_name)
            try:
                child = command.get_command(context, child_name)
                if child is not None:
                    self.walk(child, child_name, context, path, levels)
            except Exception as failure:
                self.skipped.append(f"{' '.join(path)}: {type(failure).__name__}: {failure}")

    def _add(
        self, command: Any, words: tuple[str, ...], levels: tuple[int, ...], is_group: bool = False
    ) -> None:
        self.commands.append(
            {
                "words": list(words),
                "levels": list(levels),
                "is_group": is_group,
                "help": clean_help(command.help or getattr(command, "short_help", "")),
                "hidden": bool(command.hidden),
                "deprecated": bool(command.deprecated),
            }
        )


def describe_level(command: Any, context: Any, word: str | None) -> dict[str, Any]:
    """Return the parameters of one command or group."""
    params = [describe_param(p) for p in command.get_params(context) if not is_info(p)]
    settings = getattr(command, "context_settings", {}) or {}
    takes_extra = bool(
        getattr(command, "allow_extra_args", False)
        or getattr(command, "ignore_unknown_options", False)
        or settings.get("allow_extra_args")
    )
    prefixes = {opt[:1] for p in params for opt in (*p["flags"], *p["off"])} | {"-"}
    return {
        "word": word,
        "style": "click",
        "prefixes": "".join(sorted(prefixes)),
        "params": params,
        "takes_extra": takes_extra and not hasattr(command, "list_commands"),
        "exclusive": [],
    }


def is_info(param: Any) -> bool:
    """True for an option that shows the help or the version and exits."""
    if param.param_type_name != "option":
        return False
    return not param.expose_value and not _INFO_FLAGS.isdisjoint(param.opts)


def describe_param(param: Any) -> dict[str, Any]:
    """Return the description of one parameter."""
    is_option = param.param_type_name == "option"
    is_flag = is_option and bool(getattr(param, "is_flag", False))
    is_count = is_option and bool(getattr(param, "count", False))
    is_hidden_input = bool(getattr(param, "hide_input", False))
    schema, items = _param_schema(param)
    prompt = getattr(param, "prompt", None)
    default = _default(param)
    flag_value = getattr(param, "flag_value", None)
    is_unset = flag_value is None or "Sentinel" in type(flag_value).__name__
    is_const = is_flag and not (param.secondary_opts or is_unset or flag_value is True)
    return {
        "name": str(param.name),
        "flags": list(param.opts) if is_option else [],
        "off": list(param.secondary_opts) if is_option else [],
        "action": "count" if is_count else "flag" if is_flag else "value",
        "is_const": is_const,  # what the flag sets is not `true`
        "nargs": "*" if param.nargs == -1 else param.nargs,
        "multiple": bool(getattr(param, "multiple", False)) and not is_count,
        "schema": schema,
        "items": items,
        "required": bool(param.required) or (prompt is not None and default is None),
        "sends_default": prompt is not None and default is not None,
        "default": None if is_hidden_input or is_const else default,
        "help": clean_help(getattr(param, "help", None)),
        "hidden": bool(getattr(param, "hidden", False)),
        "secret": is_hidden_input,
        "envvar": param.envvar if isinstance(param.envvar, str) else None,
        "optional_value": bool(getattr(param, "_flag_needs_value", False)) and not is_flag,
    }


def _default(param: Any) -> Any:
    default = param.default
    if callable(default) or "Sentinel" in type(default).__name__:
        return None
    return plain_default(default)


def _param_schema(param: Any) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """Return the schema of one word of the value, and those of the words of a tuple."""
    kind = getattr(param, "type", None)
    if kind is None:  # Typer without Click
        return _typer_schema(param)
    if hasattr(kind, "types"):
        items = [schema_of_param_type(part) for part in kind.types]
        return {}, items
    return schema_of_param_type(kind), None


def _typer_schema(param: Any) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    descriptor = getattr(param, "type_descriptor", None)
    info = getattr(descriptor, "parameter_info", None)
    hint = strip_optional(getattr(descriptor, "annotation", str))
    if getattr(info, "parser", None) is not None or getattr(info, "click_type", None) is not None:
        kind = getattr(info, "click_type", None)
        return ({"type": "string"} if kind is None else schema_of_param_type(kind)), None
    origin, parts = getattr(hint, "__origin__", None), getattr(hint, "__args__", ())
    if origin is tuple:
        return {}, [schema_of_type(part) for part in parts]
    schema = schema_of_type(parts[0] if origin is list and parts else hint)
    if getattr(param, "file_annotation", None) or "File" in getattr(hint, "__name__", ""):
        schema = {"type": "string", "x-stdin": True}
    is_number = schema.get("type") in ("integer", "number") and "enum" not in schema
    if is_number and not getattr(info, "clamp", False):
        limits = {"minimum": getattr(info, "min", None), "maximum": getattr(info, "max", None)}
        schema.update({name: value for name, value in limits.items() if value is not None})
    return schema, None


def schema_of_param_type(kind: Any) -> dict[str, Any]:
    """Return the schema of one word that a type of Click converts."""
    names = [base.__name__ for base in type(kind).__mro__]
    if "Choice" in names:
        return schema_of_choices(
            [
                getattr(c, "name", c) if not isinstance(c, (str, int, float)) else c
                for c in kind.choices
            ]
        )
    if "IntRange" in names or "FloatRange" in names:
        return _schema_of_range(kind, "integer" if "IntRange" in names else "number")
    if type(kind).__name__ in _PLAIN_TYPES:
        return {"type": _PLAIN_TYPES[type(kind).__name__]}
    if "File" in names:
        return {"type": "string", "x-stdin": True}
    if "DateTime" in names:
        formats = ", ".join(map(str, getattr(kind, "formats", ())))
        return {"type": "string", "x-note": f"Formats: {formats}"}
    return {"type": "string"}


def _schema_of_range(kind: Any, name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": name}
    if not kind.clamp:
        if kind.min is not None:
            schema["exclusiveMinimum" if getattr(kind, "min_open", False) else "minimum"] = kind.min
        if kind.max is not None:
            schema["exclusiveMaximum" if getattr(kind, "max_open", False) else "maximum"] = kind.max
    return schema
