"""Catalog: an app's tools by name, as descriptions and surfaces read them."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tooli.core.tool import Tool
    from tooli.errors import DefinitionError


class Catalog:
    """An app's tools, in order of registration. Immutable; a transform is `Catalog -> Catalog`.

    A command with an invalid definition never affects the others. `problems` maps the key of such
    a command to its error. A command that cannot be read is not in the catalog. A handoff to an
    unknown command is removed from its tool.
    """

    __slots__ = ("_tools", "problems")

    def __init__(
        self, tools: Iterable[Tool], problems: Mapping[str, DefinitionError] | None = None
    ) -> None:
        self._tools = {tool.key: tool for tool in tools}
        self.problems: dict[str, DefinitionError] = {**(problems or {})}
        if any([tool.guidance.handoffs for tool in self._tools.values()]):
            self._resolve_handoffs()

    def _resolve_handoffs(self) -> None:
        from tooli.core.handoffs import resolve_handoffs
        from tooli.errors import DefinitionError, function_location

        keys = (*self._tools, *self.problems)
        for key, tool in self._tools.items():
            if tool.guidance.handoffs and not tool.guidance.handoffs_resolved:
                resolved = self._tools[key] = resolve_handoffs(tool, keys)
                problem = resolved.guidance.problem
                if problem is not None:
                    self.problems[key] = DefinitionError(problem, function_location(tool.fn))

    def find_problem(self, name: str) -> DefinitionError | None:
        """Return the definition error of a command that is not in the catalog, or None."""
        folded = _fold_name(name)
        for key, problem in self.problems.items():
            if key not in self._tools and _fold_name(key) == folded:
                return problem
        return None

    def __getitem__(self, key: str) -> Tool:
        return self._tools[key]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, key: object) -> bool:
        return key in self._tools

    def __repr__(self) -> str:
        return f"Catalog({', '.join(self._tools)})"


def _fold_name(name: str) -> str:
    """Return a name in a form for comparison, because surfaces use different separators."""
    return name.lower().replace("-", "_").replace(".", "_").replace("/", "_").replace(" ", "_")
