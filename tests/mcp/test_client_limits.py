"""What a session keeps of `initialize`: a small part, of limited size."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, post_message, run_lifespan

from tooli import Context, Tooli
from tooli.mcp import mcp_endpoint
from tooli.mcp.client_limits import MAX_INITIALIZE_CHARS, _is_larger_than
from tooli.mcp.http_transport import McpEndpoint
from tooli.mcp.service import caller_from_client_info

LARGE: dict[str, dict[str, Any]] = {
    "lists": {"capabilities": {"experimental": {"a": {"x": [[]] * 20_000}}}},
    "used capability": {"capabilities": {"elicitation": {f"k{i}": {} for i in range(5000)}}},
    "name": {"clientInfo": {"name": "n" * 1_000_000, "version": "1"}},
    "icons": {"clientInfo": {"name": "n", "version": "1", "icons": [{"src": "s"}] * 5000}},
    "unknown": {"other": ["x"] * 10_000},
}


def initialize(**params: Any) -> dict[str, Any]:
    message = copy.deepcopy(INITIALIZE)
    message["params"] |= params
    return message


async def send(api: Any, message: Any, session: str = "") -> AsgiClient:
    client = AsgiClient(api)
    client.send_body(json.dumps(message).encode())
    headers = [HOST, JSON, ACCEPT, *([(b"mcp-session-id", session.encode())] if session else [])]
    await client.start("POST", "/mcp", headers)
    return client


def make_endpoint() -> McpEndpoint:
    app = Tooli("app")

    @app.command()
    def can_ask(ctx: Context) -> list[object]:
        return [ctx.caller.name, ctx.caller.version]

    return mcp_endpoint(app)


def kept_params(endpoint: McpEndpoint) -> list[Any]:
    """Return the parameters that the sessions keep."""
    sessions = endpoint.server.notifier._sessions
    return [session.client_params for session in sessions if session.client_params is not None]


@pytest.mark.parametrize("name", LARGE)
async def test_large_first_request_is_refused(name: str) -> None:
    endpoint = make_endpoint()
    async with run_lifespan(endpoint):
        client = await send(endpoint, initialize(**LARGE[name]))
        assert client.status == 413
        assert len(client.body) < 2000
        assert not kept_params(endpoint)
        assert "mcp-session-id" not in client.headers


@pytest.mark.parametrize("name", LARGE)
async def test_second_initialize_is_limited(name: str) -> None:
    endpoint = make_endpoint()
    async with run_lifespan(endpoint):
        session = (await send(endpoint, INITIALIZE)).headers["mcp-session-id"]
        client = await send(endpoint, initialize(**LARGE[name]), session)
        assert b"larger than 16000 characters" in client.body
        [params] = kept_params(endpoint)
        assert params.capabilities.experimental is None


async def test_initialize_over_sse_is_limited() -> None:
    async with run_lifespan(mcp_endpoint(Tooli("app"), transport="sse")) as api:
        stream = AsgiClient(api)
        task = stream.start("GET", "/sse", [HOST, ACCEPT])
        await stream.wait_for_messages(2)
        query = stream.body.split(b"?")[1].split()[0]
        large = initialize(**LARGE["lists"])
        assert await post_message(api, query, large) == 413
        notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert await post_message(api, query, notification) == 202
        assert await post_message(api, query, large) == 413
        assert await post_message(api, query, INITIALIZE) == 202
        await stream.wait_for_messages(3)
        assert await post_message(api, query, large) == 202
        await stream.wait_for_messages(4)
        assert b"larger than 16000 characters" in stream.body
        stream.disconnect()
        await task


async def test_only_used_parameters_are_kept() -> None:
    endpoint = make_endpoint()
    capabilities = {
        "elicitation": {"form": {}},
        "sampling": {},
        "roots": {"listChanged": True},
        "experimental": {"a": {"b": [1, 2]}},
        "tasks": {},
    }
    client_info = {"name": "n" * 300, "version": "v" * 300, "title": "t", "description": "d"}
    message = initialize(capabilities=capabilities, clientInfo=client_info)
    async with run_lifespan(endpoint):
        session = (await send(endpoint, message)).headers["mcp-session-id"]
        [params] = kept_params(endpoint)
        kept = params.model_dump(by_alias=True, exclude_none=True)
        assert set(kept["capabilities"]) == {"elicitation", "sampling", "roots"}
        assert set(kept["clientInfo"]) == {"name", "version"}
        assert len(kept["clientInfo"]["name"]) == len(kept["clientInfo"]["version"]) == 100
        await send(endpoint, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        call = {"name": "can_ask", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        answer = (await send(endpoint, message, session)).body
        assert b"nnn" in answer
        assert len(answer) < 3000


def test_name_of_a_client_is_cut() -> None:
    caller = caller_from_client_info({"name": "n" * 1000, "version": "v" * 1000}, {})
    assert len(caller.name or "") == len(caller.version or "") == 100


@pytest.mark.parametrize(
    ("value", "is_larger"),
    [
        ("x" * 90, False),
        ("x" * 101, True),
        ([[]] * 20, False),
        ([[]] * 60, True),
        ({"a": {"b": "x" * 50}}, False),
        ({"a": {"b": ["x" * 50] * 2}}, True),
        ({"k" * 200: 1}, True),
        ([1, None, True, 1.5], False),
        (list(range(60)), True),
    ],
)
def test_size(value: object, is_larger: bool) -> None:
    assert _is_larger_than(value, 100) is is_larger
    assert MAX_INITIALIZE_CHARS == 16_000
