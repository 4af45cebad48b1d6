"""Attacks on MCP sessions over HTTP: sessions of other callers, session ids, many sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, Header
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan

from tooli import Context, Tooli
from tooli.mcp import http_sessions, mcp_endpoint

ALI, EVE = "token-of-ali", "token-of-eve"
TOKENS: dict[str, Any] = {ALI: None, EVE: None, "reader": ["notes:read"], "nobody": []}
UNKNOWN = "0" * 32


def make_app(policy: Any = "strict") -> Tooli:
    app = Tooli("app", security_policy=policy)

    @app.command(auth=[])
    def note(ctx: Context) -> str:
        """Return a text that only the caller may see."""
        return "for ali"

    @app.command(auth=[], requires_approval=True)
    def wipe() -> str:
        """Wipe everything."""
        return "wiped"

    @app.resource("notes://secret", auth=["notes:read"])
    def secret() -> str:
        """Return a secret note."""
        return "secret"

    @app.prompt(auth=["notes:read"])
    def ask(name: str) -> str:
        """Ask about a note."""
        return name

    return app


@pytest.fixture
async def api() -> AsyncIterator[Any]:
    async with run_lifespan(make_app().asgi(tokens=TOKENS, allowed_hosts=["*"])) as running:
        yield running


async def send(
    api: Any,
    method: str,
    message: Any = None,
    *headers: Header,
    token: str | None = ALI,
    session: str | None = None,
    path: str = "/mcp",
    query: bytes = b"",
) -> AsgiClient:
    """Send a request and return it with its response."""
    client = AsgiClient(api)
    client.send_body(b"" if message is None else json.dumps(message).encode())
    sent = [HOST, JSON, ACCEPT, *headers]
    if token is not None:
        sent.append((b"authorization", f"Bearer {token}".encode()))
    if session is not None:
        sent.append((b"mcp-session-id", session.encode()))
    await asyncio.wait_for(client.start(method, path, sent, query), 120)
    return client


async def open_session(api: Any, token: str | None = ALI) -> str:
    opened = await send(api, "POST", INITIALIZE, token=token)
    assert opened.status == 200
    session = opened.headers["mcp-session-id"]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await send(api, "POST", ready, token=token, session=session)).status == 202
    return session


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


CALL = request("tools/call", name="note", arguments={})
ANSWER = {"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"yes": True}}}


@pytest.mark.parametrize(
    ("method", "message", "headers"),
    [
        ("POST", CALL, []),
        ("POST", ANSWER, []),
        ("POST", {"jsonrpc": "2.0", "method": "notifications/cancelled"}, []),
        ("POST", INITIALIZE, []),
        ("GET", None, []),
        ("GET", None, [(b"last-event-id", b"1@1")]),
        ("DELETE", None, []),
        ("PUT", None, []),
        ("POST", CALL, [(b"mcp-protocol-version", b"2025-06-18")]),
    ],
)
async def test_session_of_another_caller_looks_unknown(
    api: Any, method: str, message: Any, headers: list[Header]
) -> None:
    session = await open_session(api)
    headers = [*headers, (b"x-request-id", b"the-same")]
    foreign = await send(api, method, message, *headers, token=EVE, session=session)
    unknown = await send(api, method, message, *headers, token=EVE, session=UNKNOWN)
    assert (foreign.status, foreign.headers, foreign.body) == (
        unknown.status,
        unknown.headers,
        unknown.body,
    )
    assert foreign.status == 404
    still_works = await send(api, "POST", CALL, session=session)
    assert b"for ali" in still_works.body


async def test_two_session_headers_are_refused(api: Any) -> None:
    own, foreign = await open_session(api, EVE), await open_session(api)
    header = (b"mcp-session-id", own.encode())
    for token in (ALI, EVE):
        assert (await send(api, "POST", CALL, header, token=token, session=foreign)).status >= 400


async def test_stateless_request_ignores_the_session(api: Any) -> None:
    session = await open_session(api)
    version = (b"mcp-protocol-version", b"2026-07-28")
    await send(api, "DELETE", None, version, token=EVE, session=session)
    assert b"for ali" in (await send(api, "POST", CALL, session=session)).body


# ------------------------------------------------------------------ session ids


async def test_only_initialize_returns_the_session_id(api: Any) -> None:
    session = await open_session(api)
    stream = AsgiClient(api)
    headers = [HOST, ACCEPT, (b"authorization", f"Bearer {ALI}".encode())]
    task = stream.start("GET", "/mcp", [*headers, (b"mcp-session-id", session.encode())])
    stream.send_body()
    await stream.wait_for_messages(1)
    answers = [
        await send(api, "POST", CALL, session=session),
        await send(api, "POST", request("tools/call", name="nothing"), session=session),
        await send(api, "POST", request("nothing"), session=session),
        await send(api, "PUT", None, session=session),
        await send(api, "GET", None, session=session),
        stream,
        await send(api, "POST", CALL),
        await send(api, "GET", None),
        await send(api, "DELETE", None, session=session),
    ]
    for answer in answers:
        assert "mcp-session-id" not in answer.headers
        assert session.encode() not in answer.body
    stream.disconnect()
    await asyncio.wait_for(task, 120)
    assert (await send(api, "POST", CALL, session=session)).status == 404


# ------------------------------------------------------------------ number of sessions


@pytest.mark.parametrize("tokens", [TOKENS, None])
async def test_new_session_ends_the_oldest_idle_one(
    monkeypatch: pytest.MonkeyPatch, tokens: Any
) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS_PER_CALLER", 3)
    async with run_lifespan(make_app().asgi(tokens=tokens)) as api:
        token = ALI if tokens else None
        other = await open_session(api, EVE) if tokens else None
        opened = [await open_session(api, token) for _ in range(5)]
        statuses = [(await send(api, "POST", CALL, token=token, session=s)).status for s in opened]
        assert statuses == [404, 404, 200, 200, 200]
        transport = api.mounts[0].app._endpoint._handler
        assert len(transport._manager._server_instances) == (4 if tokens else 3)
        if other is not None:
            assert (await send(api, "POST", CALL, token=EVE, session=other)).status == 200


async def test_session_is_refused_if_none_is_idle(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS_PER_CALLER", 1)
    session = await open_session(api)
    stream = AsgiClient(api)
    stream.send_body()
    headers = [HOST, ACCEPT, (b"authorization", f"Bearer {ALI}".encode())]
    task = stream.start("GET", "/mcp", [*headers, (b"mcp-session-id", session.encode())])
    await stream.wait_for_messages(1)
    refused = await send(api, "POST", INITIALIZE)
    assert (refused.status, refused.headers["retry-after"]) == (503, "60")
    await open_session(api, EVE)
    stream.disconnect()
    await asyncio.wait_for(task, 120)
    await open_session(api)


# ------------------------------------------------------------------ scopes


@pytest.mark.parametrize(
    "message",
    [
        request("resources/subscribe", uri="notes://secret"),
        request("resources/read", uri="notes://secret"),
        request("prompts/get", name="ask", arguments={"name": "x"}),
        request(
            "completion/complete",
            ref={"type": "ref/prompt", "name": "ask"},
            argument={"name": "name", "value": ""},
        ),
    ],
)
async def test_request_checks_the_scopes(api: Any, message: Any) -> None:
    for token, is_allowed in (("nobody", False), ("reader", True)):
        session = await open_session(api, token)
        answer = (await send(api, "POST", message, token=token, session=session)).body
        assert (b'"result"' in answer, b"E2001" in answer) == (is_allowed, not is_allowed)


async def test_listen_checks_the_scopes(api: Any) -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    wanted = {"resourceSubscriptions": ["notes://secret"]}
    message = request("subscriptions/listen", notifications=wanted, _meta=meta)
    headers = [
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", b"subscriptions/listen"),
    ]
    refused = await send(api, "POST", message, *headers, token="nobody")
    assert b"E2001" in refused.body
    stream = AsgiClient(api)
    stream.send_body(json.dumps(message).encode())
    allowed = [HOST, JSON, ACCEPT, *headers, (b"authorization", b"Bearer reader")]
    task = stream.start("POST", "/mcp", allowed)
    await stream.wait_for_messages(2)
    assert b"acknowledged" in stream.body
    stream.disconnect()
    await asyncio.wait_for(task, 120)


async def test_subscriptions_are_limited(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.mcp.change_notifier.MAX_SUBSCRIPTIONS", 1)
    session = await open_session(api)
    answers = [
        (await send(api, "POST", request("resources/subscribe", uri=uri), session=session)).body
        for uri in ("notes://secret", "notes://secret", "skill://app/SKILL.md")
    ]
    assert [b'"result"' in answer for answer in answers] == [True, True, False]


async def test_state_of_a_question_belongs_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    headers = [
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"wipe"),
    ]

    async def call(api: Any, token: str, **more: Any) -> Any:
        message = request("tools/call", name="wipe", arguments={}, _meta=meta, **more)
        body = (await send(api, "POST", message, *headers, token=token)).body
        return json.loads(body.partition(b"data: ")[2] or body)

    async with run_lifespan(make_app("standard").asgi(tokens=TOKENS)) as api:
        answers: dict[str, str] = {}
        for token in (EVE, ALI):
            asked = (await call(api, ALI))["result"]
            yes = {"action": "accept", "content": {"yes": True}}
            responses = dict.fromkeys(asked["inputRequests"], yes)
            state = asked["requestState"]
            answers[token] = json.dumps(
                await call(api, token, requestState=state, inputResponses=responses)
            )
        assert "another call" in answers[EVE]
        assert "wiped" in answers[ALI]


# ------------------------------------------------------------------ several processes


@pytest.fixture
async def other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Two servers with the same keys, as after a restart or in another worker."""
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    settings: Any = {"tokens": TOKENS, "allowed_hosts": ["*"]}
    async with (
        run_lifespan(make_app().asgi(**settings)) as one,
        run_lifespan(make_app().asgi(**settings)) as two,
    ):
        yield one, two


