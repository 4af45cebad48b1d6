"""Deferred discovery: a large app shows a search and a runner, not hundreds of schemas.

search_tools("delete old files") ─▶ compact signatures, best first
run_tool("users_create", {…})    ─▶ exactly what calling the tool gives
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.providers.search import ToolIndex
from tooli.providers.signature import format_signature
from tooli.schema.json_schema import input_schema
from tooli.schema.tool_reader import read_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.serving.dispatcher import ToolDispatcher

SEARCH_TOOL, RUN_TOOL = "search_tools", "run_tool"


class DeferredTools:
    """What is listed of an app whose tools are found by searching, and what can be called."""

    def __init__(self, dispatcher: ToolDispatcher) -> None:
        self._dispatcher = dispatcher
        self._revision = -1
        self._index: ToolIndex | None = None
        self._names: dict[str, str] = {}
        self._builtin_tools = {
            SEARCH_TOOL: self._make_builtin_tool(SEARCH_TOOL, self._search),
            RUN_TOOL: self._make_builtin_tool(RUN_TOOL, _run_tool),
        }

    def _make_builtin_tool(self, name: str, fn: Any) -> Tool:
        settings = (
            {"annotations": ReadOnly} if name == SEARCH_TOOL else {"input_schema": _RUN_TOOL_SCHEMA}
        )
        path = (name.replace("_", "-"),)  # for anyone: what is found or run has guards of its own
        return read_tool(fn, app=self._dispatcher.name, path=path, kwargs={**settings, "auth": ()})

    @property
    def shown(self) -> Mapping[str, Tool]:
        """The search, the runner, and the tools that are marked always visible."""
        always_visible = {
            n: t for n, t in self._dispatcher.tools.items() if t.guidance.always_visible
        }
        return {**self._builtin_tools, **always_visible}

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Everything that can be called; an app's own search_tools stays its own."""
        return {**self._builtin_tools, **self._dispatcher.tools}

    def resolve_call(self, name: str, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """The tool that a call is about, and its parameters: `run_tool` stands for another."""
        arguments: Any = params.get("arguments") or {}
        target_name = arguments.get("name")
        if (
            name != RUN_TOOL
            or RUN_TOOL in self._dispatcher.tools
            or not isinstance(target_name, str)
        ):
            return name, params
        target_arguments: Any = arguments.get("arguments")
        if arguments.keys() - {"name", "arguments"} or not isinstance(
            target_arguments, (dict, type(None))
        ):
            return name, params  # the runner itself says what is wrong
        found = self._find_tool_name(target_name)
        if found is None:
            return name, params
        return found, {**params, "name": found, "arguments": target_arguments or {}}

    def _find_tool_name(self, wanted_name: str) -> str | None:
        tools = self._dispatcher.tools
        if wanted_name in tools:
            return wanted_name
        tool = self._dispatcher.app.find(wanted_name)
        return (
            next((name for name, candidate in tools.items() if candidate is tool), None)
            if tool
            else None
        )

    def _search(
        self, query: str, limit: int = 10, with_schema: bool = False
    ) -> list[dict[str, object]]:
        """Find the tools that fit a description, best first; call them with run_tool.

        Args:
            query: What the tool should do, or a part of its name; `group:` keeps to a group.
            limit: How many to show.
            with_schema: With the JSON Schema of their arguments.
        """
        if self._index is None or self._revision != self._dispatcher.revision:
            tools = self._dispatcher.tools
            self._names = {tool.id: name for name, tool in tools.items()}
            self._index = ToolIndex(tools.values())
            self._revision = self._dispatcher.revision
        found: list[dict[str, object]] = []
        for hit in self._index.search(query, max(1, min(limit, 100))):
            entry: dict[str, object] = {
                "name": self._names[hit.tool.id],
                "signature": format_signature(hit.tool),
            }
            if with_schema:
                entry["inputSchema"] = input_schema(hit.tool)
            found.append(entry)
        return found


_RUN_TOOL_SCHEMA = {
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


def _run_tool(name: str, arguments: dict[str, object] | None = None) -> None:
    """Call a tool that search_tools has found."""
    from tooli.errors import InputError, Suggestion

    raise InputError(
        f"There is no tool {name!r}.",
        code="E1001",
        field="name",
        suggestion=Suggestion("use_different_tool", "Look for its name with search_tools."),
    )
