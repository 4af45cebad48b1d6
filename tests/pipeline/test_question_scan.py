"""Functions that may ask a question."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import typer

from tooli.pipeline.question_scan import may_ask


def helper() -> str:
    return typer.prompt("?")


def plain(value: str) -> str:
    return value.upper()


class Asker:
    def ask(self) -> str:
        return input()


def uses_helper() -> str:
    return plain(helper())


def uses_class() -> str:
    return Asker().ask()


def uses_nested() -> list[str]:
    return [input() for _ in range(2)]


def recursive() -> object:
    return recursive() or plain("")


@functools.wraps(uses_helper)
def wrapped() -> str:
    return plain("")


def make_closure(fn: Any) -> Any:
    def run() -> object:
        return fn()

    return run


def make_unset() -> Any:
    def run() -> object:
        return later

    if not run:
        later = 1
    return run


class Callable:
    __slots__ = ()

    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (helper, True),
        (uses_helper, True),
        (uses_class, True),
        (uses_nested, True),
        (wrapped, True),
        (make_closure(helper), True),
        (Asker().ask, True),
        (plain, False),
        (recursive, False),
        (make_closure(plain), False),
        (make_unset(), False),
        (len, False),
        (Callable(), False),
    ],
)
def test_may_ask(fn: Any, expected: bool) -> None:
    assert may_ask(fn) is expected
    assert may_ask(fn) is expected  # from the cache


def test_module_of_the_same_package() -> None:
    from tests.pipeline import test_question_scan as module

    scope: dict[str, Any] = {"module": module, "__name__": "tests.other"}
    exec(
        "def run():\n    return module.helper()\ndef silent():\n    return module.plain('')", scope
    )
    assert may_ask(scope["run"])
    assert not may_ask(scope["silent"])
