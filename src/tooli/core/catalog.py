"""Catalog: an app's tools by name, as every view and every door reads them."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tooli.core.tool import Tool


class Catalog:
    """Immutable, in the order of registration. A transform is `Catalog -> Catalog`."""

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.key: tool for tool in tools}
        if any([tool.guidance.handoffs for tool in self._tools.values()]):
            from tooli.core.handoffs import resolve_handoffs

            self._tools = resolve_handoffs(self._tools)

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
