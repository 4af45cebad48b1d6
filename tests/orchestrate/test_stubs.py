"""Typed stubs of tools."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from tests.orchestrate.script_app import Shop

from tooli import Annotated, Option, Tooli
from tooli.annotations import Destructive
from tooli.orchestrate.script_tools import BARRIER, read_script_tools
from tooli.orchestrate.stubs import render_checker_stubs, render_stubs


class Rule(TypedDict, total=False):
    """A rule."""

    match: str


class Renamed(TypedDict):
    old: str
    new: str | None


def stubs_of(app: Tooli) -> str:
    return render_stubs(read_script_tools(app.catalog).values())


def test_shop() -> None:
    assert stubs_of(Shop().app) == (
        "from typing import TypedDict\n\n"
        "class Item(TypedDict):\n"
        '    """An item of the shop."""\n'
        "    name: str\n"
        "    cents: int\n"
        'async def find(text: str = "") -> list[Item]:\n'
        '    """Find items by a part of their name."""\n'
        "async def price(name: str) -> Item:\n"
        '    """Return one item."""\n'
        "async def drop(name: str) -> str:\n"
        '    """Remove an item. Destructive."""\n'
        "async def buy(name: str) -> str:\n"
        '    """Buy an item. A human must approve each call."""\n'
    )


def test_types_of_parameters() -> None:
    app = Tooli("a")

    @app.command(annotations=Destructive)
    def rename(
        files: list[Path],
        rule: Rule,
        ids: list[int | str],
        kind: Literal["a", "b"] = "a",
        text: Annotated[str, Option(help="Text to use\nin names")] = "x" * 100,
        more: dict[str, Any] | None = None,
    ) -> list[Renamed]:
        """Rename files."""
        return []

    app.command("other")(lambda: None)
    text = stubs_of(app)
    ast.parse(text)
    assert "files: list[str]" in text
    assert "rule: Rule" in text
    assert "match: NotRequired[str]" in text
    assert "ids: Sequence[int | str]" in text
    assert 'kind: Literal["a", "b"] = "a"' in text
    assert "text: str = ...," in text
    assert "-> list[Renamed]:" in text
    assert "text: Text to use in names." in text
    assert "from collections.abc import Sequence" in text


def test_no_tools() -> None:
    assert render_stubs([]) == ""


def test_stubs_of_the_checker_have_the_inputs() -> None:
    inputs = {"n": 1, "rows": [{}], "none": None, "mixed": [1, "a"], "empty": [], "flag": True}
    lines = render_checker_stubs([], inputs).split("\n")
    for line in (
        *("n: int", "rows: list[dict[str, Any]]", "none: None", "mixed: list[Any]"),
        *("empty: list[Any]", "flag: bool", f"def {BARRIER}() -> None: ..."),
    ):
        assert line in lines


def test_hostile_description_ends_no_literal() -> None:
    app = Tooli("a")

    @app.command(help='x"""\nimport os  # """')
    def go(name: str = '"""') -> str:
        return name

    app.command("other")(lambda: None)
    module = ast.parse(stubs_of(app))
    assert all(isinstance(node, (ast.ImportFrom, ast.AsyncFunctionDef)) for node in module.body)


@pytest.mark.parametrize("annotation", ["Missing", "list[Missing]"])
def test_result_that_cannot_be_evaluated_is_any(annotation: str) -> None:
    def go() -> int:
        """Go."""
        return 1

    go.__annotations__["return"] = annotation
    app = Tooli("a")
    app.command()(go)
    app.command("other")(lambda: None)
    assert "-> Any" in stubs_of(app)
