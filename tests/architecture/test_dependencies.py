"""Every declared dependency is imported somewhere in the source."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.architecture.metrics import load_modules

tomllib: Any = pytest.importorskip("tomllib")
PROJECT: dict[str, Any] = tomllib.loads(
    (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
IMPORT_NAMES = {"pyyaml": "yaml"}
"""Packages whose import name differs from the name of the distribution."""

USED_BY_UVICORN = ("httptools", "uvloop")
"""Packages that uvicorn imports if they are installed."""


@cache
def find_imports() -> set[str]:
    """Return the top-level packages that the source imports, inside functions as well."""
    found: set[str] = set()
    for module in load_modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def import_name(requirement: str) -> str:
    """Return the name under which a required package is imported."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    name = match[0].lower()
    return IMPORT_NAMES.get(name, name.replace("-", "_"))


REQUIREMENTS = [
    *[("tooli", requirement) for requirement in PROJECT["dependencies"]],
    *[(extra, name) for extra, names in EXTRAS.items() if extra != "all" for name in names],
]


@pytest.mark.parametrize(("extra", "requirement"), REQUIREMENTS)
def test_dependency_is_imported(extra: str, requirement: str) -> None:
    name = import_name(requirement)
    assert name in (*find_imports(), *USED_BY_UVICORN), f"{extra} declares {requirement}"


def test_extra_all_contains_every_other_extra() -> None:
    (requirement,) = EXTRAS["all"]
    assert requirement == f"tooli[{','.join(name for name in EXTRAS if name != 'all')}]"
