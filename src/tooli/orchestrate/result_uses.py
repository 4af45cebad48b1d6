"""Find the calls in a script whose results the script only passes on.

In a dry run, a call that changes something returns a placeholder. The plan is right as long as the
script does not use its value:

    await drop(name="tea")                    the result is not used
    item = await add(name="tea")              it is passed on to another call, or returned
    await label(id=item)
    if await drop(name="tea") == "done": …    the script uses its value

The sandbox cannot detect this, because a placeholder also has a value in conditions and
comparisons. So the uses of each result are followed in the source. Any use that is not known to
pass the result on counts as a use of its value.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, TypeAlias

    Rule: TypeAlias = Callable[[Any, ast.AST, int], bool]
    """Takes the parent of a value, the value and its depth; see `_Uses`."""

_STORING_METHODS = frozenset(("append", "extend"))
"""Methods that store the values that they get in a list."""

_SAME_ITEMS = frozenset(("list", "tuple", "reversed"))
"""Functions that return a container with the items of another one."""

_SCOPE_FUNCTIONS = frozenset(("globals", "locals", "vars"))
"""Functions that reach variables without their names."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MAX_DEPTH = 8


def find_unused_results(source: str, tools: Collection[str]) -> frozenset[int]:
    """Return the positions of the calls of these functions whose results are only passed on.

    A position is the number of bytes in UTF-8 before the call. The result is empty if the source
    cannot be parsed here.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the sandbox parses it, too
        return frozenset()
    if "\r" in source or "\f" in source:  # Python and the sandbox count lines differently
        return frozenset()
    starts = [0]
    for line in source.encode("utf-8", "replace").split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    uses = _Uses(tree, tools)
    found = [call for call in uses.calls if uses.is_passed_on(call)]
    return frozenset([starts[call.lineno - 1] + call.col_offset for call in found])


class _Uses:
    """The names, functions and calls of a script, and what becomes of a value.

    A value has a depth: 0 is the placeholder itself, 1 is a container of placeholders, and so on.
    Whether a container is empty and how many items it has is known. Scopes are ignored: a name is
    followed wherever it is used.
    """

    def __init__(self, tree: ast.Module, tools: Collection[str]) -> None:
        self.calls: list[ast.Call] = []
        self._tools = tools
        self._parents: dict[ast.AST, ast.AST] = {}
        self._loads: dict[str, list[ast.Name]] = {}
        self._own_names: set[str] = set()  # that the script binds to something else
        self._seen: set[tuple[ast.AST, int]] = set()
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
            self._note_names(node)
            if isinstance(node, ast.Call) and _function_name(node) in tools:
                self.calls.append(node)
        self._uses_scopes = not _SCOPE_FUNCTIONS.isdisjoint(self._loads)
        self._rules: dict[type[ast.AST], Rule] = {
            ast.Expr: lambda parent, node, depth: True,  # not used, or the result of the script
            ast.Await: self._pass_on,
            ast.Starred: self._pass_on,
            ast.keyword: self._pass_on,
            ast.Return: self._in_return,
            ast.List: self._in_display,
            ast.Tuple: self._in_display,
            ast.Dict: self._in_display,
            ast.ListComp: self._in_comprehension,
            ast.GeneratorExp: self._in_comprehension,
            ast.DictComp: self._in_comprehension,
            ast.comprehension: self._in_loop,
            ast.For: self._in_loop,
            ast.Assign: self._in_assignment,
            ast.AnnAssign: self._in_assignment,
            ast.NamedExpr: self._in_named_expression,
            ast.If: self._in_test,
            ast.While: self._in_test,
            ast.IfExp: self._in_test,
            ast.BinOp: self._in_sum,
            ast.AugAssign: self._in_sum,
            ast.Subscript: self._in_subscript,
            ast.Attribute: self._in_attribute,
            ast.Call: self._in_call,
        }

    def _note_names(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._loads.setdefault(node.id, []).append(node)
            else:
                self._own_names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._own_names.add(node.name)
        elif isinstance(node, ast.arg):
            self._own_names.add(node.arg)
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            names = [alias.asname or alias.name for alias in node.names if alias.name != "gather"]
            self._own_names.update(names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._own_names.update([alias.asname or alias.name for alias in node.names])
            self._own_names.discard("asyncio")

    def is_passed_on(self, call: ast.Call) -> bool:
        """True if no use of the result of a tool call depends on its value."""
        self._seen = set()
        parent: ast.AST | None = call
        while parent is not None:  # before Python 3.12, positions in f-strings are wrong
            if isinstance(parent, ast.JoinedStr):
                return False
            parent = self._parents.get(parent)
        return not self._uses_scopes and self._follow(call, 0)

    def _follow(self, node: ast.AST, depth: int) -> bool:
        """True if no use of an expression depends on its value."""
        if (node, depth) in self._seen:
            return True
        self._seen.add((node, depth))
        parent = self._parents[node]
        rule = self._rules.get(type(parent))
        return rule is not None and depth <= _MAX_DEPTH and rule(parent, node, depth)

    # -------------------------------------------------------------- rules, by the parent of a value

    def _pass_on(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`await …`, `*…`, `name=…`: follow the parent."""
        del node
        return self._follow(parent, depth)

    def _in_return(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """Follow the calls of the function that returns the value."""
        del node
        function: Any = parent
        while not isinstance(function, (*_FUNCTIONS, ast.Module)):
            function = self._parents[function]
        if isinstance(function, ast.Module):
            return True  # the result of the script
        if isinstance(function, ast.Lambda) or function.decorator_list:
            return False
        if isinstance(self._parents[function], ast.ClassDef):
            return False
        for load in self._loads.get(function.name, ()):
            call = self._parents[load]
            if not (isinstance(call, ast.Call) and call.func is load and self._follow(call, depth)):
                return False
        return True

    def _in_display(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`[…]`, `(…)`, `{key: …}`."""
        if isinstance(parent, ast.Dict):
            if node in parent.keys:
                return False
            is_unpacked = parent.keys[parent.values.index(node)] is None  # pyright: ignore[reportArgumentType]
        else:
            is_unpacked = isinstance(node, ast.Starred)
        if is_unpacked and depth == 0:
            return False
        return self._follow(parent, depth if is_unpacked else depth + 1)

    def _in_comprehension(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`[… for … in …]`."""
        return node is not getattr(parent, "key", None) and self._follow(parent, depth + 1)

    def _in_loop(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`for … in …`, also in a comprehension: follow the variables."""
        return node is parent.iter and depth > 0 and self._store(parent.target, depth - 1)

    def _in_assignment(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`name = …`."""
        del node
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return all([self._store(target, depth) for target in targets])

    def _in_named_expression(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`(name := …)`."""
        del node
        return self._store(parent.target, depth) and self._follow(parent, depth)

    def _in_test(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`if …`, `while …`, `… if … else …`: a container is true or false whatever is in it."""
        if isinstance(parent, ast.IfExp) and node is not parent.test:
            return self._follow(parent, depth)
        return node is parent.test and depth > 0

    def _in_sum(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`a + b` and `a += b` of lists."""
        del node
        if not isinstance(parent.op, ast.Add) or depth == 0:
            return False
        if isinstance(parent, ast.AugAssign):
            return self._store(parent.target, depth)
        return self._follow(parent, depth)

    def _in_subscript(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """`items[0]`, `items[1:]`, `items[0] = …`."""
        if node is not parent.value or depth == 0:
            return False
        if not isinstance(parent.ctx, ast.Load):
            return True
        return self._follow(parent, depth if isinstance(parent.slice, ast.Slice) else depth - 1)

    def _in_attribute(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """A method of a container: `items.append(…)`, `d.values()`."""
        del node
        call: Any = self._parents[parent]
        if depth == 0 or not isinstance(call, ast.Call) or call.func is not parent:
            return False
        if parent.attr in self._own_names:  # a method of a class of the script
            return False
        if parent.attr in _STORING_METHODS or parent.attr == "keys":
            return True
        if parent.attr == "items":
            return self._follow_pairs(call, 1, depth)
        return parent.attr in ("values", "copy") and self._follow(call, depth)

    def _in_call(self, parent: Any, node: ast.AST, depth: int) -> bool:
        """An argument of a call: of a tool, of a known function, or of a method that stores it."""
        if node is parent.func:
            return False
        if isinstance(parent.func, ast.Attribute) and parent.func.attr in _STORING_METHODS:
            is_item = parent.func.attr == "append"
            is_own = parent.func.attr in self._own_names
            if is_own or (depth == 0 and not is_item) or node not in parent.args:
                return False
            return self._store(parent.func.value, depth + 1 if is_item else depth)
        name = _function_name(parent)
        if not name or name in self._own_names:
            return False
        is_unpacked = isinstance(node, ast.Starred)
        if is_unpacked and depth == 0:
            return False
        if name in self._tools or name == "print":
            return True
        if name == "gather":
            return self._follow(parent, depth if is_unpacked else depth + 1)
        if depth == 0 or node not in parent.args or is_unpacked:
            return False
        if name in ("zip", "enumerate"):
            position = parent.args.index(node) if name == "zip" else 1
            return self._follow_pairs(parent, position, depth)
        return name == "len" or (name in _SAME_ITEMS and self._follow(parent, depth))

    # -------------------------------------------------------------- variables

    def _follow_pairs(self, call: ast.Call, position: int, depth: int) -> bool:
        """Follow one column of the tuples that `zip`, `enumerate` and `.items()` return."""
        loop: Any = self._parents[call]
        target: Any = getattr(loop, "target", None)
        if isinstance(loop, (ast.For, ast.comprehension)) and isinstance(target, ast.Tuple):
            is_flat = not any([isinstance(item, ast.Starred) for item in target.elts])
            if is_flat and loop.iter is call and position < len(target.elts):
                return self._store(target.elts[position], depth - 1)
        return self._follow(call, depth + 1)

    def _store(self, target: ast.AST, depth: int) -> bool:
        """Follow the value of a variable, or of a container in a variable."""
        if isinstance(target, ast.Subscript):
            is_slice = isinstance(target.slice, ast.Slice)
            return self._store(target.value, depth if is_slice else depth + 1)
        if isinstance(target, (ast.Tuple, ast.List)):
            return depth > 0 and all([self._store(item, depth - 1) for item in target.elts])
        if isinstance(target, ast.Starred):
            return self._store(target.value, depth + 1)
        if not isinstance(target, ast.Name):
            return False
        return all([self._follow(load, depth) for load in self._loads.get(target.id, ())])


def _function_name(call: ast.Call) -> str:
    """Return the name of the called function; "" for a method other than `asyncio.gather`."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        is_gather = (function.value.id, function.attr) == ("asyncio", "gather")
        return "gather" if is_gather else ""
    return ""
