"""Validate JSON values against JSON Schemas, and describe what is wrong.

    schema ─▶ build_validator ─▶ find_problems(validator, value) ─▶ problems

It is used for HTTP requests that ask for strict handling, and for tools that a JSON Schema
describes. The first validator imports jsonschema, which a plain install does not have.
"""

from __future__ import annotations

import re
from datetime import date, time
from itertools import islice

from tooli.core.tool import MAX_PROBLEMS, join_path
from tooli.schema.pattern_search import PatternTimeout, has_match
from tooli.schema.schema_cost import (
    ReferenceLimit,
    check_expansion,
    count_reference,
    limit_references,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    from tooli.core.protocols import JsonObject

    SchemaProblem: TypeAlias = tuple[str, str | None, str]
    """The error code, the field and the message: the first fields of a `Problem`."""

_MAX_PROBLEMS = MAX_PROBLEMS + 1  # one more than an error lists, so that it says there are more
_MAX_MESSAGE_CHARS = 200


def build_validator(schema: JsonObject) -> Validator:
    """Return a validator for a schema, of the draft that its `$schema` names.

    Raises `jsonschema.SchemaError` if the schema is not valid.
    """
    from jsonschema import Draft202012Validator, FormatChecker, validators
    from referencing.jsonschema import EMPTY_REGISTRY

    formats = FormatChecker(formats=("email", "ipv4", "ipv6", "regex"))
    for name, is_valid in FORMAT_CHECKS.items():
        formats.checks(name)(_text_check(is_valid))
    validator_for: Any = getattr(validators, "validator_for")  # noqa: B009  it has no types
    draft: Any = validator_for(schema, Draft202012Validator)
    draft.check_schema(schema)
    check_expansion(schema)
    extend: Any = getattr(validators, "extend")  # noqa: B009  it has no types
    keyword_overrides = {
        "anyOf": _validate_any_of,
        "oneOf": _validate_one_of,
        "uniqueItems": _validate_unique_items,
        "pattern": _validate_pattern,
        "patternProperties": _validate_pattern_properties,
        "additionalProperties": _validate_additional_properties,
    }
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in draft.VALIDATORS:
            keyword_overrides[keyword] = _count_references(draft.VALIDATORS[keyword])
    validator_class = extend(draft, keyword_overrides)
    # with an empty registry, no schema is fetched over the network
    return validator_class(schema, format_checker=formats, registry=EMPTY_REGISTRY)


def find_problems(validator: Validator, value: Any) -> tuple[SchemaProblem, ...]:
    """Return the first problems of a value. May be slow: call it in a thread."""
    try:
        with limit_references(value):
            errors = list(islice(validator.iter_errors(value), _MAX_PROBLEMS))
    except RecursionError:
        return (("E1003", None, "The body is nested too deeply"),)
    except ReferenceLimit:
        return (("E1003", None, "The schema is too complex to check these values"),)
    except BaseException as failure:
        # near the limit of recursion, the library of jsonschema in Rust raises it
        if type(failure).__name__ != "PanicException":
            raise
        return (("E1003", None, "The body is nested too deeply"),)
    return tuple(dict.fromkeys(islice(_to_problems(errors), _MAX_PROBLEMS)))


# ------------------------------------------------------------------ problems


def _to_problems(errors: list[ValidationError]) -> Iterator[SchemaProblem]:
    """Yield the problems for the errors. For a value of the wrong type, yield only that problem."""
    type_error_paths = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    for error in errors:
        if error.validator == "type" or tuple(error.absolute_path) not in type_error_paths:
            yield from _error_problems(error)


def _error_problems(error: Any) -> Iterator[SchemaProblem]:
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
        yield "E1003", field, f"{field!r}: {text}" if field else text


def _field_problem(code: str, path: list[str], problem: str) -> SchemaProblem:
    field = join_path(*path)
    return code if len(path) == 1 else "E1003", field, f"{field!r} {problem}"


def _unexpected_properties(error: Any) -> list[str]:
    """Return the names in an object that its schema does not allow."""
    return list(_other_properties(error.instance, error.schema))


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
    yield _make_error("no alternative matches", context=context)


def _validate_one_of(
    validator: Any, branches: Sequence[JsonObject], value: object, schema: object
) -> Iterator[ValidationError]:
    """Validate `oneOf`: exactly one alternative must match."""
    matches = [branch for branch in branches if validator.evolve(schema=branch).is_valid(value)]
    if not matches:
        yield from _validate_any_of(validator, branches, value, schema)
    elif len(matches) > 1:
        yield _make_error("more than one alternative matches")


def _validate_unique_items(
    validator: Validator, is_required: bool, items: object, _: object
) -> Iterator[ValidationError]:
    """Validate `uniqueItems` in linear time."""
    if (
        is_required
        and is_list(items)
        and len({_json_identity(item) for item in items}) < len(items)
    ):
        yield _make_error("the items are not unique")


def _validate_pattern(
    validator: Any, pattern: str, value: object, _: object
) -> Iterator[ValidationError]:
    """Validate `pattern`, in a limited time."""
    if validator.is_type(value, "string"):
        try:
            if not has_match(pattern, str(value)):
                yield _make_error(f"{value!r} does not match {pattern!r}")
        except PatternTimeout:
            yield _make_error(f"it takes too long to compare the text with {pattern!r}")


def _validate_pattern_properties(
    validator: Any, patterns: Mapping[str, object], value: object, _: object
) -> Iterator[ValidationError]:
    """Validate `patternProperties`, in a limited time."""
    if not validator.is_type(value, "object") or not is_object(value):
        return
    for pattern, schema in patterns.items():
        for name, item in value.items():
            try:
                is_match = has_match(pattern, name)
            except PatternTimeout:
                yield _make_error(f"it takes too long to compare a name with {pattern!r}")
                return
            if is_match:
                yield from validator.descend(item, schema, path=name, schema_path=pattern)


def _validate_additional_properties(
    validator: Any, allowed: object, value: object, schema: JsonObject
) -> Iterator[ValidationError]:
    """Validate `additionalProperties`, in a limited time."""
    if not validator.is_type(value, "object") or not is_object(value):
        return
    others = list(_other_properties(value, schema))
    if is_object(allowed):
        for name in others:
            yield from validator.descend(value[name], allowed, path=name)
    elif not allowed and others:
        yield _make_error("additional properties are not allowed")


def _other_properties(value: Mapping[str, object], schema: JsonObject) -> Iterator[str]:
    """Yield the names in an object that its schema does not have.

    A name that cannot be compared with a pattern in time counts as one of them.
    """
    known: JsonObject = schema.get("properties", {})
    patterns: JsonObject = schema.get("patternProperties", {})
    for name in value:
        try:
            if name in known or any([has_match(pattern, name) for pattern in patterns]):
                continue
        except PatternTimeout:
            pass
        yield name


def _count_references(validate: Any) -> Any:
    """Return the function of `$ref` that counts how often it is used in a check."""

    def validate_reference(validator: Any, reference: Any, value: Any, schema: Any) -> Any:
        with count_reference():
            yield from validate(validator, reference, value, schema) or ()

    return validate_reference


def _make_error(message: str, **fields: Any) -> ValidationError:
    from jsonschema import ValidationError

    return ValidationError(message, **fields)


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
