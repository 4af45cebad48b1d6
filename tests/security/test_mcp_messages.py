"""MCP messages that take long to decode: refused before they are decoded, checked in a thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan

from tooli import Tooli
from tooli.mcp import http_transport, mcp_endpoint
from tooli.mcp.protocol import CAPABILITIES_KEY, STATELESS_VERSIONS, VERSION_KEY
from tooli.mcp.stdio_server import StdioServer
from tooli.testing.app_interfaces import MemoryTransport
from tooli.text import json_limits
from tooli.text.jsonable import MAX_JSON_DEPTH

STATELESS_META = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: {}}
TOO_MANY = "more than 1,000 lists and objects"


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_limits, "MAX_JSON_CONTAINERS", 1000)


def make_app() -> Tooli:
    app = Tooli("app")

    @app.command()
    def count(items: list[Any]) -> int:
        """Count items."""
        return len(items)

    return app


def nest(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def call_message(items: Any, *, stateless: bool = False) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "count", "arguments": {"items": items}}
    if stateless:
        params["_meta"] = STATELESS_META
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


class Mcp:
    """A client of `/mcp`, with a session or stateless."""

    def __init__(self, api: Any, *, stateless: bool) -> None:
        self.api, self.stateless = api, stateless
        self.headers = [HOST, JSON, ACCEPT]
        if stateless:
            version = STATELESS_VERSIONS[-1].encode()
            names = [(b"mcp-method", b"tools/call"), (b"mcp-name", b"count")]
            self.headers += [(b"mcp-protocol-version", version), *names]

    async def open(self) -> None:
        if not self.stateless:
            opened = await self.post(json.dumps(INITIALIZE).encode())
            self.headers.append((b"mcp-session-id", opened.headers["mcp-session-id"].encode()))

    async def post(self, body: bytes) -> AsgiClient:
        client = AsgiClient(self.api)
        client.send_body(body)
        await asyncio.wait_for(client.start("POST", "/mcp", self.headers), 120)
        return client

    async def count(self, items: Any, encoding: str = "utf-8") -> AsgiClient:
        message = call_message(items, stateless=self.stateless)
        return await self.post(json.dumps(message).encode(encoding))


@pytest.fixture(params=["session", "stateless"])
async def mcp(request: pytest.FixtureRequest) -> AsyncIterator[Mcp]:
    async with run_lifespan(make_app().asgi()) as api:
        client = Mcp(api, stateless=request.param == "stateless")
        await client.open()
        yield client


@pytest.mark.parametrize("item", [[], {}, [{}], {"a": []}])
async def test_number_of_containers_is_limited_over_http(mcp: Mcp, item: Any) -> None:
    refused = await mcp.count([item] * 1000)
    assert (refused.status, TOO_MANY in refused.body.decode()) == (400, True)
    accepted = await mcp.count([item] * 400)
    assert (accepted.status, '"result"' in accepted.body.decode()) == (200, True)
    assert (await mcp.count(["[{"] * 2000)).status == 200


async def test_depth_is_limited_as_in_the_http_api(mcp: Mcp) -> None:
    for depth, status in ((MAX_JSON_DEPTH - 2, 200), (MAX_JSON_DEPTH - 1, 400)):
        assert (await mcp.count(nest(depth))).status == status
        client = AsgiClient(mcp.api)
        client.send_body(json.dumps({"items": nest(depth)}).encode())
        await asyncio.wait_for(client.start("POST", "/tools/count", [HOST, JSON]), 120)
        assert client.status == status


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8"])
async def test_encoding_hides_no_containers(mcp: Mcp, encoding: str) -> None:
    """The letter ∢ contains the byte of a quote in UTF-16."""
    message = call_message(["\u2222", *[[]] * 2000], stateless=mcp.stateless)
    body = json.dumps(message, ensure_ascii=False).encode(encoding)
    assert (await mcp.post(body)).status == 400


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
async def test_numbers_that_are_not_json(mcp: Mcp, number: str) -> None:
    """The HTTP API and the stdio server refuse them, but the SDK would accept them."""
    message = json.dumps(call_message(["number"], stateless=mcp.stateless))
    assert (await mcp.post(message.replace('"number"', number).encode())).status == 400
    assert (await mcp.post(message.replace("number", number).encode())).status == 200


@pytest.mark.parametrize("options", [{"dryrun": True}, ["dry_run"], "dry_run"])
async def test_unknown_option_refuses_the_call(mcp: Mcp, options: Any) -> None:
    message = call_message(["x"], stateless=mcp.stateless)
    meta = message["params"].get("_meta", {})
    message["params"]["_meta"] = {**meta, "io.tooli/options": options}
    answer = (await mcp.post(json.dumps(message).encode())).body.decode()
    assert "E1007" in answer and '"isError":true' in answer


async def test_large_messages_are_checked_in_a_thread(
    mcp: Mcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def record(data: bytes, **options: int) -> None:
        threads.append(threading.current_thread())
        json_limits.check_json_limits(data, **options)

    monkeypatch.setattr(http_transport, "check_json_limits", record)
    assert (await mcp.count(["x"])).status == 200
    assert (await mcp.count(["x" * 100_000])).status == 200
    assert len(threads) == 2
    assert threads[0] is threading.current_thread() is not threads[1]


@pytest.mark.parametrize(
    "text",
    [
        "[{}]",
        '{{"jsonrpc":"2.0","id":1,"result":{}}}',
        '{{"jsonrpc":"2.0","id":1,"error":{{"code":{},"message":""}}}}',
        '{{"jsonrpc":"2.0","id":1,"method":{}}}',
        '{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}',
    ],
)
async def test_invalid_large_message_is_not_repeated(
    mcp: Mcp, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK writes the values of an invalid message into its error, on the event loop."""
    refused = await mcp.post(text.format("[" + "1," * 50_000 + "1]").encode())
    assert refused.status == 400
    assert len(refused.body.decode()) < 300
    if not mcp.stateless:
        received: list[bytes] = []
        real = http_transport._StreamableHttpTransport.respond

        async def record(*args: Any) -> None:
            received.append(b"")
            await real(*args)

        monkeypatch.setattr(http_transport._StreamableHttpTransport, "respond", record)
        await mcp.post(text.format("[" + "1," * 50_000 + "1]").encode())
        assert received == []


