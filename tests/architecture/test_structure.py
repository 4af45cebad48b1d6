"""Rules for the source: imports, lengths of files and functions, docstrings, names."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest
from tests.architecture import metrics

MAX_FILE_LINES, MAX_FUNCTION_LINES = 600, 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MODULES = metrics.load_modules()
MAY_IMPORT_PACKAGES = ("cli", "http", "mcp", "serving", "testing", "packaging")
"""Packages whose modules may import third-party packages at the top."""
READER = "tooli.providers.programs.reader."
"""Modules that run in interpreters without tooli. They import each other by relative names."""
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "impl", "misc", "common"}


def test_no_import_cycle() -> None:
    """Imports inside functions count as well."""
    assert metrics.find_cycles(metrics.import_graph(MODULES, lazy=True)) == []


def test_import_graph_includes_lazy_imports_on_request() -> None:
    eager, lazy = (metrics.import_graph(MODULES, lazy=lazy) for lazy in (False, True))
    assert "tooli.core.tool" in eager["tooli.schema"]
    assert all(eager[name] <= lazy[name] for name in MODULES)
    assert eager != lazy


def test_no_relative_import() -> None:
    relative = [
        name
        for name, module in MODULES.items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.level and not name.startswith(READER)
    ]
    assert relative == []


def test_the_reader_of_programs_imports_only_itself_and_the_standard_library() -> None:
    found = {
        name: packages
        for name, module in MODULES.items()
        if name.startswith(READER)
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not getattr(node, "level", 0)
        if (packages := imported_packages(node) - sys.stdlib_module_names)
    }
    assert found == {}


def imported_packages(node: ast.stmt) -> set[str]:
    """Return the top-level packages that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    is_absolute = isinstance(node, ast.ImportFrom) and not node.level
    return {(node.module or "").partition(".")[0]} if is_absolute else set()


def test_no_third_party_import_at_module_level_below_the_surfaces() -> None:
    allowed = {"tooli", *sys.stdlib_module_names}
    found = {
        name: packages
        for name, module in MODULES.items()
        if (name.split(".") + [""])[1] not in MAY_IMPORT_PACKAGES
        for node in module.tree.body
        if (packages := imported_packages(node) - allowed)
    }
    assert found == {}


def test_no_long_file() -> None:
    lengths = {name: module.text.count("\n") for name, module in MODULES.items()}
    assert {name: n for name, n in lengths.items() if n > MAX_FILE_LINES} == {}


def test_no_long_function() -> None:
    lengths = {
        f"{name}.{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name, module in MODULES.items()
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTIONS)
    }
    assert {name: n for name, n in lengths.items() if n > MAX_FUNCTION_LINES} == {}


def undocumented(module: ast.Module) -> Iterator[str]:
    """Yield the public names of a module that have no docstring."""
    if not ast.get_docstring(module):
        yield "the module"
    for node in module.body:
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield node.name


def test_public_names_have_docstrings() -> None:
    found = {name: list(undocumented(module.tree)) for name, module in MODULES.items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_no_vague_module_name() -> None:
    basenames = {name.rpartition(".")[2] for name in MODULES}
    assert basenames & VAGUE_NAMES == set()
    assert [name for name in basenames if name.endswith(("_v2", "_new", "_old"))] == []


def test_public_class_names_are_unique() -> None:
    assert metrics.find_duplicate_classes(MODULES) == {}


def test_module_basenames_are_unique() -> None:
    assert metrics.find_duplicate_basenames(MODULES) == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('"""Text."""\n\n\ndef f():\n    pass\n', ["f"]),
        ('"""Text."""\n\n\ndef _f():\n    pass\n', []),
        ("class A:\n    pass\n", ["the module", "A"]),
    ],
)
def test_undocumented_names_are_found(code: str, found: list[str]) -> None:
    assert list(undocumented(ast.parse(code))) == found
