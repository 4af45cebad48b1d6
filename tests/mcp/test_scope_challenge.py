"""A request whose token lacks a scope gets a challenge, in all protocol versions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT, run_lifespan

from tooli import Tooli
from tooli.mcp import http_transport, mcp_endpoint

TOKENS: dict[str, Any] = {"reader": ["read"], "all": None}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def make_app(policy: Any = "strict", **kwargs: Any) -> Tooli:
    app = Tooli("app", security_policy=policy, **kwargs)

    @app.command(auth=["read"])
    def peek() -> str:
        """Look."""
        return "tea"

    @app.command(auth=["write"])
    def put(thing: str) -> str:
        """Put."""
        return thing

    @app.command()
    def undeclared() -> str:
        """Declare no scopes."""
        return "x"

    @app.resource("app://{name}", auth=["write"])
    def item(name: str) -> str:
        """Return an item."""
        return name

    @app.prompt(auth=["write"])
    def order(thing: str) -> str:
        """Order."""
        return thing

    return app


@pytest.fixture
async def api() -> AsyncIterator[Any]:
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as running:
        yield running


async def send(
    api: Any, method: str, params: Any, *, token: str | None = "reader", stateless: bool = False
) -> AsgiClient:
    message: Any = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    headers = [HOST, JSON, ACCEPT]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    if stateless:
        message["params"] = {**params, "_meta": META}
        headers += [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", method.encode())]
        name = params.get("name", params.get("uri"))
        if name is not None:
            headers.append((b"mcp-name", name.encode()))
    client = AsgiClient(api)
    client.send_body(json.dumps(message).encode())
    await asyncio.wait_for(client.start("POST", "/mcp", headers), 120)
    return client


REFUSED = [
    ("tools/call", {"name": "put", "arguments": {"thing": "x"}}),
    ("tools/call", {"name": "put"}),
    ("resources/read", {"uri": "app://x"}),
    ("resources/subscribe", {"uri": "app://x"}),
    ("prompts/get", {"name": "order", "arguments": {"thing": "x"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "order"},
            "argument": {"name": "thing", "value": ""},
        },
    ),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "app://{name}"},
            "argument": {"name": "name", "value": ""},
        },
    ),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["app://x"]}}),
]


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize(("method", "params"), REFUSED)
async def test_missing_scope_is_a_challenge(
    api: Any, method: str, params: Any, stateless: bool
) -> None:
    answer = await send(api, method, params, stateless=stateless)
    assert answer.status == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert 'scope="write read"' in answer.headers["www-authenticate"]
    body = answer.json()
    assert (body["id"], body["error"]["code"]) == (7, -32001)
    envelope = body["error"]["data"]["io.tooli/envelope"]
    assert envelope["error"]["code"] == "E2001"
    assert envelope["error"]["details"] == {"missing_scopes": ["write"]}


@pytest.mark.parametrize("stateless", [False, True])
async def test_token_with_the_scope_is_not_challenged(api: Any, stateless: bool) -> None:
    for token, name in (("reader", "peek"), ("all", "put")):
        params = {"name": name, "arguments": {"thing": "x"} if name == "put" else {}}
        answer = await send(api, "tools/call", params, token=token, stateless=stateless)
        assert answer.status in (200, 400)  # 400: there is no session
        assert b"insufficient" not in answer.body


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nothing"}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": ["put"]}),
        ("tools/call", {}),
        ("tools/call", {"name": "undeclared"}),
        ("tools/call", []),
        ("resources/read", {"uri": "other://x"}),
        ("resources/read", {"uri": 5}),
        ("resources/read", {"uri": "app://" + "x" * 3000}),
        ("prompts/get", {"name": {"order": 1}}),
        ("completion/complete", {"ref": 5}),
        ("completion/complete", {"ref": {"name": 5, "uri": []}}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": 5}}),
        ("subscriptions/listen", {"notifications": 5}),
        ("tools/list", {}),
    ],
)
async def test_other_messages_are_answered_as_before(api: Any, method: str, params: Any) -> None:
    assert (await send(api, method, params)).status != 403


async def test_message_that_is_not_json_is_not_a_challenge(api: Any) -> None:
    client = AsgiClient(api)
    client.send_body(b'["tools/call"')
    await client.start("POST", "/mcp", [HOST, JSON, ACCEPT, (b"authorization", b"Bearer reader")])
    assert client.status == 400
    client = AsgiClient(api)
    client.send_body(b'["tools/call"]')
    await client.start("POST", "/mcp", [HOST, JSON, ACCEPT, (b"authorization", b"Bearer reader")])
    assert client.status == 400


async def test_large_message_is_challenged_too(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "LARGE_MESSAGE_BYTES", 100)
    params = {"name": "put", "arguments": {"thing": "x" * 1000}}
    assert (await send(api, "tools/call", params)).status == 403


async def test_id_that_is_not_valid_is_null(api: Any) -> None:
    message = {"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/call", "params": {"name": "put"}}
    client = AsgiClient(api)
    client.send_body(json.dumps(message).encode())
    await client.start("POST", "/mcp", [HOST, JSON, ACCEPT, (b"authorization", b"Bearer reader")])
    assert (client.status, client.json()["id"]) == (403, None)


async def test_server_without_tokens_has_no_challenge() -> None:
    async with run_lifespan(make_app().asgi()) as api:
        params = {"name": "put", "arguments": {"thing": "x"}}
        answer = await send(api, "tools/call", params, token=None, stateless=True)
        assert answer.status == 200
        assert b"E2001" in answer.body


async def test_policy_decides() -> None:
    async with run_lifespan(make_app("standard").asgi(tokens=TOKENS)) as api:
        params = {"name": "put", "arguments": {"thing": "x"}}
        answer = await send(api, "tools/call", params, stateless=True)
        assert answer.status == 200
        assert b"lacks the scope write" in answer.body


async def test_tool_behind_run_tool_is_challenged() -> None:
    app = make_app(defer_loading=True)
    mounts = {"/mcp": mcp_endpoint(app, deferred=True)}
    async with run_lifespan(app.asgi(tokens=TOKENS, mcp=False, mounts=mounts)) as api:
        params = {"name": "run_tool", "arguments": {"name": "put", "arguments": {"thing": "x"}}}
        assert (await send(api, "tools/call", params, stateless=True)).status == 403
        params["arguments"] = {"name": "peek"}
        assert (await send(api, "tools/call", params, stateless=True)).status == 200


async def test_refusal_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "audit.jsonl"
    monkeypatch.setenv("TOOLI_AUDIT_LOG", str(log))
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        secret = {"name": "put", "arguments": {"thing": "do-not-log"}}
        assert (await send(api, "tools/call", secret)).status == 403
    text = log.read_text()
    assert "E2001" in text
    assert "app.put" in text
    assert "do-not-log" not in text
