"""What a filter tests: closures over a record, which answer for any value and never raise."""

from __future__ import annotations

from tooli.records.field_paths import MultipleValues, build_getter, json_type_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from tooli.records.field_paths import FieldPath

    Predicate: TypeAlias = Callable[[Any], bool]


def any_of(tests: list[Predicate]) -> Predicate:
    """Whether one of several tests holds."""
    if len(tests) == 2:
        one, other = tests
        return lambda record: one(record) or other(record)
    return lambda record: any([test(record) for test in tests])


def all_of(tests: list[Predicate]) -> Predicate:
    """Whether all of several tests hold."""
    if len(tests) == 2:
        one, other = tests
        return lambda record: one(record) and other(record)
    return lambda record: all([test(record) for test in tests])


def negate(test: Predicate) -> Predicate:
    """Whether a test does not hold."""
    return lambda record: not test(record)


def at_path(path: FieldPath, test: Predicate) -> Predicate:
    """A test of what stands at a path; where that passes a list, one of its items suffices."""
    get_value = build_getter(path)
    if len(path) < 2:
        return lambda record: test(get_value(record))
    return lambda record: matches(test, get_value(record))


def matches(test: Predicate, value: Any) -> bool:
    """Whether a test holds for a value, or for one of many."""
    return any(map(test, value)) if value.__class__ is MultipleValues else test(value)


def build_predicate(operator: str, expected: Any) -> Predicate:
    """What a value is tested for; values of other types do not pass, and never raise."""
    if operator == "==":
        return _equals(expected)
    if operator == "!=":
        return negate(_equals(expected))
    if operator == "in":
        return any_of([_equals(each) for each in expected] or [lambda _: False])
    if operator == "contains":
        return _contains(expected)
    if operator in ("startswith", "endswith"):
        find: Any = str.startswith if operator == "startswith" else str.endswith
        return lambda value: value.__class__ is str and find(value, expected)
    return _compares(operator, expected)


def _equals(expected: Any) -> Predicate:
    kind = json_type_of(expected)
    if kind in ("null", "boolean"):
        return lambda value: value is expected
    if kind == "number":
        return lambda value: value == expected and value.__class__ is not bool
    return lambda value: value == expected


def _contains(expected: Any) -> Predicate:
    is_equal = _equals(expected)
    is_text = isinstance(expected, str)

    def test(value: Any) -> bool:
        if value.__class__ is str:
            return is_text and expected in value
        return value.__class__ is list and any(map(is_equal, value))

    return test


def _compares(operator: str, expected: Any) -> Predicate:
    classes: tuple[type, ...] = (str,) if isinstance(expected, str) else (int, float)
    if json_type_of(expected) not in ("string", "number"):
        return lambda _: False
    if operator == "<":
        return lambda value: value.__class__ in classes and value < expected
    if operator == "<=":
        return lambda value: value.__class__ in classes and value <= expected
    if operator == ">":
        return lambda value: value.__class__ in classes and value > expected
    return lambda value: value.__class__ in classes and value >= expected
