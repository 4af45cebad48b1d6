"""A tool for other roles and a tool that does not exist are answered alike."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan
from tests.security.test_hidden_tools import rpc

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.mcp import mcp_endpoint
from tooli.transforms import Visibility

HIDDEN, MISSING = "vaultone", "vaulttwo"
"""A tool for other roles, and a name that no tool has."""


def make_app() -> Tooli:
    app = Tooli("app")

    @app.command(handoffs=[HIDDEN])
    def peek() -> str:
        return "tea"

    @app.command(HIDDEN, tags=["admin"], deprecated="use peek", sunset="2099-01-01")
    def first(data: bytes = b"") -> str:
        return "gold"

    @app.command(HIDDEN + "-versions", tags=["admin"], version="1.0")
    def second() -> str:
        return "gold"

    @app.command(HIDDEN + "-versions", tags=["admin"], version="2.0")
    def third() -> str:
        return "gold"

    app.add_transform(Visibility(exclude_tags={"admin"}, roles={"ops"}))
    return app


TOKENS: dict[str, Any] = {"guest": ["x"], "ops": ["ops"]}


async def request(api: Any, token: str, method: str, path: str) -> AsgiClient:
    client = AsgiClient(api)
    client.send_body(b"{}" if method == "POST" else b"")
    headers = [HOST, *([JSON] if method == "POST" else [])]
    headers.append((b"authorization", f"Bearer {token}".encode()))
    await asyncio.wait_for(client.start(method, path, headers), 120)
    return client


def without_ids(answer: AsgiClient) -> tuple[Any, ...]:
    """Return what a caller can compare, with one name for both tools."""
    headers = {
        name: v
        for name, v in answer.headers.items()
        if name not in ("date", "etag", "x-request-id")
    }
    headers.pop("content-length", None)
    body = answer.body.decode().replace(HIDDEN, MISSING)
    body = re.sub(r',"session_id":"\w+"', "", body)
    body = re.sub(r'(duration_ms\\*":)[\d.]+', r"\g<1>0", body)
    return answer.status, headers, body


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS"])
@pytest.mark.parametrize("suffix", ["", "@1.0", "-versions@1.0", "-versions@7"])
@pytest.mark.parametrize("start", ["/tools/", "/plans/", "/uploads/"])
async def test_hidden_tool_over_http(method: str, suffix: str, start: str) -> None:
    api = make_app().asgi(mcp=False, tokens=TOKENS)
    hidden = await request(api, "guest", method, f"{start}{HIDDEN}{suffix}")
    missing = await request(api, "guest", method, f"{start}{MISSING}{suffix}")
    assert without_ids(hidden) == without_ids(missing)
    assert hidden.status == 404


async def test_caller_with_the_role_calls_it_over_http() -> None:
    api = make_app().asgi(mcp=False, tokens=TOKENS)
    for path in (f"/tools/{HIDDEN}", f"/tools/{HIDDEN}-versions@1.0", f"/plans/{HIDDEN}"):
        assert (await request(api, "ops", "POST", path)).status == 200


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("suffix", ["", "_versions"])
async def test_hidden_tool_over_mcp(deferred: bool, suffix: str) -> None:
    app = make_app()
    endpoint = {"/mcp": mcp_endpoint(app, deferred=deferred)}
    async with run_lifespan(app.asgi(mcp=False, mounts=endpoint, tokens=TOKENS)) as api:
        answers = []
        for name in (HIDDEN + suffix, MISSING + suffix):
            for params in ({"name": name, "arguments": {}}, _deferred_call(name)):
                answer = await rpc(api, "guest", "tools/call", **params)
                answers.append(without_ids(answer))
        assert answers[:2] == answers[2:]
        params = _deferred_call(HIDDEN + suffix) if deferred else {"name": HIDDEN + suffix}
        allowed = await rpc(api, "ops", "tools/call", **params)
        assert b"gold" in allowed.body


def _deferred_call(name: str) -> dict[str, Any]:
    return {"name": "run_tool", "arguments": {"name": name, "arguments": {}}}


async def test_hidden_version_over_mcp() -> None:
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        answers = []
        for name in (HIDDEN, MISSING):
            headers = [HOST, JSON, ACCEPT, (b"authorization", b"Bearer guest")]
            client = AsgiClient(api)
            client.send_body(json.dumps(INITIALIZE).encode())
            await asyncio.wait_for(client.start("POST", "/mcp", headers), 120)
            headers.append((b"mcp-session-id", client.headers["mcp-session-id"].encode()))
            meta = {"io.tooli/version": "1.0"}
            params = {"name": f"{name}_versions", "arguments": {}, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            client = AsgiClient(api)
            client.send_body(json.dumps(message).encode())
            await asyncio.wait_for(client.start("POST", "/mcp", headers), 120)
            status, _, body = without_ids(client)
            answers.append((status, body.partition("data: ")[2]))
        assert answers[0] == answers[1]


async def test_handoff_to_a_hidden_tool() -> None:
    """A tool that everybody sees names one for other roles."""
    async with run_lifespan(make_app().asgi(tokens=TOKENS)) as api:
        detailed = AsgiClient(api)
        detailed.send_body(b"{}")
        headers = [HOST, JSON, (b"authorization", b"Bearer guest")]
        await detailed.start("POST", "/tools/peek", headers, b"response_format=detailed")
        answers = [
            detailed,
            await request(api, "guest", "GET", "/tools"),
            await request(api, "guest", "GET", "/openapi.json"),
            await rpc(api, "guest", "tools/list"),
            await rpc(api, "guest", "resources/read", uri="skill://app/SKILL.md"),
        ]
        for answer in answers:
            assert answer.status == 200
            assert HIDDEN.encode() not in answer.body
        assert HIDDEN.encode() in (await rpc(api, "ops", "tools/list")).body


def make_app_with_documents() -> Tooli:
    """Return an app whose commands for other roles are resources and prompts as well."""
    app = Tooli("app")

    @app.command(tags=["admin"], annotations=ReadOnly, resource=f"app://{HIDDEN}")
    def first() -> str:
        """Return the gold of vaultone."""
        return "gold"

    @app.prompt(f"{HIDDEN}-prompt")
    @app.command(tags=["admin"])
    def second(name: str) -> str:
        """Ask vaultone."""
        return f"gold {name}"

    @app.resource(f"app://{HIDDEN}/{{name}}")
    @app.command(tags=["admin"])
    def third(name: str) -> str:
        """Return a part of vaultone."""
        return f"gold {name}"

    @app.command(annotations=ReadOnly, resource="app://tea")
    def peek() -> str:
        return "tea"

    app.add_transform(Visibility(exclude_tags={"admin"}, roles={"ops"}))
    return app


async def test_documents_of_hidden_tools_are_in_no_list() -> None:
    async with run_lifespan(make_app_with_documents().asgi(tokens=TOKENS)) as api:
        requests = [
            lambda token: request(api, token, "GET", "/tools"),
            lambda token: request(api, token, "GET", "/resources"),
            lambda token: request(api, token, "GET", "/prompts"),
            lambda token: rpc(api, token, "resources/list"),
            lambda token: rpc(api, token, "resources/templates/list"),
            lambda token: rpc(api, token, "prompts/list"),
            lambda token: rpc(api, token, "resources/read", uri="skill://app/SKILL.md"),
        ]
        for send in requests:
            assert HIDDEN.encode() not in (await send("guest")).body
            assert HIDDEN.encode() in (await send("ops")).body


@pytest.mark.parametrize(
    "method, params, answer",
    [
        ("resources/read", {"uri": f"app://{HIDDEN}"}, b"gold"),
        ("resources/read", {"uri": f"app://{HIDDEN}/x"}, b"gold"),
        ("prompts/get", {"name": f"{HIDDEN}-prompt", "arguments": {"name": "x"}}, b"gold"),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": f"app://{HIDDEN}/{{name}}"},
                "argument": {"name": "name", "value": ""},
            },
            b"completion",
        ),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": f"{HIDDEN}-prompt"},
                "argument": {"name": "name", "value": ""},
            },
            b"completion",
        ),
    ],
)
async def test_documents_of_hidden_tools_over_mcp(
    method: str, params: dict[str, Any], answer: bytes
) -> None:
    async with run_lifespan(make_app_with_documents().asgi(tokens=TOKENS)) as api:
        missing = json.loads(json.dumps(params).replace(HIDDEN, MISSING))
        hidden = without_ids(await rpc(api, "guest", method, **params))
        assert hidden == without_ids(await rpc(api, "guest", method, **missing))
        assert answer not in hidden[2].encode()
        assert answer in (await rpc(api, "ops", method, **params)).body


@pytest.mark.parametrize(
    "path, query",
    [
        ("/resources/read", f"uri=app://{HIDDEN}"),
        ("/resources/read", f"uri=app://{HIDDEN}/x"),
        (f"/prompts/{HIDDEN}-prompt", "name=x"),
    ],
)
async def test_documents_of_hidden_tools_over_http(path: str, query: str) -> None:
    api = make_app_with_documents().asgi(mcp=False, tokens=TOKENS)

    async def send(token: str, path: str, query: str) -> AsgiClient:
        client = AsgiClient(api)
        client.send_body(b"")
        headers = [HOST, (b"authorization", f"Bearer {token}".encode())]
        await asyncio.wait_for(client.start("GET", path, headers, query.encode()), 120)
        return client

    hidden = await send("guest", path, query)
    missing = [text.replace(HIDDEN, MISSING) for text in (path, query)]
    assert without_ids(hidden) == without_ids(await send("guest", *missing))
    assert hidden.status == 404
    assert b"gold" in (await send("ops", path, query)).body


async def test_subscription_to_a_document_of_a_hidden_tool() -> None:
    async with run_lifespan(make_app_with_documents().asgi(tokens=TOKENS)) as api:
        answers = []
        for name in (HIDDEN, MISSING):
            notifications = {"resourceSubscriptions": [f"app://{name}"]}
            answer = await rpc(api, "guest", "subscriptions/listen", notifications=notifications)
            answers.append(without_ids(answer))
        assert answers[0] == answers[1]


async def test_document_of_a_command_that_is_left_out_for_everybody() -> None:
    app = make_app_with_documents()
    app.add_transform(Visibility(exclude_tags={"admin"}))
    async with run_lifespan(app.asgi(tokens=TOKENS)) as api:
        assert f'app://{HIDDEN}"'.encode() not in (await rpc(api, "ops", "resources/list")).body
        read = await rpc(api, "ops", "resources/read", uri=f"app://{HIDDEN}")
        assert b"gold" not in read.body
        assert b"app://tea" in (await rpc(api, "guest", "resources/list")).body
    assert f"app://{HIDDEN}" not in [entry.get("uri") for entry in app.list_resources()]


def test_python_code_reads_documents_of_hidden_tools() -> None:
    app = make_app_with_documents()
    assert app.read_resource(f"app://{HIDDEN}").result == "gold"
    assert app.get_prompt(f"{HIDDEN}-prompt", name="x").ok
    assert HIDDEN not in json.dumps([app.list_resources(), app.list_prompts()])
