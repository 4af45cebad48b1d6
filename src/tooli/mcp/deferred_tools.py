"""Deferred discovery: a large app lists a search tool and a run tool instead of all its tools.

search_tools("delete old files") ─▶ compact signatures, best first
run_tool("users_create", {…})    ─▶ the result of calling the tool
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.core.tool import quote
from tooli.describe.mcp_tools import RUN_TOOL, SEARCH_TOOL
from tooli.describe.portable_schemas import portable_arguments
from tooli.errors import InputError, Suggestion
from tooli.mcp.tool_listing import ToolListing
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.providers.search import ToolIndex, format_signature
from tooli.schema.json_schema import input_schema
from tooli.schema.tool_reader import read_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import CommandOptions, JsonObject
    from tooli.core.tool import Tool
    from tooli.serving.caller_view import CallerView
    from tooli.serving.dispatcher import ToolDispatcher


class DeferredTools(ToolListing):
    """The tools that an app with deferred discovery lists, and the tools that can be called."""

    run_tool_name = RUN_TOOL
    instructions = "Find tools with search_tools, then call them with run_tool."

    def __init__(self, dispatcher: ToolDispatcher) -> None:
        super().__init__(dispatcher)
        # The built-in tools need no scopes. The access rules of the called tool apply.
        search_options: CommandOptions = {"auth": (), "annotations": ReadOnly}
        run_options: CommandOptions = {"auth": (), "input_schema": _RUN_TOOL_SCHEMA}
        app = dispatcher.name
        self._builtin_tools = {
            SEARCH_TOOL: read_tool(
                self._search, app=app, path=("search-tools",), kwargs=search_options
            ),
            RUN_TOOL: read_tool(_run_tool, app=app, path=("run-tool",), kwargs=run_options),
        }

    @property
    def builtin_tools(self) -> Mapping[str, Tool]:
        """The tools that search and that run a tool."""
        return self._builtin_tools

    def needs_all_scopes(self, name: str) -> bool:
        """True for the search: its answer contains what the scopes allow the caller to see."""
        return name == SEARCH_TOOL

    def resolve_call(self, name: str, params: JsonObject) -> tuple[str, JsonObject]:
        """Return the name and parameters of the tool that a call runs.

        A call of `run_tool` runs the tool that its arguments name.
        """
        arguments: JsonObject = params.get("arguments") or {}
        target_name = arguments.get("name")
        if (
            name != RUN_TOOL
            or RUN_TOOL in self._dispatcher.tools
            or not isinstance(target_name, str)
        ):
            return name, params
        target_arguments = arguments.get("arguments")
        if arguments.keys() - {"name", "arguments"} or not isinstance(
            target_arguments, (dict, type(None))
        ):
            return name, params  # `run_tool` itself reports the error
        found = self._find_tool_name(target_name)
        if found is None:
            return name, params
        return found, {**params, "name": found, "arguments": target_arguments or {}}

    def _find_tool_name(self, name: str) -> str | None:
        tools = self._dispatcher.tools
        if name in tools:
            return name
        tool = self._dispatcher.app.find(name)
        return next((safe_name for safe_name, item in tools.items() if item is tool), None)

    def _search(
        self, ctx: Context, query: str, limit: int = 10, with_schema: bool = False
    ) -> list[dict[str, object]]:
        """Find the tools that match a description, best first. Call them with run_tool.

        Args:
            query: What the tool should do, or part of its name. `users:` searches only that group.
            limit: Maximum number of tools to return.
            with_schema: Include the JSON Schema of the arguments.
        """
        view = self._dispatcher.view(ctx.caller.scopes)
        index, names = view.cached("search index", lambda: self._build_index(view))
        found: list[dict[str, object]] = []
        for hit in index.search(query, max(1, min(limit, 100))):
            entry: dict[str, object] = {
                "name": names[hit.tool.id],
                "signature": format_signature(hit.tool),
            }
            if with_schema:
                entry["inputSchema"] = portable_arguments(hit.tool, input_schema(hit.tool))
            found.append(entry)
        return found

    def _build_index(self, view: CallerView) -> tuple[ToolIndex, dict[str, str]]:
        """Return the search index of the visible tools, and their names by their ids."""
        tools = view.tools
        return ToolIndex(tools.values()), {tool.id: name for name, tool in tools.items()}


_RUN_TOOL_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool's name, as search_tools returns it."},
        "arguments": {
            "type": "object",
            "description": "The tool's arguments, according to its signature.",
            "additionalProperties": True,
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


def _run_tool(name: str, arguments: dict[str, object] | None = None) -> None:
    """Call a tool that search_tools has found."""
    raise InputError(
        f"There is no tool {quote(name)}.",
        code="E1001",
        field="name",
        suggestion=Suggestion("use_different_tool", "Find its name with search_tools."),
    )
