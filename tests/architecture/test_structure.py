"""The shape of the source: no cycles, no long files, no long functions, a word about each."""

from __future__ import annotations

import ast
import pathlib
from functools import cache

import pytest

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


def imports(file: pathlib.Path) -> set[str]:
    """The modules of ours that a file imports when it is imported itself."""
    found: set[str] = set()
    todo: list[ast.AST] = list(tree(file).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: say where from"
            module = node.module or ""
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If):
            is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            todo.extend(node.orelse if is_typing else [*node.body, *node.orelse])
        elif isinstance(node, (ast.Try, ast.With, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(node))
    return found & MODULES.keys()


def test_no_import_cycle() -> None:
    graph = {name: imports(file) - {name} for name, file in MODULES.items()}
    while ready := [name for name, needs in graph.items() if not needs & graph.keys()]:
        for name in ready:
            del graph[name]
    assert not graph, f"a cycle among {sorted(graph)}"


def test_imports_are_found() -> None:
    assert "tooli.core.tool" in imports(MODULES["tooli.schema.convert"])


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
