"""Questions to clients: capabilities, signed request states, and approvals."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import Tooli
from tooli.core.peer import InputRequired
from tooli.errors import ToolError
from tooli.mcp.input_requests import (
    APPROVAL_KEY,
    RequestState,
    StatelessPeer,
    approval_question,
    client_supports,
    is_approved,
    missing_capability_error,
)
from tooli.mcp.protocol import MISSING_CAPABILITY, RpcError
from tooli.pipeline.context import YES_NO_SCHEMA, build_elicit

QUESTION = build_elicit("Sure?", YES_NO_SCHEMA)
YES = {"action": "accept", "content": {"yes": True}}


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))


def make_state(client: str = "c", **params: Any) -> RequestState:
    app = Tooli("asking")
    app.command("wipe")(lambda path="x": path)
    tool = app.find("wipe")
    assert tool is not None
    return RequestState(tool, {"arguments": {"path": "x"}, **params}, client)


def ask(state: RequestState) -> dict[str, Any]:
    """Return the result that asks the client a question."""
    peer = StatelessPeer(state, {"elicitation": {}}, None)
    with pytest.raises(InputRequired) as pause:
        peer.ask({APPROVAL_KEY: QUESTION})
    return state.input_required(pause.value)


@pytest.mark.parametrize(
    ("capabilities", "method", "supported"),
    [
        ({"elicitation": {}}, "elicitation/create", True),
        ({"elicitation": {"form": {}}}, "elicitation/create", True),
        ({"elicitation": {"url": {}}}, "elicitation/create", False),
        ({"elicitation": True}, "elicitation/create", False),
        ({"sampling": {}}, "sampling/createMessage", True),
        ({}, "roots/list", False),
        (None, "roots/list", False),
        ({"tools": {}}, "tools/list", False),
    ],
)
def test_client_capabilities(capabilities: object, method: str, supported: bool) -> None:
    assert client_supports(capabilities, method) is supported


def test_missing_capability_error() -> None:
    error = ToolError("ask", code="E2102", details={"asked": ["roots/list", "other"]})
    rpc_error = missing_capability_error(error)
    assert rpc_error.code == MISSING_CAPABILITY
    assert isinstance(rpc_error.data, dict)
    assert rpc_error.data["requiredCapabilities"] == {"roots": {}}


def test_question_is_answered_when_the_request_is_repeated() -> None:
    asked = ask(make_state())
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"][APPROVAL_KEY]["method"] == "elicitation/create"
    repeated = make_state(requestState=asked["requestState"], inputResponses={APPROVAL_KEY: YES})
    peer = StatelessPeer(repeated, {}, None)
    answers = peer.ask({APPROVAL_KEY: QUESTION})
    assert is_approved(answers)
    with pytest.raises(InputRequired) as pause:  # the second question of that name is another one
        peer.ask({APPROVAL_KEY: QUESTION})
    assert list(pause.value.questions) == [f"{APPROVAL_KEY}-2"]


def test_approval_without_a_question_is_ignored() -> None:
    state = make_state(inputResponses={APPROVAL_KEY: YES, "other": YES})
    assert state.responses == {"other": YES}


@pytest.mark.parametrize("request_state", ["", "forged", "a.b.c"])
def test_invalid_request_state_is_rejected(request_state: str) -> None:
    with pytest.raises(RpcError, match="requestState is not valid"):
        make_state(requestState=request_state)


def test_request_state_of_another_call_is_rejected() -> None:
    with pytest.raises(RpcError, match="belongs to another call"):
        make_state(requestState=ask(make_state())["requestState"], arguments={"path": "y"})
    with pytest.raises(RpcError, match="belongs to another call"):
        make_state("another client", requestState=ask(make_state())["requestState"])


def test_request_state_is_used_once() -> None:
    request_state = ask(make_state())["requestState"]
    make_state(requestState=request_state)
    with pytest.raises(RpcError, match="already used"):
        make_state(requestState=request_state)


def test_long_approval_text_is_cut() -> None:
    error = ToolError("Wipe the disk.")
    error.approval_text = "x" * 3000
    message = approval_question(error)[APPROVAL_KEY].params()["message"]
    assert message.startswith("Wipe the disk. Run it?\nxxx")
    assert message.endswith("… and 1000 more characters")


def test_declined_approval() -> None:
    assert not is_approved({APPROVAL_KEY: {"action": "decline"}})
    assert not is_approved({})
