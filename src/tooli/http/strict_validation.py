"""`Prefer: handling=strict` (RFC 7240): validate a body against the tool's published schema.

body ─▶ validator of the tool's schema ─▶ problems ─▶ error of the call

Without this header, values are converted if the conversion is unambiguous: "7" to 7, a list with
duplicates to a set. Contract tests and client tests need an error instead. The first request that
asks for strict handling imports this module and jsonschema.
"""

from __future__ import annotations

import re
from datetime import date, time
from itertools import islice

from jsonschema import Draft202012Validator, FormatChecker, ValidationError, validators
from referencing.jsonschema import EMPTY_REGISTRY

from tooli.core.call import Problem
from tooli.core.tool import MAX_PROBLEMS, join_path
from tooli.schema.json_schema import input_schema
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from typing import Any

    from jsonschema.protocols import Validator

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool

_MAX_PROBLEMS = MAX_PROBLEMS + 1  # one more than an error lists, so that it says there are more
_MAX_MESSAGE_CHARS = 200


class StrictValidator:
    """Validates arguments against the schemas of tools; keeps one validator per tool."""

    def __init__(self) -> None:
        self._validators: dict[int, tuple[Tool, Validator]] = {}

    def problems(self, tool: Tool, arguments: JsonObject) -> tuple[Problem, ...]:
        """Return the first problems of a body. May be slow: call it in a thread."""
        validator = self._validator_for(tool)
        try:
            errors = list(islice(validator.iter_errors(arguments), _MAX_PROBLEMS))
        except RecursionError:
            return (Problem("E1003", None, "The body is nested too deeply"),)
        return tuple(dict.fromkeys(islice(_to_problems(errors), _MAX_PROBLEMS)))

    def _validator_for(self, tool: Tool) -> Validator:
        cached = self._validators.get(id(tool))
        if cached is None:  # the tool is kept, so that its id stays unique
            cached = self._validators[id(tool)] = (tool, _build_validator(input_schema(tool)))
        return cached[1]


def _build_validator(schema: JsonObject) -> Validator:
    formats = FormatChecker(formats=("email", "ipv4", "ipv6", "regex"))
    for name, is_valid in FORMAT_CHECKS.items():
        formats.checks(name)(_text_check(is_valid))
    Draft202012Validator.check_schema(schema)
    extend: Any = getattr(validators, "extend")  # noqa: B009  it has no types
    keyword_overrides = {
        "anyOf": _validate_any_of,
        "oneOf": _validate_one_of,
        "uniqueItems": _validate_unique_items,
    }
    validator_class = extend(Draft202012Validator, keyword_overrides)
    # with an empty registry, no schema is fetched over the network
    return validator_class(schema, format_checker=formats, registry=EMPTY_REGISTRY)


# ------------------------------------------------------------------ problems


def _to_problems(errors: list[ValidationError]) -> Iterator[Problem]:
    """Yield the problems for the errors. For a value of the wrong type, yield only that problem."""
    type_error_paths = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    for error in errors:
        if error.validator == "type" or tuple(error.absolute_path) not in type_error_paths:
            yield from _error_problems(error)


def _error_problems(error: Any) -> Iterator[Problem]:
    """Yield the problems for one error, in the format that argument binding uses."""
    path = [str(step) for step in error.absolute_path]
    inner = (
        _intended_branch_errors(error.context) if error.validator in ("anyOf", "oneOf") else None
    )
    if inner:
        yield from _to_problems(inner)
    elif error.validator == "required":
        for name in [name for name in error.validator_value if name not in error.instance]:
            yield _field_problem("E1002", [*path, name], "is required")
    elif error.validator == "additionalProperties" and error.validator_value is False:
        for name in _unexpected_properties(error):
            yield _field_problem("E1004", [*path, name], "is not allowed here")
    else:
        field = ".".join(path) or None
        secret = is_object(error.schema) and error.schema.get("writeOnly")
        text = "a secret must be a string" if secret else error.message
        text = (
            text
            if len(text) <= _MAX_MESSAGE_CHARS
            else f"{text[: _MAX_MESSAGE_CHARS // 2]}…{text[-80:]}"
        )
        yield Problem("E1003", field, f"{field!r}: {text}" if field else text)


def _field_problem(code: str, path: list[str], problem: str) -> Problem:
    field = join_path(*path)
    return Problem(code if len(path) == 1 else "E1003", field, f"{field!r} {problem}")


def _unexpected_properties(error: Any) -> list[str]:
    """Return the names in an object that its schema does not allow."""
    known: JsonObject = error.schema.get("properties", {})
    patterns: JsonObject = error.schema.get("patternProperties", {})
    return [
        name
        for name in error.instance
        if name not in known and not any([re.search(pattern, name) for pattern in patterns])
    ]


