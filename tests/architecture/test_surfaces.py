"""Modules below the surfaces use the properties of Caller, not the name of a surface."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from tests.architecture.test_structure import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator

SURFACES = ("cli", "python", "mcp", "http")
MAY_COMPARE = (
    *("tooli.cli", "tooli.http", "tooli.mcp", "tooli.serving", "tooli.python_api"),
    *("tooli.testing", "tooli.core.call"),  # tooli.core.call defines the properties of Caller
)
BELOW = [name for name in MODULES if not f"{name}.".startswith(tuple(f"{p}." for p in MAY_COMPARE))]


def constants(node: ast.expr) -> Iterator[object]:
    """Yield the constants of an expression or of the items of a literal."""
    for part in node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else (node,):
        if isinstance(part, ast.Constant):
            yield part.value


def compares_surface(node: ast.AST) -> bool:
    """True for `x.surface == …`, `surface in …` and comparisons with the name of a surface."""
    if isinstance(node, ast.Match):
        return names_surface(node.subject)
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    return any(names_surface(side) for side in sides)


def names_surface(node: ast.expr) -> bool:
    """True for the name or attribute `surface`."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name == "surface"


def find_comparisons(module: ast.Module) -> list[int]:
    """Return the lines that compare a surface."""
    return [node.lineno for node in ast.walk(module) if compares_surface(node)]  # type: ignore[attr-defined]


def test_no_module_below_the_surfaces_compares_a_surface() -> None:
    """Such a module uses a property of Caller (owns_process, is_remote, …) instead."""
    lines = {name: find_comparisons(MODULES[name].tree) for name in BELOW}
    assert {name: found for name, found in lines.items() if found} == {}


def test_no_stage_compares_the_name_of_a_surface() -> None:
    found = {
        f"{name}:{node.lineno}"
        for name in BELOW
        if name.startswith(("tooli.pipeline", "tooli.stages"))
        for node in ast.walk(MODULES[name].tree)
        if isinstance(node, ast.Compare)
        if {value for side in node.comparators for value in constants(side)} & {*SURFACES}
    }
    assert found == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('call.caller.surface == "cli"', True),
        ('surface in ("mcp", "http")', True),
        ('"cli" != caller.surface', True),
        ('f"{caller.surface}"', False),
    ],
)
def test_comparisons_of_surfaces_are_found(text: str, found: bool) -> None:
    assert bool(find_comparisons(ast.parse(text))) is found
