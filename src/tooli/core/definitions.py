"""Check and read the keywords of `@app.command(…)`.

`check_command_options` runs at registration, for commands that have such keywords. A wrong keyword
or value is a DefinitionError. `read_guard`, `read_limits` and `read_guidance` read keywords that
have been checked. Commands without such keywords do not load this module. Validators import other
modules only when their keyword is used.
"""

from __future__ import annotations

from tooli.core import SAFETY_OPTIONS, TYPER_COMMAND_KEYWORDS
from tooli.core.timeout_values import MAX_TIMEOUT_SECONDS, parse_timeout
from tooli.core.tool import Behavior, Guard, Guidance, Limits
from tooli.errors import (
    ERROR_CODES,
    DefinitionError,
    PartialFailure,
    calling_location,
    check_keywords,
)
from tooli.similar_names import did_you_mean
from tooli.text.jsonable import is_list, is_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from typing_extensions import TypeIs

    from tooli.core import AppState
    from tooli.core.catalog import Handoff
    from tooli.core.protocols import CommandOptions

    Validator: TypeAlias = Callable[[object], str | None]
    """Returns what is wrong with a value, for an error message, or None if it is valid."""

DANGER_LEVELS = ("none", "low", "medium", "high", "critical", "forbidden")
"""The values of `danger_level=`, from the least to the most dangerous."""

COST_HINTS = ("low", "medium", "high")
"""The values of `cost_hint=`."""

DEFAULT_PAGE_SIZE = 100
"""Records on a page of a command that is `paginated=True`."""


_RATE_UNITS = ("second", "minute", "hour", "day")
_MAX_RATE_CALLS = 10_000  # per time unit; the rate limiter stores each call in memory

RATE_LIMIT_FORMAT = (
    f"a number of calls per {', '.join(_RATE_UNITS[:-1])} or {_RATE_UNITS[-1]}, "
    f"such as '60/minute', at most {_MAX_RATE_CALLS}"
)
"""Description of a valid rate limit, for messages with "must be"."""


def is_rate_limit(value: object) -> bool:
    """True if the value is a rate limit such as "60/minute"."""
    count, _, unit = value.partition("/") if isinstance(value, str) else ("", "", "")
    is_valid_count = count.isascii() and count.isdigit() and len(count) <= 5 and count[0] != "0"
    return is_valid_count and int(count) <= _MAX_RATE_CALLS and unit in _RATE_UNITS


_BEHAVIORS = {
    "read_only": "ReadOnly",
    "idempotent": "Idempotent",
    "destructive": "Destructive",
    "open_world": "OpenWorld",
}


def check_command_options(function_name: str, options: Mapping[str, object]) -> None:
    """Raise DefinitionError for an unknown keyword, an invalid value, or values that conflict."""
    known = TYPER_COMMAND_KEYWORDS | _VALIDATORS.keys()
    if not options.keys() <= known:
        for keyword, behavior in _BEHAVIORS.items():
            if keyword in options:
                raise DefinitionError(
                    f"{function_name}() has no keyword {keyword!r}; write annotations={behavior}, "
                    f"which is in tooli.annotations"
                )
        check_keywords(function_name, options, known)
    for keyword, value in options.items():
        if value is not None and keyword in _VALIDATORS:
            problem = _VALIDATORS[keyword](value)
            if problem is not None:
                raise DefinitionError(f"{function_name}({keyword}={shorten(value)}): {problem}")
    if options.get("agent_auto_confirm"):
        _check_auto_confirm(function_name, options)
    behavior = options.get("annotations")
    is_read_only = isinstance(behavior, Behavior) and behavior.read_only
    if is_read_only:
        _check_read_only(function_name, options)
    elif options.get("resource") is not None:
        raise DefinitionError(
            f"{function_name}(resource={shorten(options['resource'])}): only a command with "
            "annotations=ReadOnly can be a resource"
        )


def _check_read_only(function_name: str, options: Mapping[str, object]) -> None:
    """Raise DefinitionError if a read-only command also declares a change."""
    behavior, capabilities = options["annotations"], options.get("capabilities")
    is_destructive = isinstance(behavior, Behavior) and behavior.destructive
    changes = ["annotations=Destructive"] if is_destructive else []
    if is_list(capabilities) or is_set(capabilities):
        names = [str(name) for name in capabilities]
        changes += [name for name in names if name.split(":")[:2] in _CHANGES]
    if changes:
        raise DefinitionError(
            f"{function_name}(annotations=ReadOnly): a read-only command changes nothing, but it "
            f"declares {', '.join(changes)}"
        )


