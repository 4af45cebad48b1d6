"""The MCP protocol: validation of messages and parameters, JSON-RPC errors."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.mcp.protocol import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    NeedsSdk,
    RpcError,
    check_call_params,
    check_list_params,
    check_message,
    has_version_meta,
    invalid_params_error,
    read_initialize_params,
    read_stateless_meta,
    request_ids,
)

CLIENT = {"name": "c", "version": "1"}
STATELESS: dict[str, Any] = {VERSION_KEY: STATELESS_VERSIONS[0], CAPABILITIES_KEY: {}}


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
def test_invalid_message(message: object, problem: str) -> None:
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
def test_valid_message(fields: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", **fields}
    assert check_message(message) is message


def test_request_ids_of_nested_batches() -> None:
    batch = [{"id": 1}, [{"id": "a"}, {"id": 1}], {"id": 2, "result": {}}, {"id": True}, 7]
    assert request_ids(batch) == [1, "a"]


@pytest.mark.parametrize("params", [{}, {"name": 1}, {"name": "t", "arguments": []}])
def test_invalid_call_params(params: dict[str, Any]) -> None:
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
def test_unclear_call_params_need_the_sdk(fields: dict[str, Any]) -> None:
    with pytest.raises(NeedsSdk):
        check_call_params({"name": "t", **fields})


def test_valid_call_params() -> None:
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
def test_invalid_initialize_params(change: dict[str, Any]) -> None:
    valid = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    assert read_initialize_params(valid) == ("2025-11-25", CLIENT, {})
    with pytest.raises(RpcError) as caught:
        read_initialize_params({**valid, **change})
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "capabilities", [{"roots": {"listChanged": 1}}, {"sampling": 1}, {"sampling": {"tools": 1}}]
)
def test_unclear_capabilities_need_the_sdk(capabilities: dict[str, Any]) -> None:
    with pytest.raises(NeedsSdk):
        read_stateless_meta({"_meta": {**STATELESS, CAPABILITIES_KEY: capabilities}})


def test_unknown_client_field_needs_the_sdk() -> None:
    with pytest.raises(NeedsSdk):
        read_stateless_meta({"_meta": {**STATELESS, CLIENT_INFO_KEY: {**CLIENT, "icons": "x"}}})


def test_stateless_meta() -> None:
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
def test_invalid_stateless_meta(params: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(RpcError, match=message) as caught:
        read_stateless_meta(params)
    assert caught.value.code == code
