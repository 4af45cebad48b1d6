"""`only=` and `exclude=` of providers."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.errors import DefinitionError
from tooli.providers.tool_selection import ToolSelection


def test_names_and_patterns() -> None:
    selection = ToolSelection("P", ["get-*", "add"], ["get-env"])
    assert [n for n in ("add", "get-a", "get-env", "sub") if selection.includes(n)] == [
        "add",
        "get-a",
    ]
    assert ToolSelection("P", None, None).includes("anything")
    assert not ToolSelection("P", [], None).includes("anything")


def test_unknown_names() -> None:
    selection = ToolSelection("P", ["ad", "x*"], ["nothing"])
    problems = selection.find_unknown(["add"])
    assert problems["ad"] == "only=: the source has no tool 'ad'; did you mean 'add'?"
    assert set(problems) == {"ad", "x*"}


@pytest.mark.parametrize("names", ["add", [1]])
def test_invalid_names(names: Any) -> None:
    with pytest.raises(DefinitionError, match=r"P\(only=.*must be a list of names"):
        ToolSelection("P", names, None)
    with pytest.raises(DefinitionError, match="exclude="):
        ToolSelection("P", None, names)
