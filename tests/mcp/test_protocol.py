"""The MCP protocol: messages, parameters, JSON-RPC errors, and questions to clients."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import Caller
from tooli.core.peer import InputRequired
from tooli.errors import ToolError
from tooli.mcp.protocol import (
    APPROVAL_KEY,
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_CAPABILITY,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    NeedsSdk,
    RequestState,
    RpcError,
    StatelessPeer,
    approval_question,
    check_call_params,
    check_list_params,
    check_message,
    client_supports,
    has_version_meta,
    invalid_params_error,
    is_approved,
    missing_capability_error,
    read_initialize_params,
    read_stateless_meta,
    request_ids,
)
from tooli.pipeline.context import YES_NO_SCHEMA, build_elicit

CLIENT = {"name": "c", "version": "1"}
STATELESS: dict[str, Any] = {VERSION_KEY: STATELESS_VERSIONS[0], CAPABILITIES_KEY: {}}
QUESTION = build_elicit("Sure?", YES_NO_SCHEMA)
YES = {"action": "accept", "content": {"yes": True}}


def test_error_data_is_optional() -> None:
    assert RpcError(-1, "no").to_dict() == {"code": -1, "message": "no"}
    assert invalid_params_error().to_dict()["data"] == ""


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ([], "A message must be a JSON object"),
        ({"method": "ping"}, 'jsonrpc must be "2.0"'),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, "id must be a string or an integer"),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, "id must be a string or an integer"),
        ({"jsonrpc": "2.0", "method": 7}, "method must be a string"),
        ({"jsonrpc": "2.0", "method": "ping", "params": []}, "params must be an object"),
        ({"jsonrpc": "2.0", "id": 1}, "method is missing"),
    ],
)
def test_invalid_message_is_rejected(message: object, problem: str) -> None:
    with pytest.raises(RpcError) as caught:
        check_message(message)
    assert (caught.value.code, caught.value.message) == (INVALID_REQUEST, problem)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": 1, "method": "ping"},
        {"id": "a", "method": "ping", "params": {}},
        {"method": "notifications/initialized", "params": None},
        {"id": 1, "result": {}},
        {"id": 1, "error": {}},
    ],
)
def test_valid_message_is_accepted(fields: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", **fields}
    assert check_message(message) is message


def test_request_ids_of_nested_batches_are_found() -> None:
    batch = [{"id": 1}, [{"id": "a"}, {"id": 1}], {"id": 2, "result": {}}, {"id": True}, 7]
    assert request_ids(batch) == [1, "a"]


@pytest.mark.parametrize("params", [{}, {"name": 1}, {"name": "t", "arguments": []}])
def test_invalid_call_params_are_rejected(params: dict[str, Any]) -> None:
    with pytest.raises(RpcError, match="Invalid request parameters"):
        check_call_params(params)


@pytest.mark.parametrize(
    "fields",
    [
        {"task": {}},
        {"requestState": 7},
        {"requestState": None},
        {"inputResponses": []},
        {"inputResponses": {"a": {"action": "maybe"}}},
        {"inputResponses": {"a": {"action": "accept", "content": {"x": [1]}}}},
        {"_meta": {"progressToken": 1.5}},
    ],
)
def test_unsupported_call_params_need_the_sdk(fields: dict[str, Any]) -> None:
    with pytest.raises(NeedsSdk):
        check_call_params({"name": "t", **fields})


def test_valid_call_params_are_accepted() -> None:
    answers = {"a": {"action": "accept", "content": {"yes": True}}, "b": {"action": "decline"}}
    fields = {"requestState": "", "inputResponses": answers}
    check_call_params({"name": "t", "arguments": None, **fields})


def test_cursor_must_be_text() -> None:
    check_list_params({})
    check_list_params({"cursor": "p1"})
    with pytest.raises(RpcError):
        check_list_params({"cursor": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"protocolVersion": 1},
        {"capabilities": None},
        {"clientInfo": None},
        {"clientInfo": {"name": "c"}},
        {"_meta": []},
    ],
)
def test_invalid_initialize_params_are_rejected(change: dict[str, Any]) -> None:
    valid = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    assert read_initialize_params(valid) == ("2025-11-25", CLIENT, {})
    with pytest.raises(RpcError) as caught:
        read_initialize_params({**valid, **change})
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "capabilities", [{"roots": {"listChanged": 1}}, {"sampling": 1}, {"sampling": {"tools": 1}}]
)
def test_unsupported_capabilities_need_the_sdk(capabilities: dict[str, Any]) -> None:
    with pytest.raises(NeedsSdk):
        read_stateless_meta({"_meta": {**STATELESS, CAPABILITIES_KEY: capabilities}})


def test_unknown_client_field_needs_the_sdk() -> None:
    with pytest.raises(NeedsSdk):
        read_stateless_meta({"_meta": {**STATELESS, CLIENT_INFO_KEY: {**CLIENT, "icons": "x"}}})


def test_client_info_is_read_from_stateless_meta() -> None:
    assert has_version_meta({"_meta": STATELESS})
    assert not has_version_meta({"_meta": 1})
    assert read_stateless_meta({"_meta": STATELESS}) == (None, {})
    assert read_stateless_meta({"_meta": {**STATELESS, CLIENT_INFO_KEY: CLIENT}}) == (CLIENT, {})


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        ({}, INVALID_PARAMS, "params._meta must be an object"),
        ({"_meta": {VERSION_KEY: "x"}}, INVALID_PARAMS, "is missing the required"),
        ({"_meta": {**STATELESS, VERSION_KEY: 1}}, INVALID_PARAMS, "must be a string"),
        ({"_meta": {**STATELESS, VERSION_KEY: "1999-01-01"}}, UNSUPPORTED_VERSION, "Unsupported"),
    ],
)
def test_invalid_stateless_meta_is_rejected(
    params: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(RpcError, match=message) as caught:
        read_stateless_meta(params)
    assert caught.value.code == code


# ------------------------------------------------------------------ questions to clients


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))


def make_state(client: str = "c", **params: Any) -> RequestState:
    app = Tooli("asking")
    app.command("wipe")(lambda path="x": path)
    tool = app.find("wipe")
    assert tool is not None
    return RequestState(tool, {"arguments": {"path": "x"}, **params}, Caller("mcp", client))


def ask(state: RequestState) -> dict[str, Any]:
    """Return the result that asks the client a question."""
    peer = StatelessPeer(state, {"elicitation": {}}, None)
    with pytest.raises(InputRequired) as pause:
        peer.ask({"name": QUESTION})
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
def test_client_capabilities_determine_the_supported_methods(
    capabilities: object, method: str, supported: bool
) -> None:
    assert client_supports(capabilities, method) is supported


def test_missing_capability_error_names_the_capability() -> None:
    error = ToolError("ask", code="E2102", details={"asked": ["roots/list", "other", ["x"], 5]})
    rpc_error = missing_capability_error(error)
    assert rpc_error.code == MISSING_CAPABILITY
    assert isinstance(rpc_error.data, dict)
    assert rpc_error.data["requiredCapabilities"] == {"roots": {}}


def test_question_is_answered_when_the_request_is_repeated() -> None:
    asked = ask(make_state())
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["name"]["method"] == "elicitation/create"
    repeated = make_state(requestState=asked["requestState"], inputResponses={"name": YES})
    peer = StatelessPeer(repeated, {}, None)
    assert peer.ask({"name": QUESTION}) == {"name": YES}
    with pytest.raises(InputRequired) as pause:  # the second question of that name is another one
        peer.ask({"name": QUESTION})
    assert list(pause.value.questions) == ["name-2"]


def ask_approval(state: RequestState, key: str) -> dict[str, Any]:
    """Return the result that asks the client to approve the call."""
    with pytest.raises(InputRequired) as pause:
        StatelessPeer(state, {}, None).ask_approval({key: QUESTION})
    return state.input_required(pause.value)


def test_approval_is_answered_when_the_request_is_repeated() -> None:
    asked = ask_approval(make_state(), APPROVAL_KEY)
    repeated = make_state(requestState=asked["requestState"], inputResponses={APPROVAL_KEY: YES})
    assert repeated.responses == {}
    assert is_approved(StatelessPeer(repeated, {}, None).ask_approval({APPROVAL_KEY: QUESTION}))
    # A later question of the function keeps the approval.
    asked = ask(repeated)
    repeated = make_state(requestState=asked["requestState"], inputResponses={"name": YES})
    assert is_approved(StatelessPeer(repeated, {}, None).ask_approval({APPROVAL_KEY: QUESTION}))


def test_answer_to_another_question_does_not_approve() -> None:
    """The key of an approval question depends on what the question shows."""
    error = ToolError("Wipe the disk.")
    keys: list[str] = []
    for digest in ("one", "two"):
        error.approval_parts = {"the plan": digest}
        keys += approval_question(error)
    assert len(set(keys)) == 2
    asked = ask_approval(make_state(), keys[0])
    answers = {keys[0]: YES, keys[1]: YES}
    repeated = make_state(requestState=asked["requestState"], inputResponses=answers)
    assert list(repeated.approvals) == [keys[0]]
    with pytest.raises(InputRequired):
        StatelessPeer(repeated, {}, None).ask_approval({keys[1]: QUESTION})


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


def test_declined_or_missing_approval_does_not_approve() -> None:
    assert not is_approved({APPROVAL_KEY: {"action": "decline"}})
    assert not is_approved({})
