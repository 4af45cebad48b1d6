"""Headers and responses of MCP over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli.mcp.http_messages import (
    add_session_id,
    header_values,
    hide_input,
    join_body,
    send_error,
    with_session,
    without_session_id,
)

SCOPE = {"type": "http", "headers": [(b"Mcp-Session-Id", b"theirs"), (b"accept", b"*/*")]}


def test_session_id_is_replaced_or_removed() -> None:
    assert header_values(SCOPE, b"mcp-session-id") == ["theirs"]
    assert header_values(with_session(SCOPE, "ours"), b"mcp-session-id") == ["ours"]
    assert with_session(SCOPE, None)["headers"] == [(b"accept", b"*/*")]
    assert without_session_id(SCOPE)["headers"] == [(b"accept", b"*/*")]


def test_body_is_joined() -> None:
    assert join_body([{"body": b"a"}, {"type": "http.disconnect"}, {"body": b"b"}]) == b"ab"


@pytest.mark.parametrize(("status", "ids"), [(200, ["new"]), (400, [])])
async def test_session_id_is_added_to_successful_responses(status: int, ids: list[str]) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await add_session_id(send, "new")(
        {"type": "http.response.start", "status": status, "headers": []}
    )
    assert header_values(sent[0], b"mcp-session-id") == ids


@pytest.mark.parametrize(
    ("body", "hidden"),
    [
        (b"Validation error: hunter2", "The JSON-RPC message is invalid"),
        (b"Parse error: hunter2", "Parse error"),
    ],
)
async def test_input_in_errors_is_hidden(body: bytes, hidden: str) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    send_hidden = hide_input(send)
    await send_hidden({"type": "http.response.start", "status": 400, "headers": []})
    await send_hidden({"type": "http.response.body", "body": body})
    assert [message.get("status") for message in sent] == [400, None]
    assert json.loads(sent[1]["body"])["error"]["message"] == hidden


async def test_error_has_no_id_and_its_headers() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await send_error(send, 405, "no", (b"allow", b"POST"))
    assert sent[0]["status"] == 405
    assert header_values(sent[0], b"allow") == ["POST"]
    assert json.loads(sent[1]["body"]) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "no"},
    }
