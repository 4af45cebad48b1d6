"""Measure the structure of the source tree: size, imports, cycles, `Any`, duplicate names.

Run `python tests/architecture/metrics.py [src/tooli]` for a table of the figures. The tests in
this folder use the functions.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "tooli"


class Module:
    """One source file."""

    def __init__(self, path: Path, root: Path) -> None:
        parts = path.relative_to(root.parent).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree. Tests are collected without it."""
        return ast.parse(self.text)


@cache
def load_modules(root: Path = ROOT) -> dict[str, Module]:
    """Return the modules of a package folder, by dotted name."""
    modules = [Module(path, root) for path in sorted(root.rglob("*.py"))]
    return {module.name: module for module in modules}


def count_code_lines(text: str) -> int:
    """Return the number of lines with code; blank lines, comments and docstrings do not count."""
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


def find_type_checking_nodes(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes inside `if TYPE_CHECKING:` blocks."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
            if node.test.id == "TYPE_CHECKING":
                for statement in node.body:
                    found.update(ast.walk(statement))
    return found


def find_function_imports(module: Module) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports inside functions."""
    found: set[ast.Import | ast.ImportFrom] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for inner in ast.walk(node):
                if isinstance(inner, (ast.Import, ast.ImportFrom)):
                    found.add(inner)
    return sorted(found, key=lambda node: node.lineno)


def find_imported(module: Module, known: set[str], *, lazy: bool = True) -> set[str]:
    """Return the modules of the package that a module imports at run time."""
    skipped = find_type_checking_nodes(module.tree)
    if not lazy:
        skipped |= set(find_function_imports(module))
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name and name != module.name:
                found.add(name)
    return found


def find_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one module, largest first."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in graph[name]:
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            component: list[str] = []
            while not component or component[-1] != name:
                component.append(stack.pop())
            if len(component) > 1:
                cycles.append(sorted(component))

    sys.setrecursionlimit(5000)
    for name in graph:
        if name not in index:
            visit(name)
    return sorted(cycles, key=len, reverse=True)


def import_graph(modules: dict[str, Module], *, lazy: bool = True) -> dict[str, set[str]]:
    """Return the modules that each module imports; `lazy` includes imports inside functions."""
    known = set(modules)
    return {name: find_imported(module, known, lazy=lazy) for name, module in modules.items()}


def count_any(module: Module) -> int:
    """Return how often a module uses `Any`."""
    return sum(isinstance(n, ast.Name) and n.id == "Any" for n in ast.walk(module.tree))


def find_duplicate_classes(modules: dict[str, Module]) -> dict[str, list[str]]:
    """Return the public class names that more than one module defines, with the modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, module in modules.items():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def find_duplicate_basenames(modules: dict[str, Module]) -> dict[str, list[str]]:
    """Return the last parts of module names that more than one module has, with the modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, module in modules.items():
        if not module.is_package:
            places[name.rpartition(".")[2]].append(name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def longest_function(modules: dict[str, Module]) -> int:
    """Return the number of lines of the longest function."""
    return max(
        (node.end_lineno or 0) - node.lineno + 1
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def measure(root: Path = ROOT) -> dict[str, object]:
    """Return the figures of a source tree, by name."""
    modules = load_modules(root)
    code = sum(count_code_lines(module.text) for module in modules.values())
    cycles = find_cycles(import_graph(modules))
    any_count = sum(count_any(module) for module in modules.values())
    lazy_count = sum(len(find_function_imports(module)) for module in modules.values())
    return {
        "modules": len(modules),
        "lines of code": code,
        "longest function": longest_function(modules),
        "imports inside functions": lazy_count,
        "imports inside functions per 1,000 lines of code": round(1000 * lazy_count / code, 1),
        "import cycles, lazy imports included": len(cycles),
        "modules in the largest cycle": len(cycles[0]) if cycles else 0,
        "Any per 1,000 lines of code": round(1000 * any_count / code, 1),
        "duplicate public class names": len(find_duplicate_classes(modules)),
        "duplicate module basenames": len(find_duplicate_basenames(modules)),
    }


if __name__ == "__main__":
    for figure, value in measure(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT).items():
        print(f"{figure:50} {value}")