def _intended_branch_errors(context: list[ValidationError]) -> list[ValidationError] | None:
    """Return the errors of the only alternative that is not `null`; None if there are several."""
    branches: dict[str | int, list[ValidationError]] = {}
    for error in context:
        branches.setdefault(error.relative_schema_path[0], []).append(error)
    candidates = [
        errors
        for errors in branches.values()
        if not (errors[0].validator == "type" and errors[0].validator_value == "null")
    ]
    return candidates[0] if len(candidates) == 1 else None


# ------------------------------------------------------------------ keywords and formats
#
# jsonschema's own keywords collect every error of every alternative, and compare every pair of
# items. With them, a small body could keep the server busy for a long time.


def _validate_any_of(
    validator: Any, branches: Sequence[JsonObject], value: object, _: object
) -> Iterator[ValidationError]:
    """Validate `anyOf`, with a limit on the number of errors per alternative."""
    context: list[ValidationError] = []
    for index, branch in enumerate(branches):
        found: Iterator[ValidationError] = validator.descend(value, branch, schema_path=index)
        errors = list(islice(found, _MAX_PROBLEMS))
        if not errors:
            return
        context += errors
    yield ValidationError("no alternative matches", context=context)


def _validate_one_of(
    validator: Any, branches: Sequence[JsonObject], value: object, schema: object
) -> Iterator[ValidationError]:
    """Validate `oneOf`: exactly one alternative must match."""
    matches = [branch for branch in branches if validator.evolve(schema=branch).is_valid(value)]
    if not matches:
        yield from _validate_any_of(validator, branches, value, schema)
    elif len(matches) > 1:
        yield ValidationError("more than one alternative matches")


def _validate_unique_items(
    validator: Validator, is_required: bool, items: object, _: object
) -> Iterator[ValidationError]:
    """Validate `uniqueItems` in linear time."""
    if (
        is_required
        and is_list(items)
        and len({_json_identity(item) for item in items}) < len(items)
    ):
        yield ValidationError("the items are not unique")


def _json_identity(value: object) -> Hashable:
    """Return a hashable key for a value.

    Two keys are equal if their values are equal in JSON: 1 equals 1.0, but 1 does not equal true.
    The key of a number is a text. A caller could choose numbers that all have the same hash.
    """
    if is_list(value):
        return ("list", *[_json_identity(item) for item in value])
    if is_object(value):
        return frozenset([(name, _json_identity(item)) for name, item in value.items()])
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return hex(value) if type(value) is int else repr(value)


def _text_check(is_valid: Callable[[str], bool]) -> Callable[[object], bool]:
    """Return a format check for strings. Other values pass: the keyword `type` checks them."""
    return lambda value: not isinstance(value, str) or is_valid(value)


_DATE_PATTERN = r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_TIME_PATTERN = r"(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?"
_OFFSET_PATTERN = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"


def _pattern_check(pattern: str) -> Callable[[str], bool]:
    """Return a check for texts that match a pattern completely and have a valid date and time."""
    compiled = re.compile(pattern)

    def check(text: str) -> bool:
        found = compiled.fullmatch(text)
        if found is None:
            return False
        parts = found.groupdict()
        try:
            if "day" in parts:
                date.fromisoformat(parts["day"])
            if "clock" in parts:
                time.fromisoformat(parts["clock"])
        except ValueError:
            return False
        return True

    return check


_DURATION_PART_PATTERN = "(?:[0-9]+{})?"
FORMAT_CHECKS: dict[str, Callable[[str], bool]] = {
    "date": _pattern_check(_DATE_PATTERN),
    "time": _pattern_check(_TIME_PATTERN + _OFFSET_PATTERN),
    "date-time": _pattern_check(f"{_DATE_PATTERN}[Tt]{_TIME_PATTERN}{_OFFSET_PATTERN}"),
    "duration": _pattern_check(
        "P(?=[0-9T])(?:[0-9]+W|"
        + "".join([_DURATION_PART_PATTERN.format(unit) for unit in "YMD"])
        + "(?:T(?=[0-9])"
        + "".join([_DURATION_PART_PATTERN.format(unit) for unit in ("H", "M", r"(?:\.[0-9]+)?S")])
        + ")?)"
    ),
    "uuid": _pattern_check(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}
"""Checks of the formats in our schemas, according to RFC 3339 and RFC 9562.

jsonschema needs further packages for times and durations. A duration may have fractions of a
second, because the durations in results have them.
"""
