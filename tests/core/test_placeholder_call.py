"""make_placeholder_call: a call for an answer that is not the result of a tool."""

from __future__ import annotations

from tooli import Tooli
from tooli.core.call import Caller
from tooli.core.placeholder_call import make_placeholder_call

CALLER = Caller("http")


def test_placeholder_has_the_name_version_and_policy_of_the_app() -> None:
    state = Tooli("shop", version="2.0", security_policy="strict")._state
    call = make_placeholder_call(state, CALLER)
    assert (call.tool.id, call.tool.version, call.policy) == ("shop", "2.0", "strict")
    assert (call.arguments, call.warnings, call.caller) == ({}, [], CALLER)
    assert call.tool.fn() is None


def test_tool_and_warnings_of_the_caller_are_used() -> None:
    app = Tooli("shop")

    @app.command()
    def price(item: str) -> str:
        return item

    tool, warnings = app.find("price"), ["old"]
    call = make_placeholder_call(app._state, CALLER, warnings, tool)
    assert call.tool is tool
    assert call.warnings is warnings
