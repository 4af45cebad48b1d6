"""A listing decides which tools clients see; by default a call runs the tool that it names."""

from __future__ import annotations

from tooli import Tooli
from tooli.mcp.tool_listing import ToolListing
from tooli.serving.dispatcher import ToolDispatcher


def test_a_call_runs_the_tool_that_it_names() -> None:
    params = {"name": "find", "arguments": {"text": "a"}}
    listing = ToolListing(ToolDispatcher(Tooli("shop")))
    assert listing.resolve_call("find", params) == ("find", params)