_CHANGES = (["fs", "write"], ["fs", "delete"], ["state", "mutate"])
"""Capabilities that contradict `ReadOnly`. A read-only command may use the network or programs."""


def check_lazy_command(target: str, options: Mapping[str, object]) -> str:
    """Check the arguments of `app.lazy_command(…)`; return "file:line" of the registration."""
    if options:
        check_command_options("lazy_command", options)
    if ":" not in target:
        raise DefinitionError(f"lazy_command({target!r}): must be 'package.module:function'")
    return calling_location()


def shorten(value: object) -> str:
    """Return the repr of a value for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _check_auto_confirm(function_name: str, options: Mapping[str, object]) -> None:
    conflicts = [
        keyword
        for keyword in ("requires_approval", "human_in_the_loop", "danger_level")
        if options.get(keyword) not in (None, False, "low", "none")
    ]
    if getattr(options.get("annotations"), "destructive", False):
        conflicts.append("Destructive")
    if conflicts:
        raise DefinitionError(
            f"{function_name}(): agent_auto_confirm is for harmless commands and cannot be "
            f"combined with {conflicts[0]}"
        )


# ------------------------------------------------------------------ validators


def require(is_valid: Callable[[object], bool], expected: str) -> Validator:
    """Return a validator for values that must fulfil one condition."""
    return lambda value: None if is_valid(value) else f"must be {expected}"


def require_one_of(allowed: Sequence[str]) -> Validator:
    """Return a validator for a value from a list, which suggests the closest one."""

    def find_problem(value: object) -> str | None:
        if value in allowed:
            return None
        return f"must be one of {', '.join(allowed)}{did_you_mean(value, allowed)}"

    return find_problem


text_problem = require(lambda value: isinstance(value, str), "a string")
_bool_problem = require(lambda value: isinstance(value, bool), "True or False")


def auth_problem(value: object) -> str | None:
    """Return what is wrong with a value of `auth=`, or None."""
    if (is_list(value) or is_set(value)) and all([isinstance(s, str) and s for s in value]):
        return None
    return "must be a list of scopes, such as ['files:write']"


def _capabilities_problem(value: object) -> str | None:
    from tooli.core.declared_capabilities import capabilities_problem

    return capabilities_problem(value)


def _handoffs_problem(value: object) -> str | None:
    from tooli.core.catalog import handoffs_problem

    return handoffs_problem(value)


def _examples_problem(value: object) -> str | None:
    if not is_list(value):
        return "must be a list, such as [{'args': ['*.py'], 'description': '…'}]"
    return next(filter(None, map(_example_problem, value)), None)


def _example_problem(example: object) -> str | None:
    if not _is_mapping(example):
        return "an example must be {'args': […], 'description': '…'}"
    for key in example:
        if key not in ("args", "description"):
            return f"an example has no {key!r}" + did_you_mean(key, ("args", "description"))
    args = example.get("args")
    if not is_list(args):
        return "the 'args' of an example must be a list of arguments, such as ['*.py', '--all']"
    if not all([isinstance(arg, (str, int, float)) for arg in args]):
        return "the 'args' of an example must be strings, as they are typed"
    return text_problem(example.get("description", "")) and (
        "the 'description' of an example must be a string"
    )


def _error_codes_problem(value: object) -> str | None:
    if not _is_mapping(value):
        return "must be a dict of codes and meanings, such as {'E3010': 'no file matches'}"
    for code, meaning in value.items():
        if not isinstance(code, str) or not code:
            return f"an error code must be a string such as 'E3010', not {code!r}"
        if not isinstance(meaning, str):
            return f"the meaning of {code} must be a string"
    return None


PIPE_FORMATS = ("jsonl", "json", "csv", "text")
"""The formats of `pipe_input=` and `pipe_output=`."""


def _pipe_problem(value: object) -> str | None:
    keys = ("format", "schema", "description")
    if not _is_mapping(value):
        value = {"format": value}
    for key in value:
        if key not in keys:
            return f"a pipe contract has no {key!r}" + did_you_mean(key, keys)
    if value.get("format") not in PIPE_FORMATS:
        return f"must be one of {', '.join(PIPE_FORMATS)}, or a dict with such a 'format'"
    if not _is_mapping(value.get("schema", {})):
        return "the 'schema' of a pipe contract must be a JSON Schema in a dict"
    return text_problem(value.get("description", "")) and (
        "the 'description' of a pipe contract must be a string"
    )


def _is_mapping(value: object) -> TypeIs[Mapping[object, object]]:
    return hasattr(value, "keys") and hasattr(value, "__getitem__")


_ICON_FIELDS = ("src", "mimeType", "sizes", "theme")


def _icons_problem(value: object) -> str | None:
    """Return what is wrong with the icons of a command or an app, or None."""
    if not is_list(value):
        return "must be a list of URLs, or of dicts such as {'src': 'https://…/icon.png'}"
    for icon in value:
        fields: Mapping[object, object] = icon if _is_mapping(icon) else {"src": icon}
        for key in fields:
            if key not in _ICON_FIELDS:
                return f"an icon has no {key!r}" + did_you_mean(str(key), _ICON_FIELDS)
        source = fields.get("src")
        if not isinstance(source, str) or not source.startswith(("https:", "http:", "data:")):
            return "the 'src' of an icon must be a URL that starts with https:, http: or data:"
    return None


def _meta_problem(value: object) -> str | None:
    """Return what is wrong with the `_meta` of a command or an app, or None."""
    if not _is_mapping(value) or not all([isinstance(key, str) for key in value]):
        return "must be a dict with strings as keys, such as {'com.example/team': 'shop'}"
    if any([str(key).startswith("io.tooli/") for key in value]):
        return "must not have keys that start with 'io.tooli/'"
    return None if _is_json(value) else "must consist of JSON values"


def _is_json(value: object) -> bool:
    if is_list(value):
        return all([_is_json(item) for item in value])
    if _is_mapping(value):
        return all([isinstance(key, str) and _is_json(value[key]) for key in value])
    return value is None or isinstance(value, (str, int, float))


def read_mcp_keywords(title: object, icons: object, meta: object) -> Mapping[str, Any]:
    """Return `title=`, `icons=` and `meta=` as MCP clients get them, without empty ones."""
    found: dict[str, Any] = {}
    if title:
        found["title"] = title
    if icons and is_list(icons):
        found["icons"] = [dict(icon) if _is_mapping(icon) else {"src": icon} for icon in icons]
    if meta and _is_mapping(meta):
        found["meta"] = dict(meta)
    return found


def set_app_keywords(
    state: AppState, permissions: Mapping[str, str] | Sequence[str] | None, **keywords: object
) -> None:
    """Set `permissions=`, `title=`, `icons=` and `meta=` of an app.

    Raises a DefinitionError if one is wrong.
    """
    if permissions is not None:
        from tooli.core.declared_capabilities import read_app_permissions

        state.permissions = read_app_permissions(permissions)
    for name, value in keywords.items():
        problem = None if value is None else _VALIDATORS[name](value)
        if problem is not None:
            raise DefinitionError(f"Tooli({name}=…): {problem}")
    state.mcp = read_mcp_keywords(**keywords)


def _version_problem(value: object) -> str | None:
    if not isinstance(value, str) or not value or "@" in value:
        return "must be a string such as '2.1' or '2026-01-31'"
    return None


def _sunset_problem(value: object) -> str | None:
    from tooli.core.versions import is_date

    return None if is_date(value) else "must be a date such as '2027-01-31'"


def with_end(options: CommandOptions) -> CommandOptions:
    """Return the keywords of a command; `deprecated` tells when the command ends."""
    message, sunset = options.get("deprecated"), options.get("sunset")
    last = options.get("deprecated_version")
    ends = [f"removed in version {last}"] if last else []
    ends += [f"refused after {sunset}"] if sunset else []
    if not ends:
        return options
    end = " and ".join(ends)
    return {**options, "deprecated": f"{message} ({end})" if isinstance(message, str) else end}


CALLERS = ("direct", "code")
"""Who may call a command: any caller of an interface, or the scripts of `orchestrate run`."""

_GUARD_VALIDATORS: dict[str, Validator] = {
    "capabilities": _capabilities_problem,
    "auth": auth_problem,
    "requires_approval": _bool_problem,
    "human_in_the_loop": _bool_problem,
    "danger_level": require_one_of(DANGER_LEVELS),
    "agent_auto_confirm": _bool_problem,
    "isolation": require(lambda value: value == "required", "'required' or left out"),
    "callers": require(
        lambda value: is_list(value) and bool(value) and all([v in CALLERS for v in value]),
        "a list of 'direct', 'code' or both",
    ),
}


_VALIDATORS: dict[str, Validator] = {
    **_GUARD_VALIDATORS,
    "annotations": require(
        lambda value: isinstance(value, Behavior),
        "ReadOnly, Idempotent, Destructive, OpenWorld or several joined by `|`",
    ),
    "timeout": require(
        lambda value: isinstance(value, (int, float)) and parse_timeout(value) is not None,
        f"a number of seconds above 0, at most {MAX_TIMEOUT_SECONDS:.0f}",
    ),
    "rate_limit": require(is_rate_limit, RATE_LIMIT_FORMAT),
    "paginated": require(
        lambda value: isinstance(value, int) and value >= 0,
        "True or the number of records on a page",
    ),
    "max_tokens": require(
        lambda value: isinstance(value, int) and value is not True and value >= 1,
        "a whole number of tokens, at least 1",
    ),
    "cost_hint": require_one_of(COST_HINTS),
    "summary": text_problem,
    "tags": require(
        lambda value: is_list(value) and all([isinstance(tag, str) for tag in value]),
        "a list of strings",
    ),
    "title": text_problem,
    "icons": _icons_problem,
    "meta": _meta_problem,
    "output_schema": require(_is_mapping, "a JSON Schema in a dict"),
    "examples": _examples_problem,
    "when_to_use": text_problem,
    "handoffs": _handoffs_problem,
    "delegation_hint": text_problem,
    "error_codes": _error_codes_problem,
    "task_group": text_problem,
    "pipe_input": _pipe_problem,
    "pipe_output": _pipe_problem,
    "always_visible": _bool_problem,
    "own_options": require(
        lambda value: is_list(value) and all([str(name) in SAFETY_OPTIONS for name in value]),
        f"a list of {', '.join(sorted(SAFETY_OPTIONS))}",
    ),
    "version": _version_problem,
    "sunset": _sunset_problem,
    "deprecated_version": _version_problem,
    "pre_validate": require(callable, "a function"),
    "native": _bool_problem,
    "input_model": require(lambda value: isinstance(value, type), "a pydantic model class"),
    "input_schema": require(_is_mapping, "a JSON Schema in a dict"),
    "resource": text_problem,
}

COMMAND_KEYWORDS = frozenset(_VALIDATORS)
"""The keywords of `@app.command(…)` that Typer's `command` does not have."""


