"""What a filter tests: closures over a record, which answer for any value and never raise."""

from __future__ import annotations

from tooli.contract.fields import Many, kind_of, reader

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from tooli.contract.fields import FieldPath

    Test: TypeAlias = Callable[[Any], bool]


def any_of(tests: list[Test]) -> Test:
    """Whether one of several tests holds."""
    if len(tests) == 2:
        one, other = tests
        return lambda record: one(record) or other(record)
    return lambda record: any([test(record) for test in tests])


def all_of(tests: list[Test]) -> Test:
    """Whether all of several tests hold."""
    if len(tests) == 2:
        one, other = tests
        return lambda record: one(record) and other(record)
    return lambda record: all([test(record) for test in tests])


def none_of(test: Test) -> Test:
    """Whether a test does not hold."""
    return lambda record: not test(record)


def at(path: FieldPath, test: Test) -> Test:
    """A test of what stands at a path; where that passes a list, one of its items suffices."""
    read = reader(path)
    if len(path) < 2:
        return lambda record: test(read(record))
    return lambda record: holds(test, read(record))


def holds(test: Test, value: Any) -> bool:
    """Whether a test holds for a value, or for one of many."""
    return any(map(test, value)) if value.__class__ is Many else test(value)


def test_for(word: str, wanted: Any) -> Test:
    """What a value is tested for; values of other types do not pass, and never raise."""
    if word == "==":
        return _equal(wanted)
    if word == "!=":
        return none_of(_equal(wanted))
    if word == "in":
        return any_of([_equal(each) for each in wanted] or [lambda _: False])
    if word == "contains":
        return _contains(wanted)
    if word in ("startswith", "endswith"):
        find: Any = str.startswith if word == "startswith" else str.endswith
        return lambda value: value.__class__ is str and find(value, wanted)
    return _ordered(word, wanted)


def _equal(wanted: Any) -> Test:
    kind = kind_of(wanted)
    if kind in ("null", "boolean"):
        return lambda value: value is wanted
    if kind == "number":
        return lambda value: value == wanted and value.__class__ is not bool
    return lambda value: value == wanted


def _contains(wanted: Any) -> Test:
    same = _equal(wanted)
    text = isinstance(wanted, str)

    def test(value: Any) -> bool:
        if value.__class__ is str:
            return text and wanted in value
        return value.__class__ is list and any(map(same, value))

    return test


def _ordered(word: str, wanted: Any) -> Test:
    classes: tuple[type, ...] = (str,) if isinstance(wanted, str) else (int, float)
    if kind_of(wanted) not in ("string", "number"):
        return lambda _: False
    if word == "<":
        return lambda value: value.__class__ in classes and value < wanted
    if word == "<=":
        return lambda value: value.__class__ in classes and value <= wanted
    if word == ">":
        return lambda value: value.__class__ in classes and value > wanted
    return lambda value: value.__class__ in classes and value >= wanted
