"""DirectCalls: its answers equal those of the SDK's transport, and it leaves the rest to it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan

from tooli import Context, Image, Tooli
from tooli.annotations import Destructive
from tooli.errors import NotFoundError
from tooli.mcp import direct_calls, mcp_endpoint
from tooli.mcp.direct_calls import DirectCalls
from tooli.mcp.protocol import CAPABILITIES_KEY, CLIENT_INFO_KEY, VERSION_KEY

STATELESS, HANDSHAKE = "2026-07-28", "2025-11-25"
META = {
    VERSION_KEY: STATELESS,
    CAPABILITIES_KEY: {},
    CLIENT_INFO_KEY: {"name": "bench", "version": "1"},
}
TIMEOUT = 120


class Row(BaseModel):
    name: str
    note: str | None = None


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def add(a: int, b: int = 1) -> int:
        return a + b

    @app.command()
    def rows(count: int) -> list[Row]:
        return [Row(name=f"row {i} \N{LINE SEPARATOR}é") for i in range(count)]

    @app.command()
    def text(size: int) -> str:
        return 'say "hi" \\ é\n' * size

    @app.command()
    async def later(a: int) -> int:
        await asyncio.sleep(0)
        return a

    @app.command()
    def nothing() -> None:
        return None

    @app.command()
    def picture() -> Image:
        return Image(b"\x89PNG", format="png")

    @app.command()
    def missing(name: str) -> str:
        raise NotFoundError(f"There is no {name}.")

    @app.command()
    def crash() -> str:
        raise RuntimeError("hunter2")

    @app.command()
    def report(ctx: Context) -> str:
        ctx.report(1, 2, "half")
        return "done"

    @app.command(annotations=Destructive)
    def drop(name: str) -> str:
        return name

    @app.command()
    def region(name: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        return name

    return app


class McpSession:
    """A client of one version that sends requests to an endpoint."""

    def __init__(self, api: Any, version: str) -> None:
        self.api = api
        self.version = version
        self.session: list[tuple[bytes, bytes]] = []

    async def open(self) -> None:
        if self.version == HANDSHAKE:
            opened = await self.send(json.dumps(INITIALIZE).encode())
            found = opened.headers.get("mcp-session-id")
            self.session = [] if found is None else [(b"mcp-session-id", found.encode())]
            await self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def headers(self, name: str, **changes: str | None) -> list[tuple[bytes, bytes]]:
        values: dict[str, str | None] = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": self.version,
        }
        if self.version == STATELESS:
            values |= {"mcp-method": "tools/call", "mcp-name": name}
        values |= {key.replace("_", "-"): value for key, value in changes.items()}
        found = [(key.encode(), value.encode()) for key, value in values.items() if value]
        return [HOST, *found, *self.session]

    def message(self, name: str, arguments: Any, rpc_id: Any = 7, **params: Any) -> dict[str, Any]:
        meta = {"_meta": META} if self.version == STATELESS else {}
        return {
            "jsonrpc": "2.0",
            "id": rpc_id,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments, **meta, **params},
        }

    async def send(self, body: bytes, headers: Any = None) -> AsgiClient:
        client = AsgiClient(self.api)
        client.send_body(body)
        sent = headers or [HOST, JSON, ACCEPT, *self.session]
        await asyncio.wait_for(client.start("POST", "/mcp", sent), TIMEOUT)
        return client

    async def call(self, name: str, arguments: Any, **params: Any) -> AsgiClient:
        body = json.dumps(self.message(name, arguments, **params)).encode()
        return await self.send(body, self.headers(name))

    def start(self, name: str, rpc_id: Any = 7) -> tuple[AsgiClient, asyncio.Task[None]]:
        """Start a call without arguments."""
        client = AsgiClient(self.api)
        client.send_body(json.dumps(self.message(name, {}, rpc_id)).encode())
        return client, client.start("POST", "/mcp", self.headers(name))


@asynccontextmanager
async def connect(app: Tooli, version: str, **settings: Any) -> AsyncIterator[McpSession]:
    async with run_lifespan(mcp_endpoint(app, **settings)) as api:
        client = McpSession(api, version)
        await client.open()
        yield client


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each request was answered directly."""
    found: list[bool] = []
    read = DirectCalls.read

    def note(self: DirectCalls, *args: Any, **options: Any) -> Any:
        call = read(self, *args, **options)
        found.append(call is not None)
        return call

    monkeypatch.setattr(DirectCalls, "read", note)
    yield found