# ------------------------------------------------------------------ readers


def read_guard(options: CommandOptions) -> Guard:
    """Return the Guard that a command's keywords declare."""
    auth = options.get("auth")
    return Guard(
        scopes=None if auth is None else tuple(auth),
        capabilities=tuple(options.get("capabilities") or ()),
        approval=bool(options.get("requires_approval")),
        human_in_the_loop=bool(options.get("human_in_the_loop")),
        danger=options.get("danger_level"),
        auto_confirm=bool(options.get("agent_auto_confirm")),
        isolation=options.get("isolation"),
        callers=tuple(options.get("callers") or ()),
    )


def read_limits(options: CommandOptions, returns_page: bool) -> Limits:
    """Return the Limits that a command's keywords declare.

    `returns_page` is True if the function may return a `Page`.
    """
    size = options.get("paginated")
    return Limits(
        timeout=options.get("timeout"),
        max_tokens=options.get("max_tokens"),
        cost_hint=options.get("cost_hint"),
        paginated=bool(size) or returns_page,
        page_size=DEFAULT_PAGE_SIZE if size is True else size or None,
        returns_page=returns_page,
        rate_limit=options.get("rate_limit"),
    )


def read_guidance(
    options: CommandOptions, may_return_next: bool, may_return_partial: bool = False
) -> Guidance:
    """Return the Guidance that a command's keywords declare.

    `may_return_next` and `may_return_partial` are True if the function may return a `Next` or a
    `Partial`. The error of a `Partial` is added to the documented ones.
    """
    error_codes = dict(options.get("error_codes") or {})
    if may_return_partial:
        error_codes.setdefault(PartialFailure.code, ERROR_CODES[PartialFailure.code][0])
    declared = options.get("handoffs")
    handoffs: tuple[Handoff, ...] = ()
    if declared:
        from tooli.core.catalog import read_handoffs

        handoffs = read_handoffs(declared)
    return Guidance(
        examples=tuple(options.get("examples") or ()),
        when_to_use=options.get("when_to_use"),
        handoffs=handoffs,
        delegation_hint=options.get("delegation_hint"),
        error_codes=error_codes,
        task_group=options.get("task_group"),
        summary=options.get("summary"),
        tags=tuple(options.get("tags") or ()),
        sunset=options.get("sunset"),
        deprecated_version=options.get("deprecated_version"),
        output_schema=options.get("output_schema"),
        mcp=read_mcp_keywords(options.get("title"), options.get("icons"), options.get("meta")),
        always_visible=bool(options.get("always_visible")),
        may_return_next=may_return_next,
        may_return_partial=may_return_partial,
        pipe_input=options.get("pipe_input"),
        pipe_output=options.get("pipe_output"),
    )
