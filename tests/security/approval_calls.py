"""Calls of commands that need an approval, from an agent or through a client with a person."""

from __future__ import annotations

from typing import Any

from tooli import Tooli
from tooli.core.call import Call, Caller, Failed, Options
from tooli.core.peer import Peer
from tooli.pipeline import drivers
from tooli.storage.approval_store import ApprovalStore


class Person(Peer):
    """The user of an MCP client that supports questions."""

    def supports(self, method: str) -> bool:
        return True


def run_call(
    app: Tooli,
    name: str,
    *,
    person: bool = False,
    parts: Any = None,
    options: Options | None = None,
    **arguments: Any,
) -> Any:
    """Call a command and return the outcome. `parts` are what a person has approved."""
    tool = app.find(name)
    assert tool is not None
    peer = Person() if person else None
    call = Call(tool, arguments, Caller("mcp", "agent"), [], options or Options(), peer=peer)
    if parts is not None:
        call = call.replace(approved=True, approved_parts=parts)
    return drivers.run(*app.prepare(call))


def error_of(app: Tooli, name: str, **arguments: Any) -> Any:
    """Call a command and return the error of the failed call."""
    outcome = run_call(app, name, **arguments)
    assert isinstance(outcome, Failed)
    return outcome.error


def request_approval(app: Tooli, name: str, **arguments: Any) -> Any:
    """Call a command, and return the stored request for its approval."""
    error = error_of(app, name, **arguments)
    assert error.code == "E2101", error.message
    found = {request.id: request for request in ApprovalStore().list_pending()}
    return found[error.details["approval"]["id"]]