def read_answer(response: AsgiClient) -> Any:
    """Return what a client sees of a response, without what differs in each call."""
    body = response.body.decode()
    events = [line[6:] for line in body.split("\r\n") if line.startswith("data: {")]
    assert len(events) <= 1
    message = json.loads(events[0] if events else body)
    text = json.dumps(message, sort_keys=True)
    for volatile in ("duration_ms", "request_id"):
        _remove(message, volatile)
    kind = response.headers["content-type"].partition(";")[0]
    return response.status, kind, message, "hunter2" in text


def _remove(value: Any, name: str) -> None:
    """Remove a field, also from JSON in texts."""
    if isinstance(value, dict):
        value.pop(name, None)
        for key, item in value.items():
            if isinstance(item, str) and item[:1] == "{":
                inner = json.loads(item)
                _remove(inner, name)
                value[key] = inner
            _remove(item, name)
    elif isinstance(value, list):
        for item in value:
            _remove(item, name)


CALLS: list[tuple[str, Any]] = [
    ("add", {"a": 1}),
    ("add", {"a": "x", "c": 2}),
    ("add", None),
    ("later", {"a": 3}),
    ("rows", {"count": 2}),
    ("rows", {"count": 500}),
    ("rows", {"count": 40_000}),
    ("text", {"size": 2}),
    ("text", {"size": 20_000}),
    ("text", {"size": 100_000}),
    ("nothing", {}),
    ("picture", {}),
    ("missing", {"name": "tea"}),
]
SERVERS = {
    "stateless": (STATELESS, {}),
    "stateless-json": (STATELESS, {"json_response": True}),
    "session-json": (HANDSHAKE, {"json_response": True}),
    "no-session": (HANDSHAKE, {"stateless": True}),
    "no-session-json": (HANDSHAKE, {"stateless": True, "json_response": True}),
}
each_server = pytest.mark.parametrize("server", SERVERS)


@each_server
async def test_answers_are_those_of_the_sdk(server: str, direct: list[bool]) -> None:
    version, settings = SERVERS[server]
    async with connect(make_app(), version, **settings) as client:
        for name, arguments in CALLS:
            direct.clear()
            answered = read_answer(await client.call(name, arguments))
            assert direct == [True], name
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(direct_calls, "MAX_REQUEST_BYTES", 0)
                expected = read_answer(await client.call(name, arguments))
            assert answered == expected, name
        status, _, message, is_leaked = read_answer(await client.call("crash", {}))
        assert (status, is_leaked) == (200, False)
        assert message["result"]["isError"]


