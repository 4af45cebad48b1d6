"""What an MCP server lists instead of all tools of its app."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool


class ToolListing:
    """The tools that a server lists, and those that its clients can call."""

    instructions = ""
    """What the client's model must know about the listed tools."""

    @property
    def listed_tools(self) -> Mapping[str, Tool]:
        """The listed tools, by name."""
        raise NotImplementedError

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool that can be called, by name."""
        raise NotImplementedError

    def hints_of(self, tool: Tool) -> dict[str, bool] | None:
        """Return the annotations of a tool that runs others; None: its own annotations apply."""
        raise NotImplementedError

    def resolve_call(self, name: str, params: JsonObject) -> tuple[str, JsonObject]:
        """Return the name and the parameters of the tool that a call runs."""
        return name, params

    def needs_all_scopes(self, name: str) -> bool:
        """True if a tool acts for the caller on other tools, so that it needs all its scopes."""
        raise NotImplementedError
