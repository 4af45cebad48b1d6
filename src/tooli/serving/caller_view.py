"""CallerView: what a caller can see of an app. Lists, documents and errors of servers use it.

    scopes of the caller ─▶ ToolDispatcher.view ─▶ CallerView.shows(tool)

Under the policy `strict`, a caller sees the tools, resources and prompts that it may use. Under the
other policies it may use all of them, so it sees all of them, except those for certain roles.
"""

from __future__ import annotations

from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.errors import InputError, Suggestion
from tooli.similar_names import closest_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.serving.dispatcher import ToolDispatcher

    T = TypeVar("T")

MAX_CACHED_VIEWS = 64
"""Maximum number of sets of scopes for which documents are cached."""


class CallerView:
    """What callers with the same scopes see. Without scopes (None), everything is visible."""

    __slots__ = ("_dispatcher", "scopes")

    def __init__(self, dispatcher: ToolDispatcher, scopes: frozenset[str] | None) -> None:
        self._dispatcher = dispatcher
        self.scopes = scopes

    @property
    def is_complete(self) -> bool:
        """True if the caller sees everything, whatever its scopes are."""
        return self.scopes is None

    def knows(self, tool: Tool) -> bool:
        """False if only callers with another role see a tool: for this one it does not exist."""
        audience, scopes = tool.guard.audience, self.scopes
        return not audience or (scopes is not None and not scopes.isdisjoint(audience))

    def shows(self, tool: Tool) -> bool:
        """True if the caller may use a tool, so that lists contain it."""
        guard, scopes = tool.guard, self.scopes
        if not self.knows(tool):
            return False
        if scopes is None or self._dispatcher.app._state.effective_policy(tool) != "strict":
            return True
        is_allowed = guard.scopes is not None and scopes.issuperset(guard.scopes)
        return is_allowed and guard.danger != "forbidden"

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that the caller sees, by their safe names."""
        tools = self._dispatcher.tools.items()
        return self.cached(
            "tools",
            lambda: {name: self.without_hidden(tool) for name, tool in tools if self.shows(tool)},
        )

    def without_hidden(self, tool: Tool) -> Tool:
        """Return a tool without its handoffs to tools that the caller does not see."""
        guidance = tool.guidance
        if not guidance.handoffs or self.is_complete:
            return tool
        others = self._dispatcher.tools.values()
        hidden = {other.key for other in others if not self.shows(other)}
        kept = tuple([h for h in guidance.handoffs if h.command not in hidden])
        if len(kept) == len(guidance.handoffs):
            return tool
        return tool.replace(guidance=guidance.replace(handoffs=kept))

    def cached(self, key: object, build: Callable[[], T]) -> T:
        """Return the result of `build`, cached for callers with the same view."""
        cached = self._dispatcher.cached
        known = cached("cached views", set[frozenset[str]])
        if self.scopes is not None and self.scopes not in known:
            if len(known) >= MAX_CACHED_VIEWS:
                return build()
            known.add(self.scopes)
        return cached((key, self.scopes), build)

    def unknown_tool_error(self, name: str) -> ToolError:
        """Return the error for an unknown name, which names only what the caller sees."""
        names = [tool.key or tool.name for tool in self.tools.values()]
        closest = closest_match(name, names)
        hint = f"; did you mean {closest!r}?" if closest else ""
        fix = f"Use {closest!r}." if closest else "Name one of the commands."
        return InputError(
            f"There is no command {cut_text(name, MAX_QUOTED_CHARS)!r}{hint}",
            code="E1001",
            suggestion=Suggestion("retry_with_modified_input", fix),
            details={"commands": names},
        )