async def test_other_process_answers_only_the_owner(other_process: Any) -> None:
    one, two = other_process
    session = await open_session(one)
    answer = await send(two, "POST", CALL, session=session)
    assert b"for ali" in answer.body
    assert "mcp-session-id" not in answer.headers
    for token, expected in ((EVE, 404), (ALI, 405)):
        for method in ("GET", "DELETE"):
            assert (await send(two, method, None, token=token, session=session)).status == expected
    assert (await send(two, "POST", CALL, token=EVE, session=session)).status == 404
    assert (await send(one, "POST", CALL, session=session)).status == 200


async def test_ended_session_is_not_found_in_its_process(other_process: Any) -> None:
    one, _ = other_process
    session = await open_session(one)
    assert (await send(one, "DELETE", None, session=session)).status == 200
    assert (await send(one, "POST", CALL, session=session)).status == 404


async def test_other_process_has_no_stream_of_the_session(other_process: Any) -> None:
    one, two = other_process
    session = await open_session(one, "reader")
    message = request("resources/subscribe", uri="notes://secret")
    answer = await send(two, "POST", message, token="reader", session=session)
    assert b"This server has no sessions" in answer.body
    last_event = (b"last-event-id", b"1@1")
    replayed = await send(two, "GET", None, last_event, token="reader", session=session)
    assert replayed.status == 405


