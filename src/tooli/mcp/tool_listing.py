"""What an MCP server lists instead of all tools of its app."""

from __future__ import annotations

from tooli.describe.mcp_tools import combine_hints

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.serving.dispatcher import ToolDispatcher


class ToolListing:
    """The tools that a server lists, and those that its clients can call.

    A server lists its built-in tools, with which clients find and run the tools of the app, and the
    tools that are always visible. A command of the app replaces a built-in tool of the same name.
    """

    instructions = ""
    """What the client's model must know about the listed tools."""

    run_tool_name = ""
    """The name of the built-in tool that runs the others."""

    def __init__(self, dispatcher: ToolDispatcher) -> None:
        self._dispatcher = dispatcher

    @property
    def builtin_tools(self) -> Mapping[str, Tool]:
        """The built-in tools, by name."""
        raise NotImplementedError

    @property
    def listed_tools(self) -> Mapping[str, Tool]:
        """The listed tools, by name."""
        tools = self._dispatcher.tools
        always_visible = {n: tool for n, tool in tools.items() if tool.guidance.always_visible}
        builtin = {name: tools.get(name, tool) for name, tool in self.builtin_tools.items()}
        return {**builtin, **always_visible}

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool that can be called, by name."""
        return {**self.builtin_tools, **self._dispatcher.tools}

    def hints_of(self, tool: Tool) -> dict[str, bool] | None:
        """Return the annotations of the tool that runs others: the worst of all tools.

        Returns None for any other tool: its own annotations apply.
        """
        if tool is not self.builtin_tools[self.run_tool_name]:
            return None
        return combine_hints(self._dispatcher.tools.values())

    def resolve_call(self, name: str, params: JsonObject) -> tuple[str, JsonObject]:
        """Return the name and the parameters of the tool that a call runs."""
        return name, params

    def needs_all_scopes(self, name: str) -> bool:
        """True if a tool acts for the caller on other tools, so that it needs all its scopes."""
        raise NotImplementedError