async def test_size_is_limited_without_the_http_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "MAX_MESSAGE_BYTES", 5000)
    async with run_lifespan(mcp_endpoint(make_app())) as api:
        client = Mcp(api, stateless=False)
        await client.open()
        assert (await client.count(["x" * 4000])).status == 200
        assert (await client.count(["x" * 5000])).status == 413


async def test_containers_are_limited_in_sse_sessions() -> None:
    async with run_lifespan(mcp_endpoint(make_app(), transport="sse")) as api:
        stream = AsgiClient(api)
        task = stream.start("GET", "/sse", [HOST, ACCEPT])
        await stream.wait_for_messages(2)
        query = stream.body.split(b"?")[1].split()[0]
        for items, status in (([], 202), ([[]] * 1000, 400)):
            client = AsgiClient(api)
            client.send_body(json.dumps(call_message(items)).encode())
            client.start("POST", "/messages/", [HOST, JSON], query)
            await client.wait_for_messages(2)
            assert client.status == status
        stream.disconnect()
        await asyncio.wait_for(task, 120)


@pytest.mark.parametrize(
    ("items", "problem"), [([[]] * 1000, TOO_MANY), (nest(MAX_JSON_DEPTH), "nested too deeply")]
)
def test_containers_are_limited_over_stdio(items: list[Any], problem: str) -> None:
    transport = MemoryTransport()
    server = StdioServer(make_app(), transport)
    server._handle_line(json.dumps(call_message(items)).encode())
    (answer,) = transport.sent
    assert (answer["id"], answer["error"]["code"]) == (7, -32600)
    assert problem in answer["error"]["message"]
