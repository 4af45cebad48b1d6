"""Find out whether a function may ask a question: `input`, `getpass`, `typer.confirm`, …

MCP servers answer a call of a function that asks nothing in a faster way. The names in the code of
the function are read, and those of the functions of the app that it calls. A question that is not
found is not sent to the client: it fails with an error that says how to answer.
"""

from __future__ import annotations

from types import CodeType, FunctionType, ModuleType
from weakref import WeakKeyDictionary

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_ASKING_NAMES = frozenset(
    (
        *("input", "getpass", "prompt", "confirm", "getchar", "pause"),
        *("Prompt", "Confirm", "IntPrompt", "FloatPrompt"),
    )
)
"""Names of functions and classes that ask. Other objects with such a name cost only time."""

_MAX_FUNCTIONS = 200
"""Functions that are read for one command."""

_results: WeakKeyDictionary[object, bool] = WeakKeyDictionary()


def may_ask(fn: Callable[..., object]) -> bool:
    """True if a function, or one that it calls, may ask a question."""
    try:
        found = _results.get(fn)
        if found is None:
            found = _results[fn] = _scan(fn)
    except TypeError:  # an object without weak references
        found = _scan(fn)
    return found


def _scan(fn: Callable[..., object]) -> bool:
    pending: list[Any] = [fn]
    seen: set[int] = set()
    while pending and len(seen) < _MAX_FUNCTIONS:
        value: Any = pending.pop()
        while hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        value = getattr(value, "__func__", value)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type):
            pending += vars(value).values()
        elif isinstance(value, FunctionType):
            names = set(_names_of(value.__code__))
            if not names.isdisjoint(_ASKING_NAMES):
                return True
            pending += _functions_of_app(value, names)
    return False


def _names_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_of(constant)


def _functions_of_app(fn: FunctionType, names: set[str]) -> Iterator[object]:
    """Yield the functions and classes of the same package that a function names."""
    package = (fn.__module__ or "").partition(".")[0]
    values = [
        *_closure_values(fn),
        *[fn.__globals__[name] for name in names if name in fn.__globals__],
    ]
    for value in values:
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] == package:
                yield from [vars(value)[name] for name in names if name in vars(value)]
        elif str(getattr(value, "__module__", "")).partition(".")[0] == package:
            yield value


def _closure_values(fn: FunctionType) -> Iterator[object]:
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it has no value yet
            continue
