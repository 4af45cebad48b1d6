"""Deferred discovery: a large app shows a search and a runner, not hundreds of schemas.

search_tools("delete old files") ─▶ compact signatures, best first
run_tool("users_create", {…})    ─▶ exactly what calling the tool gives
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.contract.reading import read_tool
from tooli.contract.schema import input_schema
from tooli.sources.search import Index
from tooli.sources.signature import signature

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.contract.tool import Tool
    from tooli.surfaces.serving import Desk

SEARCH, RUN = "search_tools", "run_tool"


class Deferral:
    """What is listed of an app whose tools are found by searching, and what can be called."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._edition = -1
        self._index: Index | None = None
        self._names: dict[str, str] = {}
        self._own = {SEARCH: self._own_tool(SEARCH, self._search), RUN: self._own_tool(RUN, _run)}

    def _own_tool(self, name: str, fn: Any) -> Tool:
        said = {"annotations": ReadOnly} if name == SEARCH else {"input_schema": _RUNNING}
        path = (name.replace("_", "-"),)  # for anyone: what is found or run has guards of its own
        return read_tool(fn, app=self._desk.name, path=path, said={**said, "auth": ()})

    @property
    def shown(self) -> Mapping[str, Tool]:
        """The search, the runner, and the tools that are marked always visible."""
        marked = {n: t for n, t in self._desk.tools.items() if t.guidance.always_visible}
        return {**self._own, **marked}

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Everything that can be called; an app's own search_tools stays its own."""
        return {**self._own, **self._desk.tools}

    def meant(self, name: str, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """The tool that a call is about, and its parameters: `run_tool` stands for another."""
        given: Any = params.get("arguments") or {}
        wanted = given.get("name")
        if name != RUN or RUN in self._desk.tools or not isinstance(wanted, str):
            return name, params
        inner: Any = given.get("arguments")
        if given.keys() - {"name", "arguments"} or not isinstance(inner, (dict, type(None))):
            return name, params  # the runner itself says what is wrong
        found = self._by_any_name(wanted)
        if found is None:
            return name, params
        return found, {**params, "name": found, "arguments": inner or {}}

    def _by_any_name(self, wanted: str) -> str | None:
        tools = self._desk.tools
        if wanted in tools:
            return wanted
        tool = self._desk.app.find(wanted)
        return next((name for name, one in tools.items() if one is tool), None) if tool else None

    def _search(
        self, query: str, limit: int = 10, with_schema: bool = False
    ) -> list[dict[str, object]]:
        """Find the tools that fit a description, best first; call them with run_tool.

        Args:
            query: What the tool should do, or a part of its name; `group:` keeps to a group.
            limit: How many to show.
            with_schema: With the JSON Schema of their arguments.
        """
        if self._index is None or self._edition != self._desk.edition:
            tools = self._desk.tools
            self._names = {tool.id: name for name, tool in tools.items()}
            self._index = Index(tools.values())
            self._edition = self._desk.edition
        found: list[dict[str, object]] = []
        for hit in self._index.search(query, max(1, min(limit, 100))):
            shown: dict[str, object] = {
                "name": self._names[hit.tool.id],
                "signature": signature(hit.tool),
            }
            if with_schema:
                shown["inputSchema"] = input_schema(hit.tool)
            found.append(shown)
        return found


_RUNNING = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool's name, as search_tools gives it."},
        "arguments": {
            "type": "object",
            "description": "Its arguments, as its signature has them.",
            "additionalProperties": True,
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


def _run(name: str, arguments: dict[str, object] | None = None) -> None:
    """Call a tool that search_tools has found."""
    from tooli.errors import InputError, Suggestion

    raise InputError(
        f"There is no tool {name!r}.",
        code="E1001",
        field="name",
        suggestion=Suggestion("use_different_tool", "Look for its name with search_tools."),
    )
