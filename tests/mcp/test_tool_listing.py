"""A listing decides which tools clients see; by default a call runs the tool that it names."""

from __future__ import annotations

from tooli.mcp.tool_listing import ToolListing


def test_a_call_runs_the_tool_that_it_names() -> None:
    params = {"name": "find", "arguments": {"text": "a"}}
    assert ToolListing().resolve_call("find", params) == ("find", params)
