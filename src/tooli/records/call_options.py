"""Read the values of framework options, in the same way for every interface.

The options are records in `core/options.py`; this module reads the tables generated from them.
`ResultOptions` select records and fields, and limit the size of the result.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core._hot_tables import (
    CALL_OPTIONS,
    EXTRA_OPTIONS,
    OPTION_ALIASES,
    OPTION_FIELDS,
    RESULT_OPTIONS,
    RUN_OPTIONS,
    TOKEN_LENGTHS,
)
from tooli.core.call import Options, Problem
from tooli.core.timeout_values import parse_timeout
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.output_limits import OutputLimit
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

MAX_NUMBER = 1 << 40


def build_options(values: Mapping[str, Any]) -> tuple[Options, tuple[Problem, ...]]:
    """Return the options of a call, and the problems with their values.

    `values` are options by the names that HTTP, MCP and Python use. Problems with result options
    are in `ResultOptions.problems`.
    """
    fields: dict[str, Any] = {}
    result_values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    run_values, problems = read_run_options(values)
    flag_values, flag_problems = _read_flags(values)
    problems = (*problems, *flag_problems)
    for name, value in {**values, **run_values, **flag_values}.items():
        if OPTION_ALIASES.get(name, name) in RESULT_OPTIONS:
            result_values[name] = value
        elif name == "response_format":
            fields["detailed"], fields["concise"] = value == "detailed", value == "concise"
            if value not in (None, "detailed", "concise"):
                message = "response_format must be concise or detailed"
                problems = (*problems, Problem("E1007", name, message))
        elif name in EXTRA_OPTIONS:
            extra[name] = value
        else:
            fields[OPTION_FIELDS[name]] = value
    if result_values:
        fields["result_options"] = read_result_options(result_values)
    return Options(**fields, extra=extra or None, given=values or None), problems


_FLAG_VALUES: dict[object, bool] = {
    True: True,
    False: False,
    "true": True,
    "false": False,
    None: False,
}
"""The values of a flag. Some clients send them as text, or null for a flag that is not given."""


def _read_flags(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return the values of the flags among `values`, and the problems with them.

    A flag with an invalid value is not set.
    """
    flags: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, value in values.items():
        kind = CALL_OPTIONS[OPTION_ALIASES.get(name, name)][0]
        if kind == "count":
            flags[name] = _parse_number(value or 0) or 0
        elif kind == "flag" and value is not True and value is not False:
            text = value.strip().lower() if isinstance(value, str) else value
            is_known = isinstance(text, (str, int, type(None))) and text in _FLAG_VALUES
            flags[name] = _FLAG_VALUES[text] if is_known else False
            if not is_known:
                message = f"{name!r} must be true or false, not {str(value)!r:.60}"
                problems.append(Problem("E1007", name, message))
    return flags, problems


def read_run_options(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Return the values of the run options among `values`, and the problems with them."""
    options: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in RUN_OPTIONS:
        if values.get(name) is not None:
            options[name], expected = read_run_option(name, values[name])
            if expected is not None:
                problems.append(Problem("E1007", name, f"{name!r} must be {expected}"))
    return options, tuple(problems)


def read_run_option(name: str, value: Any) -> tuple[Any, str | None]:
    """Return the value of a run option, or None and a description of the valid values."""
    if CALL_OPTIONS[name][0] == "seconds":
        seconds = parse_timeout(value)
        return seconds, None if seconds else "a number of seconds above 0"
    max_chars = TOKEN_LENGTHS[name]
    is_valid_length = isinstance(value, str) and 0 < len(value) <= max_chars
    if value == f"<{name}>":
        return None, f"a value in place of {value}"
    if is_valid_length and value.isascii() and value.isprintable() and " " not in value:
        return value, None
    return None, f"at most {max_chars} printable ASCII characters without spaces"


# ------------------------------------------------------------------ result options


class ResultOptions(Record):
    """Paging, filter, fields and size limits of a call; 0 means no limit.

    Sizes that the caller sets take precedence over the tool's own `max_tokens=`. Default sizes come
    from settings or from `max_tokens=`, and the lower one applies. So does the `caller_limit`.
    """

    limit: int | None = None
    max_items: int | None = None
    max_bytes: int | None = None
    max_tokens: int | None = None
    caller_limit: OutputLimit | None = None  # the limit of the agent that reads the answer
    cursor: str | None = None
    filter: str | None = None
    fields: str | None = None
    has_default_sizes: bool = False
    can_save_overflow: bool = False  # a truncated result may be saved completely in a file
    argv: tuple[str, ...] | None = None  # the command line, without the program
    problems: tuple[Problem, ...] = ()

    @property
    def has_explicit_size_limit(self) -> bool:
        """True if the caller limits the bytes or tokens of the answer."""
        return not self.has_default_sizes and (
            self.max_bytes is not None or self.max_tokens is not None
        )

    @property
    def is_paged(self) -> bool:
        """True if the caller asks for a page."""
        return bool(self.limit) or self.cursor is not None

    @property
    def has_size_limit(self) -> bool:
        """True if a limit applies to the size of the answer or its number of records."""
        has_amount = bool(self.max_items or self.max_bytes or self.max_tokens)
        return has_amount or self.caller_limit is not None


def read_result_options(
    values: Mapping[str, Any], argv: tuple[str, ...] | None = None
) -> ResultOptions:
    """Read the result options of any interface: numbers may be text, fields may be a list."""
    parsed: JsonObject = {}
    problems: list[Problem] = []
    for name, value in values.items():
        if value is None:
            continue
        option = OPTION_ALIASES.get(name, name)
        kind, _ = CALL_OPTIONS[option]
        if kind == "number":
            number = _parse_number(value)
            if number is None:
                message = f"{name!r} must be a whole number, not {str(value)!r:.60}"
                problems.append(Problem("E1007", name, message))
            else:
                parsed[option] = number
        elif isinstance(value, str) and (value.strip() or name == "cursor"):
            parsed[option] = value
        elif kind == "list" and value and is_list(value):
            parsed[option] = ",".join(map(str, value))
        else:
            problems.append(
                Problem("E1007", name, f"{name!r} must be text, not {str(value)!r:.60}")
            )
    return ResultOptions(
        **parsed, argv=argv, can_save_overflow=argv is not None, problems=tuple(problems)
    )


def _parse_number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_NUMBER else None


def resolve_result_options(result_options: ResultOptions | None, tool: Tool) -> ResultOptions:
    """Return the options of a call, completed with the limits that the tool declares."""
    limits = tool.limits
    result_options = result_options or ResultOptions()
    if result_options.limit is None and limits.page_size:
        result_options = result_options.replace(limit=limits.page_size)
    if limits.max_tokens and not result_options.has_explicit_size_limit:
        max_tokens = min(result_options.max_tokens or limits.max_tokens, limits.max_tokens)
        result_options = result_options.replace(max_tokens=max_tokens, has_default_sizes=True)
    return result_options