@pytest.mark.parametrize(
    ("name", "arguments", "params", "headers"),
    [
        ("report", {}, {}, {}),
        ("drop", {"name": "tea"}, {}, {}),
        ("unknown", {}, {}, {}),
        ("add", [], {}, {}),
        ("add", {"a": 1}, {"requestState": "x"}, {}),
        ("add", {"a": 1}, {"inputResponses": {}}, {}),
        ("add", {"a": 1}, {"surplus": 1}, {}),
        ("add", {"a": 1}, {}, {"accept": "application/json"}),
        ("add", {"a": 1}, {}, {"accept": None}),
        ("add", {"a": 1}, {}, {"content_type": "text/plain"}),
        ("add", {"a": 1}, {}, {"mcp_name": "rows"}),
        ("add", {"a": 1}, {}, {"mcp_method": "tools/list"}),
        ("add", {"a": 1}, {}, {"mcp_param_a": "1"}),
        ("add", {"a": 1}, {}, {"mcp_protocol_version": "2024-11-05"}),
        ("add", {"a": 1}, {"_meta": {**META, VERSION_KEY: "2027-01-01"}}, {}),
        ("add", {"a": 1}, {"_meta": {**META, CAPABILITIES_KEY: 1}}, {}),
        ("add", {"a": 1}, {"_meta": {**META, "io.tooli/version": "9"}}, {}),
        ("region", {"name": "x"}, {}, {}),
    ],
)
@each_server
async def test_other_requests_go_to_the_sdk(
    server: str, name: str, arguments: Any, params: Any, headers: Any, direct: list[bool]
) -> None:
    version, settings = SERVERS[server]
    async with connect(make_app(), version, **settings) as client:
        direct.clear()
        body = json.dumps(client.message(name, arguments, **params)).encode()
        response = await client.send(body, client.headers(name, **headers))
    assert direct in ([False], [])
    assert response.status


@pytest.mark.parametrize(
    "change",
    [{"jsonrpc": "1.0"}, {"id": None}, {"id": 1.5}, {"method": "tools/list"}, {"surplus": 1}],
)
async def test_invalid_messages_go_to_the_sdk(change: Any, direct: list[bool]) -> None:
    async with connect(make_app(), STATELESS) as client:
        message = {**client.message("add", {"a": 1}), **change}
        await client.send(json.dumps(message).encode(), client.headers("add"))
        await client.send(b"[]", client.headers("add"))
        doubled = [*client.headers("add"), (b"mcp-name", b"add")]
        await client.send(json.dumps(client.message("add", {"a": 1})).encode(), doubled)
    assert direct == [False] * 3


async def test_resumable_event_streams_go_to_the_sdk(direct: list[bool]) -> None:
    async with connect(make_app(), HANDSHAKE) as client:
        direct.clear()
        answered = await client.call("add", {"a": 1})
    assert direct == []
    assert answered.headers["content-type"].startswith("text/event-stream")


async def test_traced_requests_go_to_the_sdk(
    direct: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(direct_calls.sys.modules, "opentelemetry.sdk", direct_calls)
    async with connect(make_app(), STATELESS) as client:
        await client.call("add", {"a": 1})
    assert direct == [False]


async def test_event_has_no_line_ends_of_unicode() -> None:
    """Some clients split the lines of a stream at them."""
    async with connect(make_app(), HANDSHAKE, stateless=True) as client:
        response = await client.call("rows", {"count": 1})
    text = response.body.decode()
    assert text.splitlines() == text.split("\r\n")[:-1]
    assert (
        "row 0 \N{LINE SEPARATOR}é"
        in read_answer(response)[2]["result"]["structuredContent"]["result"][0]["name"]
    )


# ------------------------------------------------------------------ long calls


class WaitingApp:
    """An app whose commands wait."""

    def __init__(self) -> None:
        self.app = Tooli("shop")
        self.started, self.release = threading.Event(), threading.Event()
        self.cancelled = False
        self.app.command("wait")(self.wait)
        self.app.command("await-forever")(self.wait_forever)

    def wait(self) -> str:
        self.started.set()
        assert self.release.wait(TIMEOUT)
        return "done"

    async def wait_forever(self) -> str:
        self.started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "never"


async def test_long_stateless_call_becomes_an_event_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(direct_calls, "WATCH_DELAY", 0.001)
    monkeypatch.setattr(direct_calls, "PING_INTERVAL", 0.01)
    waiting = WaitingApp()
    async with connect(waiting.app, STATELESS) as client:
        response, task = client.start("wait")
        await response.wait_for_messages(3)
        waiting.release.set()
        await asyncio.wait_for(task, TIMEOUT)
    assert response.headers["content-type"] == "text/event-stream"
    assert response.body.startswith(b": ping\r\n\r\n: ping\r\n\r\n")
    assert read_answer(response)[2]["result"]["structuredContent"] == "done"


async def test_disconnection_cancels_a_stateless_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_calls, "WATCH_DELAY", 0.001)
    waiting = WaitingApp()
    async with connect(waiting.app, STATELESS, json_response=True) as client:
        response, task = client.start("await_forever")
        assert await asyncio.to_thread(waiting.started.wait, TIMEOUT)
        response.disconnect()
        await asyncio.wait_for(task, TIMEOUT)
        assert response.sent == []
        assert waiting.cancelled


