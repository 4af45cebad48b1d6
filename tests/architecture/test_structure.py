"""The shape of the source: no cycles, no long files, no long functions, a word about each."""

from __future__ import annotations

import ast
import pathlib
from functools import cache

import pytest
from tests.architecture import metrics

import tooli

SOURCE = pathlib.Path(tooli.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 600, 60


def name_of(file: pathlib.Path) -> str:
    parts = ("tooli", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in FILES}


@cache
def tree(file: pathlib.Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_no_import_cycle() -> None:
    """Imports inside functions count as well."""
    cycles = metrics.find_cycles(metrics.import_graph(metrics.load_modules(SOURCE), lazy=True))
    assert cycles == []


def test_imports_are_found() -> None:
    modules = metrics.load_modules(SOURCE)
    eager, lazy = (metrics.import_graph(modules, lazy=lazy) for lazy in (False, True))
    assert "tooli.core.tool" in eager["tooli.schema.convert"]
    assert all(eager[name] <= lazy[name] for name in modules)
    assert eager != lazy


def test_no_relative_import() -> None:
    relative = [
        name
        for name, file in MODULES.items()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_nothing_from_elsewhere_at_module_level_below_the_surfaces() -> None:
    import sys

    for name, file in MODULES.items():
        if name.split(".")[1:2] in (
            *(["cli"], ["http"], ["mcp"], ["serving"], ["testing"], ["packaging"]),
        ):
            continue
        for node in tree(file).body:
            if isinstance(node, ast.Import):
                homes = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                homes = {(node.module or "").partition(".")[0]}
            else:
                continue
            assert homes <= {"tooli", *sys.stdlib_module_names}, name


@pytest.mark.parametrize("name", MODULES)
def test_a_file_is_not_too_long(name: str) -> None:
    lines = MODULES[name].read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_FILE


@pytest.mark.parametrize("name", MODULES)
def test_a_function_is_not_too_long(name: str) -> None:
    for node in ast.walk(tree(MODULES[name])):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name}: {length} lines"


@pytest.mark.parametrize("name", MODULES)
def test_public_things_say_what_they_are(name: str) -> None:
    module = tree(MODULES[name])
    assert ast.get_docstring(module), "the file itself"
    for node in module.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if not node.name.startswith("_"):
                assert ast.get_docstring(node), node.name


@pytest.mark.parametrize("name", MODULES)
def test_no_name_that_says_nothing(name: str) -> None:
    last = name.rpartition(".")[2]
    assert last not in {"utils", "util", "helpers", "helper", "manager", "impl", "misc", "common"}
    assert not last.endswith(("_v2", "_new", "_old"))
