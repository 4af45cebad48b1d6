"""Code mode: clients see a search tool and a tool that runs scripts instead of all tools.

search_tools("remove old items") ─▶ the tools as typed Python functions
run_code("await drop(name=…)")   ─▶ the result of a script that calls them
"""

from __future__ import annotations

from tooli.annotations import ReadOnly
from tooli.core._hot_tables import TOOL_SCHEMA_OPTIONS
from tooli.describe.mcp_tools import RUN_CODE_TOOL, SEARCH_TOOL, can_be_confirmed, with_settings
from tooli.mcp.tool_listing import ToolListing
from tooli.orchestrate.run_tool import make_check, make_script, mark_script, run_for
from tooli.orchestrate.sandbox import INSTALL_COMMAND, SANDBOX_PACKAGE
from tooli.orchestrate.script_tools import read_script_tools
from tooli.orchestrate.stubs import render_stubs
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.providers.search import ToolIndex
from tooli.schema.tool_reader import read_tool
from tooli.serving.dispatcher import require_package

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import CommandOptions, JsonObject
    from tooli.core.tool import Tool
    from tooli.orchestrate.script_run import Script
    from tooli.orchestrate.script_tools import ScriptTool
    from tooli.serving.caller_view import CallerView
    from tooli.serving.dispatcher import ToolDispatcher

MAX_FOUND = 200
"""Maximum number of functions that one search returns."""


class CodeMode(ToolListing):
    """The two tools of code mode. All rules for callers apply to the calls of a script."""

    run_tool_name = RUN_CODE_TOOL
    instructions = (
        "search_tools returns the tools as Python functions. run_code runs a script that calls "
        "them: prefer one script to many calls."
    )

    def __init__(self, dispatcher: ToolDispatcher) -> None:
        message = "Code mode needs the package pydantic-monty, which is not installed."
        require_package(SANDBOX_PACKAGE, message, f"Run: {INSTALL_COMMAND}")
        super().__init__(dispatcher)
        # The tools need no scopes. The access rules of the tools that a script calls apply.
        options: CommandOptions = {"auth": (), "annotations": ReadOnly}
        self._search_tool = read_tool(
            self._search, app=dispatcher.name, path=("search-tools",), kwargs=options
        )

    @property
    def builtin_tools(self) -> Mapping[str, Tool]:
        """The tools that search and that run scripts."""
        run_tool = self._dispatcher.cached(RUN_CODE_TOOL, self._make_run_tool)
        return {SEARCH_TOOL: self._search_tool, RUN_CODE_TOOL: run_tool}

    def needs_all_scopes(self, name: str) -> bool:
        """True for the two tools of code mode."""
        return name in self.builtin_tools and name not in self._dispatcher.tools

    # -------------------------------------------------------------- the two tools

    def _search(self, ctx: Context, query: str = "", limit: int = 20) -> str:
        """Find tools. Returns them as typed Python functions, which run_code can call.

        Args:
            query: What the tools should do, or parts of their names. Empty: all tools.
            limit: Maximum number of functions.
        """
        tools = self._functions(ctx)
        view = self._view(ctx)
        index = view.cached("script index", lambda: ToolIndex([t.tool for t in tools.values()]))
        by_id = {entry.tool.id: entry for entry in tools.values()}
        hits = index.search(query, len(tools))
        shown = hits[: max(1, min(limit, MAX_FOUND))]
        stubs = render_stubs([by_id[hit.tool.id] for hit in shown])
        if not hits:
            return "# No tool matches. An empty query returns all tools.\n"
        left_out = len(hits) - len(shown)
        return f"{stubs}# {left_out} more tools match: raise `limit`.\n" if left_out else stubs

    def _make_run_tool(self) -> Tool:
        dispatcher = self._dispatcher

        def read_script(ctx: Context, code: str, inputs: dict[str, object] | None = None) -> Script:
            return make_script(code, self._functions(ctx), inputs=inputs, surface="mcp")

        @mark_script
        async def run_code(
            ctx: Context, code: str, inputs: dict[str, object] | None = None
        ) -> object:
            """Run a Python script that calls the tools that search_tools returns.

            The tools are async functions: `await find(text="a")`. asyncio.gather calls several at
            once. The value of the last expression is the result. Types are checked first; if
            they are wrong, nothing runs. A failed call is an exception. The script has no files
            and no network.
            """
            script = read_script(ctx, code, inputs)
            return await run_for(ctx, dispatcher.app, script, dispatcher.failures)

        state = dispatcher.app._state
        tools = [with_settings(tool, state) for tool in dispatcher.tools.values()]
        schema = _run_schema(
            can_confirm=any([can_be_confirmed(tool) for tool in tools]),
            can_change=not all([tool.effects.read_only for tool in tools]),
        )
        options: CommandOptions = {
            "auth": (),
            "input_schema": schema,
            "output_schema": {},
            "pre_validate": make_check(read_script),
        }
        tool = read_tool(run_code, app=dispatcher.name, path=("run-code",), kwargs=options)
        return tool.replace(limits=tool.limits.replace(stops_itself=True))

    def _view(self, ctx: Context) -> CallerView:
        return self._dispatcher.view(ctx.caller.scopes)

    def _functions(self, ctx: Context) -> Mapping[str, ScriptTool]:
        """Return the functions that scripts of a caller can call."""
        view = self._view(ctx)
        return view.cached("script tools", lambda: read_script_tools(view.tools.values()))


def _run_schema(*, can_confirm: bool, can_change: bool) -> JsonObject:
    """Return the schema of the arguments of `run_code`, with the framework options it lists."""
    properties: JsonObject = {
        "code": {"type": "string", "description": "The script."},
        "inputs": {
            "type": "object",
            "description": "Variables of the script.",
            "additionalProperties": True,
        },
    }
    if can_confirm:
        properties |= TOOL_SCHEMA_OPTIONS["confirmable"]
    if can_change:
        properties |= {**TOOL_SCHEMA_OPTIONS["destructive"], **TOOL_SCHEMA_OPTIONS["plannable"]}
    return {
        "type": "object",
        "properties": properties,
        "required": ["code"],
        "additionalProperties": False,
    }