async def test_disconnection_does_not_cancel_a_call_of_a_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(direct_calls, "WATCH_DELAY", 0.001)
    waiting = WaitingApp()
    async with connect(waiting.app, HANDSHAKE, json_response=True) as client:
        response, task = client.start("wait")
        assert await asyncio.to_thread(waiting.started.wait, TIMEOUT)
        response.disconnect()
        await asyncio.sleep(0.01)
        waiting.release.set()
        await asyncio.wait_for(task, TIMEOUT)
        assert read_answer(response)[2]["result"]["structuredContent"] == {"result": "done"}


@pytest.mark.parametrize("how", ["notification", "end of the session"])
async def test_call_of_a_session_is_cancelled(how: str) -> None:
    waiting = WaitingApp()
    async with connect(waiting.app, HANDSHAKE, json_response=True) as client:
        response, task = client.start("await_forever", rpc_id="x")
        assert await asyncio.to_thread(waiting.started.wait, TIMEOUT)
        for request_id in ("other", "x") if how == "notification" else ():
            params = {"requestId": request_id}
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            await client.send(json.dumps(message).encode(), client.headers(""))
        if how != "notification":
            ending = AsgiClient(client.api)
            ending.send_body()
            await ending.start("DELETE", "/mcp", client.headers(""))
        await asyncio.wait_for(task, TIMEOUT)
        assert read_answer(response)[2]["error"] == {
            "code": -32800,
            "message": "Request cancelled",
        }
        assert waiting.cancelled


async def test_second_call_with_the_id_of_a_running_one_goes_to_the_sdk(
    direct: list[bool],
) -> None:
    waiting = WaitingApp()
    waiting.app.command("add")(lambda a: a)
    async with connect(waiting.app, HANDSHAKE, json_response=True) as client:
        direct.clear()
        first, task = client.start("wait")
        assert await asyncio.to_thread(waiting.started.wait, TIMEOUT)
        await client.call("add", {"a": "1"})
        waiting.release.set()
        await asyncio.wait_for(task, TIMEOUT)
    assert direct == [True, False]
    assert first.status == 200


@each_server
async def test_shutdown_ends_a_call(server: str) -> None:
    version, settings = SERVERS[server]
    waiting = WaitingApp()
    async with connect(waiting.app, version, **settings) as client:
        response, task = client.start("await_forever")
        assert await asyncio.to_thread(waiting.started.wait, TIMEOUT)
        await client.api.server.close(0)
        await asyncio.wait_for(task, TIMEOUT)
        assert read_answer(response)[2]["error"]["code"] == -32000
        refused = await client.call("wait", {})
        assert "shutting down" in read_answer(refused)[2]["error"]["message"]


async def test_calls_are_limited(monkeypatch: pytest.MonkeyPatch, direct: list[bool]) -> None:
    monkeypatch.setattr("tooli.mcp.sdk_server.MAX_CONCURRENT_CALLS", 0)
    async with connect(make_app(), STATELESS) as client:
        refused = read_answer(await client.call("add", {"a": 1}))[2]
    assert refused["result"]["_meta"]["io.tooli/envelope"]["error"]["code"] == "E4075"
    assert direct == [True]
