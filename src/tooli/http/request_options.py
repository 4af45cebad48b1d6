"""Read the framework options of an HTTP request: from its query, its headers and its body."""

from __future__ import annotations

from urllib.parse import parse_qsl

from tooli.config.setting_definitions import BOOLEAN_VALUES
from tooli.core._hot_tables import CALL_OPTIONS, CHOICES, HTTP_HEADERS
from tooli.core.call import DEFAULT_OPTIONS, Options, Problem
from tooli.records.call_options import build_options
from tooli.serving.dispatcher import unknown_option_problem

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

HTTP_OPTIONS = {
    name: kind for name, (kind, interfaces) in CALL_OPTIONS.items() if "http" in interfaces
}
"""The options that the query of a request may contain, and their kinds, by name."""


def read_options(
    query: bytes, headers: Mapping[bytes, bytes]
) -> tuple[Options, tuple[Problem, ...]]:
    """Return the framework options in the query and the headers, and the problems with them."""
    if not query and HTTP_HEADERS.keys().isdisjoint(headers):
        return DEFAULT_OPTIONS, ()
    values: dict[str, str | bool] = {}
    problems: list[Problem] = []
    for header, name in HTTP_HEADERS.items():
        if header in headers:
            values[name] = headers[header].decode("latin-1").strip().strip('"')
    names_in_headers = {*values}
    given = dict(values)
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return DEFAULT_OPTIONS, (Problem("E1007", None, "The query has too many parameters"),)
    for name, value in pairs:
        kind = HTTP_OPTIONS.get(name)
        if given.setdefault(name, value) != value and kind is not None:
            problems.append(_conflicting_option_problem(name, name in names_in_headers))
        if kind is None:
            problems.append(unknown_option_problem(name, HTTP_OPTIONS))
        elif kind == "flag":
            flag = BOOLEAN_VALUES.get(value.lower())
            if flag is None:
                problems.append(_invalid_option_problem(name, value, "true or false"))
            values[name] = bool(flag)
        elif kind == "choice":
            if value in CHOICES[name]:
                values[name] = value
            else:
                expected = " or ".join(CHOICES[name])
                problems.append(_invalid_option_problem(name, value, expected))
        else:
            values[name] = value
    options, option_problems = build_options(values)
    return options, (*problems, *option_problems)


def take_body_options(
    tool: Tool, arguments: JsonObject, options: Options
) -> tuple[JsonObject, Options, tuple[Problem, ...]]:
    """Return the arguments, the options and the problems of a body that contains options too.

    Some clients send all properties together. The query and the headers win.
    """
    names = [name for name in arguments if name in HTTP_OPTIONS and name not in tool.param_names]
    if not names:
        return arguments, options, ()
    given = {name: arguments[name] for name in names if arguments[name] is not None}
    rest = {name: value for name, value in arguments.items() if name not in names}
    _, problems = build_options(given)
    merged, _ = build_options({**given, **(options.given or {})})
    return rest, merged, problems


def _invalid_option_problem(name: str, value: str, expected: str) -> Problem:
    return Problem("E1007", name, f"{name} must be {expected}, not {value[:80]!r}")


def _conflicting_option_problem(name: str, is_header: bool) -> Problem:
    """Return the problem for an option with two different values."""
    if is_header:
        (header,) = [key for key, option in HTTP_HEADERS.items() if option == name]
        message = f"The header {header.decode().title()} and ?{name}= differ: send only one of them"
    else:
        message = f"?{name}= is given twice with different values: send it once"
    return Problem("E1050" if name == "idempotency_key" else "E1007", name, message)
