"""Calls for answers that are not the result of a tool, such as usage errors."""

from __future__ import annotations

from tooli.core.call import Call
from tooli.core.tool import Tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import AppState
    from tooli.core.call import Caller


def make_placeholder_call(
    state: AppState, caller: Caller, warnings: list[str] | None = None, tool: Tool | None = None
) -> Call:
    """Return a call without arguments, for output that needs a call but runs no tool.

    If no `tool` is given, the call has a placeholder with the name and version of the app.
    """
    if tool is None:
        name, version = state.name, state.version
        tool = Tool(name, (), name, (), _do_nothing, (), frozenset(), version=version)
    policy = state.effective_policy(tool)
    return Call(tool, {}, caller, [] if warnings is None else warnings, policy=policy)


def _do_nothing() -> None:
    """Do nothing. The placeholder tool needs a function."""