async def test_stateless_server_uses_a_session_id_only_to_name_the_client() -> None:
    app = make_app()

    @app.command(auth=[])
    def who(ctx: Context) -> list[str | None]:
        """Return the name and the session of the caller."""
        return [ctx.caller.name, ctx.caller.session]

    async with run_lifespan(app.asgi(tokens=TOKENS, stateless=True, json_response=True)) as api:
        session = (await send(api, "POST", INITIALIZE)).headers["mcp-session-id"]
        message = request("tools/call", name="who", arguments={})
        answers: list[Any] = []
        for token, sent in ((ALI, session), (EVE, session), (ALI, UNKNOWN), (ALI, None)):
            version = (b"mcp-protocol-version", b"2025-06-18")
            answer = await send(api, "POST", message, version, token=token, session=sent)
            assert "mcp-session-id" not in answer.headers
            answers.append(answer.json()["result"]["structuredContent"]["result"])
    name = INITIALIZE["params"]["clientInfo"]["name"]
    assert answers[0][0] == name
    assert answers[0][1] and answers[0][1] not in session
    assert answers[1:] == [[None, None]] * 3


async def test_stateless_server_checks_scopes_and_declares_no_notifications() -> None:
    async with run_lifespan(make_app().asgi(tokens=TOKENS, stateless=True)) as api:
        opened = await send(api, "POST", INITIALIZE)
        data = json.loads(opened.body.partition(b"data: {")[2].join([b"{", b""]))
        capabilities = data["result"]["capabilities"]
        assert capabilities["resources"] == {"subscribe": False, "listChanged": False}
        read = request("resources/read", uri="notes://secret")
        assert b"E2001" in (await send(api, "POST", read, token="nobody")).body
        assert b'"text":"secret"' in (await send(api, "POST", read, token="reader")).body
        assert (await send(api, "GET", None)).status == 405
        large = request("tools/call", name="note", arguments={"x": "y" * 50_000})
        assert (await send(api, "POST", large)).status == 200  # not the first one of a session


# ------------------------------------------------------------------ the SSE transport


async def test_sse_session_of_another_caller_looks_unknown() -> None:
    mounts = {"": mcp_endpoint(make_app(), transport="sse")}
    async with run_lifespan(make_app().asgi(tokens=TOKENS, mcp=False, mounts=mounts)) as api:
        stream = AsgiClient(api)
        authorization = (b"authorization", f"Bearer {ALI}".encode())
        task = stream.start("GET", "/sse", [HOST, ACCEPT, authorization])
        await stream.wait_for_messages(2)
        session = stream.body.partition(b"session_id=")[2].split()[0]

        async def post(query: bytes, token: str) -> tuple[int, bytes]:
            answer = await send(
                api, "POST", INITIALIZE, token=token, path="/messages/", query=query
            )
            return answer.status, answer.body

        unknown = await post(b"session_id=" + UNKNOWN.encode(), EVE)
        assert unknown[0] == 404
        for query in (
            b"session_id=" + session,
            b"session_id=" + session.upper(),
            b"session_id=x&session_id=" + session,
            b"session_id=" + session + b"&session_id=" + session,
            b"session%5Fid=" + session,
            b"session_id=%7B" + session + b"%7D",
            b"session_id=urn:uuid:" + session,
        ):
            assert await post(query, EVE) == unknown
        assert (await post(b"session_id=" + session, ALI))[0] == 202
        stream.disconnect()
        await asyncio.wait_for(task, 120)
        assert await post(b"session_id=" + session, ALI) == unknown
