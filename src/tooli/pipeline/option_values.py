"""Read the values of framework options, in the same way for every interface.

The options are records in `core/options.py`; this module reads the tables generated from them.
"""

from __future__ import annotations

from tooli.core._hot_tables import (
    EXTRA_OPTIONS,
    OPTION_ALIASES,
    OPTION_FIELDS,
    OPTION_KINDS,
    RESULT_OPTIONS,
    RUN_OPTIONS,
    TOKEN_LENGTHS,
)
from tooli.core.call import Options, Problem
from tooli.core.tool import parse_timeout

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def build_options(values: Mapping[str, Any]) -> tuple[Options, tuple[Problem, ...]]:
    """Return the options of a call, and the problems with their values.

    `values` are options by the names that HTTP, MCP and Python use. Problems with result options
    are in `ResultOptions.problems`.
    """
    fields: dict[str, Any] = {}
    result_values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    run_values, problems = read_run_options(values)
    for name, value in {**values, **run_values}.items():
        if OPTION_ALIASES.get(name, name) in RESULT_OPTIONS:
            result_values[name] = value
        elif name == "response_format":
            fields["detailed"], fields["concise"] = value == "detailed", value == "concise"
        elif name in EXTRA_OPTIONS:
            extra[name] = value
        else:
            fields[OPTION_FIELDS[name]] = value
    if result_values:
        from tooli.records.result_options import read_result_options

        fields["result_options"] = read_result_options(result_values)
    return Options(**fields, extra=extra or None), problems


def read_run_options(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Return the values of the run options among `values`, and the problems with them."""
    options: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in RUN_OPTIONS:
        if values.get(name) is not None:
            options[name], expected = read_run_option(name, values[name])
            if expected is not None:
                problems.append(Problem("E1007", name, f"{name} must be {expected}"))
    return options, tuple(problems)


def read_run_option(name: str, value: Any) -> tuple[Any, str | None]:
    """Return the value of a run option, or None and a description of the valid values."""
    if OPTION_KINDS[name] == "seconds":
        seconds = parse_timeout(value)
        return seconds, None if seconds else "a number of seconds above 0"
    max_chars = TOKEN_LENGTHS[name]
    is_valid_length = isinstance(value, str) and 0 < len(value) <= max_chars
    if is_valid_length and value.isascii() and value.isprintable() and " " not in value:
        return value, None
    return None, f"at most {max_chars} printable ASCII characters without spaces"
