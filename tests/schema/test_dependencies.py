"""Mistakes in dependencies are reported when the command is read."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import DefinitionError, Depends
from tooli.schema.dependencies import read_dependency, read_dependency_param
from tooli.schema.tool_reader import read_params


def needs_text(text: str) -> str:
    return text


def first(value: int = Depends(lambda: 1)) -> int:  # type: ignore[assignment]
    return value


def cycle(value: int = 0) -> int:
    return value


cycle.__defaults__ = (Depends(cycle),)


async def wait() -> int:
    return 1


def after(value: int = Depends(wait)) -> int:  # type: ignore[assignment]
    return value


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (needs_text, "'text' needs a default, a Context or Depends"),
        (cycle, "depends on itself"),
        (3, "must be a function or a class"),
    ],
)
def test_mistakes_are_definition_errors(fn: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        read_dependency(fn, read_params)


@pytest.mark.parametrize(("fn", "is_async"), [(first, False), (wait, True), (after, True)])
def test_async_dependencies_are_recognized(fn: Any, is_async: bool) -> None:
    assert read_dependency(fn, read_params).is_async is is_async


def test_other_parameters_are_none_of_its_business() -> None:
    assert read_dependency_param("text", str, "x", read_params) is None
