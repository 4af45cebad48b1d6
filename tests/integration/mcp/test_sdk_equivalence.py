"""StdioServer and the SDK give equal answers to generated calls, in both kinds of versions."""

from __future__ import annotations

import asyncio
import json
import re
from random import Random
from typing import Any
from unittest import mock

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter
from tests.integration.mcp.stdio_client import CLIENT, HANDSHAKE_VERSION, META, STATELESS_VERSION

from tooli import NotFoundError, Tooli
from tooli.mcp.sdk_server import AppServer
from tooli.mcp.service import McpService
from tooli.mcp.stdio_server import StdioServer
from tooli.pipeline.stdout_capture import route_stdout
from tooli.testing.app_interfaces import MemoryTransport

VERSIONS = [HANDSHAKE_VERSION, STATELESS_VERSION]


@pytest.fixture(autouse=True)
def routed_stdout():
    """Route stdout as a server does, and disable the limit of repeated failures."""
    restore = route_stdout()
    with mock.patch.multiple("tooli.stages.repeated_failures", WARN_AT=1 << 30, BLOCK_AT=1 << 30):
        yield  # both servers get each message, so every failure is repeated
    restore()


class RecordingServer(StdioServer):
    """A StdioServer that records the requests it would hand over to the SDK."""

    def __init__(self, app: Tooli) -> None:
        self.memory = MemoryTransport()
        super().__init__(app, self.memory)
        self.delegated_ids: list[Any] = []

    def _delegate_to_sdk(self, message: dict[str, Any]) -> bool:
        self.delegated_ids.append(message["id"])
        return True

    def send(self, message: dict[str, Any]) -> list[Any] | None:
        """Send a message and return its answers, or None if the SDK would handle it."""
        before = len(self.memory.sent)
        self.handle_message(json.loads(json.dumps(message)))
        self.pending.wait(60)
        if message.get("id") in self.delegated_ids:
            return None
        return self.memory.sent[before:]


class SdkConnection:
    """A connection to the SDK's server of an app, over streams in memory."""

    def __init__(self, app: Tooli) -> None:
        self.server = AppServer(McpService(app))

    async def __aenter__(self) -> SdkConnection:
        self._inbox, incoming = anyio.create_memory_object_stream[Any](100)
        outgoing, self._outbox = anyio.create_memory_object_stream[Any](1000)
        options = self.server.create_initialization_options()
        self._task = asyncio.create_task(self.server.run(incoming, outgoing, options))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._inbox.close()
        await asyncio.wait_for(self._task, 60)
        self._outbox.close()

    async def send(self, message: dict[str, Any]) -> list[Any]:
        """Send a message and return its answers."""
        copy = json.loads(json.dumps(message))
        await self._inbox.send(SessionMessage(jsonrpc_message_adapter.validate_python(copy)))
        messages: list[Any] = []
        while "id" in message:
            item = await asyncio.wait_for(self._outbox.receive(), 60)
            received = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            messages.append(received)
            if "method" not in received and received["id"] == message["id"]:
                break
        return messages


def without_volatile_parts(messages: list[Any]) -> list[Any]:
    """Return messages without the parts that differ between runs."""
    text = json.dumps(messages)
    text = re.sub(r'(token\\*": ?\\*")[\w-]+', r"\g<1>…", text)
    text = re.sub(r'(duration_ms\\*": ?)\d+', r"\g<1>0", text)
    text = re.sub(r"(request[_ ]id[^0-9a-f]{1,8})[0-9a-f]{8}-", r"\g<1>random-", text)
    text = re.sub(r'"requestState": "[^"]*"', '"requestState": "…"', text)
    text = text.replace('"mode": "form", ', "")  # the SDK adds this default
    return json.loads(text)


class RequestGenerator:
    """Generates apps, calls and other requests. Equal seeds give equal ones."""

    PARAM_TYPES = (
        *("int", "float", "str", "bool", "list[int]", "list[str]", "dict[str, int]"),
        *("int | None", "Literal['a', 'b']", "Any", "date", "Path", "Point", "str | int"),
    )
    RETURN_TYPES = (
        *("", " -> None", " -> Any", " -> int", " -> str", " -> bool", " -> float"),
        *(" -> list[int]", " -> list[Any]", " -> dict[str, Any]", " -> int | None", " -> Point"),
        *(" -> list[Point]", " -> str | int", " -> Iterator[int]"),
    )
    ANNOTATIONS = (
        "",
        "ReadOnly",
        "Destructive",
        "Idempotent | OpenWorld",
        "Destructive | Idempotent",
    )
    VALUES: tuple[Any, ...] = (
        *(0, 1, -5, 2.5, 10**20, True, None, "", "a", "7", "2026-01-02", "\N{SNOWMAN}", "\ud800"),
        *([], [1, 2], ["x"], [None], {}, {"x": 1}, {"x": 1, "y": 2}, {"a": {"b": []}}, "x" * 3000),
    )

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.last_id = 0

    def make_app(self, tool_count: int) -> Tooli:
        """Return an app with generated tools."""
        scope: dict[str, Any] = {}
        exec(PRELUDE, scope)
        for number in range(tool_count):
            exec(self._tool_source(number), scope)
        return scope["app"]

    def _tool_source(self, number: int) -> str:
        choose = self.random.choice
        params = []
        for index in range(self.random.randrange(4)):
            default = choose(["", "", " = None"]) if index or number % 2 else ""
            params.append(f"p{index}: {choose(self.PARAM_TYPES)}{default}")
        params.sort(key=lambda param: "=" in param)  # parameters with a default come last
        if self.random.random() < 0.3:
            params = ["ctx: Context", *params]
        returns = choose(self.RETURN_TYPES)
        annotations = choose(self.ANNOTATIONS)
        options = [f"annotations={annotations}"] if annotations else []
        if self.random.random() < 0.15:
            options.append("requires_approval=True")
        if self.random.random() < 0.2:
            options.append("version='9', when_to_use='Never.', cost_hint='high'")
        keyword = "async def" if self.random.random() < 0.3 else "def"
        lines = []
        if params[:1] == ["ctx: Context"]:
            lines.append(
                choose(["ctx.report(1, 2, 'x')", "ctx.log('hi')", "ctx.log('x', level=2)"])
            )
            lines.append(choose(["ctx.warn('oh')", "ctx.elicit('?', FORM)", "pass"]))
        if self.random.random() < 0.3:
            lines.append("print('printed')")
        fail = choose(
            ["", "", "", "raise ValueError('no')", "sys.exit(3)", "raise NotFoundError('x')"]
        )
        lines.append(fail or "pass")
        if "Iterator" in returns:
            keyword = "def"
            lines.append("yield 1")
            lines.append("yield 2")
        elif returns in (" -> Point", " -> dict[str, Any]"):
            lines.append(f"return {choose([{'x': 1}, {'x': 2, 'y': []}])!r}")
        else:
            lines.append(f"return {choose(self.VALUES)!r}")
        body = "\n    ".join(lines)
        decorator = f"@app.command({', '.join(options)})"
        head = f"{keyword} tool_{number}({', '.join(params)}){returns}:"
        return f'{decorator}\n{head}\n    """Tool {number}."""\n    {body}\n'

    # -------------------------------------------------------------- requests

    def request(self, method: str, params: Any, stateless: bool, **meta: Any) -> dict[str, Any]:
        """Return a request, with `_meta` if the version is stateless."""
        self.last_id += 1
        if stateless:
            meta = {
                f"{META}protocolVersion": STATELESS_VERSION,
                f"{META}clientCapabilities": {},
                f"{META}clientInfo": CLIENT,
                **meta,
            }
        if meta and type(params) is dict:
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method}
        return message if params is None else {**message, "params": params}

    def call(self, app: Tooli, stateless: bool) -> dict[str, Any]:
        """Return a call of a tool. Most calls have valid arguments."""
        tools = [tool for tool in app.catalog if not tool.hidden]
        tool = self.random.choice(tools)
        arguments = {
            param.name: self.random.choice(self.VALUES)
            for param in tool.public_params
            if self.random.random() < 0.9
        }
        if self.random.random() < 0.1:
            arguments[self.random.choice(["yes", "dry_run", "more"])] = True
        if self.random.random() < 0.3:
            arguments["yes"] = True
        meta: dict[str, Any] = {}
        if self.random.random() < 0.5:
            meta["progressToken"] = self.random.choice([1, "t", 0, ""])
        if stateless and self.random.random() < 0.3:
            meta[f"{META}logLevel"] = self.random.choice(["debug", "error", "info"])
        if stateless and self.random.random() < 0.3:
            meta[f"{META}clientCapabilities"] = {"elicitation": {}}
        name = tool.name.replace("-", "_")
        return self.request("tools/call", {"name": name, "arguments": arguments}, stateless, **meta)

    def invalid_request(self, stateless: bool) -> dict[str, Any]:
        """Return a request with an unexpected value."""
        odd = self.random.choice([*self.VALUES, None, 1.0, [[]], "tool_0", -1])
        kind = self.random.randrange(10)
        if kind == 0:
            return self.request("tools/list", {"cursor": odd}, stateless)
        if kind == 1:
            return self.request("tools/call", {"name": odd, "arguments": {}}, stateless)
        if kind == 2:
            return self.request("tools/call", {"name": "tool_0", "arguments": odd}, stateless)
        if kind == 3:
            return self.request("tools/call", {"arguments": {}}, stateless)
        if kind == 4:
            return self.request("tools/list", {}, stateless, progressToken=odd)
        if kind == 5 and stateless:
            key = self.random.choice(["protocolVersion", "clientCapabilities", "clientInfo"])
            return self.request("tools/list", {}, stateless, **{META + key: odd})
        if kind == 6:
            params = {"name": "tool_0", "arguments": {}, "requestState": odd}
            return self.request("tools/call", params, stateless)
        if kind == 7:
            params = {"name": "tool_0", "arguments": {}, "inputResponses": odd}
            return self.request("tools/call", params, stateless)
        if kind == 8:
            message = self.request("tools/list", {}, stateless)
            if stateless:
                message["params"] = {"_meta": odd}
            return message
        return self.request(self.random.choice(["ping", "tools/list"]), {"more": odd}, stateless)


PRELUDE = """
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypedDict
from tooli import Context, NotFoundError, Tooli
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly

class Point(TypedDict):
    x: int

FORM = {"type": "object", "properties": {"x": {"type": "string"}}}
app = Tooli("generated", version="1", description="Generated.")
"""


def handshake(stateless: bool, version: str = HANDSHAKE_VERSION) -> list[dict[str, Any]]:
    """Return the messages of the handshake. A stateless version has none."""
    if stateless:
        return []
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    first = {"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params}
    return [first, {"jsonrpc": "2.0", "method": "notifications/initialized"}]


async def compare(app: Tooli, messages: list[dict[str, Any]]) -> int:
    """Send messages to both servers; return how many requests StdioServer answered itself."""
    server = RecordingServer(app)
    compared = 0
    async with SdkConnection(app) as sdk:
        for message in messages:
            expected = await sdk.send(message)
            answers = await asyncio.to_thread(server.send, message)
            if answers is not None:
                assert without_volatile_parts(answers) == without_volatile_parts(expected), message
                compared += "id" in message
            elif message["method"] == "initialize":
                break  # the SDK handles all further messages, too
    return compared


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("version", VERSIONS)
async def test_calls_get_the_answers_of_the_sdk(version: str, seed: int) -> None:
    stateless = version == STATELESS_VERSION
    generator = RequestGenerator(seed)
    for _ in range(4):
        app = generator.make_app(10)
        messages = [
            *handshake(stateless),
            generator.request("tools/list", None if not stateless else {}, stateless),
        ]
        messages += [generator.call(app, stateless) for _ in range(30)]
        assert await compare(app, messages) > 25


@pytest.mark.parametrize("version", VERSIONS)
async def test_invalid_requests_get_the_answers_of_the_sdk(version: str) -> None:
    stateless = version == STATELESS_VERSION
    generator = RequestGenerator(99)
    app = generator.make_app(3)
    messages = [*handshake(stateless), *[generator.invalid_request(stateless) for _ in range(400)]]
    assert await compare(app, messages) > 200


@pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", HANDSHAKE_VERSION, STATELESS_VERSION, "", "x"]
)
async def test_handshakes_get_the_answers_of_the_sdk(version: str) -> None:
    app = RequestGenerator(5).make_app(1)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    list_tools = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    before_handshake = [ping, list_tools] if version != STATELESS_VERSION else []
    assert await compare(app, [*before_handshake, *handshake(False, version), {**ping, "id": 3}])


@pytest.mark.parametrize("seed", range(3))
async def test_invalid_handshakes_get_the_answers_of_the_sdk(seed: int) -> None:
    random = Random(seed)
    app = RequestGenerator(5).make_app(1)
    for _ in range(15):
        (first, _) = handshake(False)
        key = random.choice(["protocolVersion", "capabilities", "clientInfo", "_meta", "name"])
        odd = random.choice([*RequestGenerator.VALUES, {"roots": 1}, {"roots": {}}, {"name": "x"}])
        if key == "name":
            first["params"]["clientInfo"] = {**CLIENT, "name": odd}
        else:
            first["params"][key] = odd
        await compare(app, [first, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}])


async def test_discovery_and_mixed_versions_get_the_answers_of_the_sdk() -> None:
    generator = RequestGenerator(3)
    app = generator.make_app(2)
    discover = generator.request("server/discover", {}, True)
    initialize = {**handshake(False)[0], "id": 77}
    without_meta = {"jsonrpc": "2.0", "id": 78, "method": "tools/list"}
    assert await compare(app, [discover, initialize, without_meta]) == 3
    assert await compare(app, [*handshake(False), {**discover, "id": 79}]) == 2


def make_library_app() -> Tooli:
    """Return an app with resources and prompts of several kinds."""
    app = Tooli("library", version="1")

    @app.resource("note://one", mime_type="text/markdown")
    def one() -> str:
        """The first note."""
        return "# one"

    @app.resource("note://{number}/{kind}")
    def note(number: int, kind: str) -> dict[str, object]:
        """A note."""
        if number > 9:
            raise NotFoundError("There is no such note.")
        return {"number": number, "kind": kind}

    @app.resource("data://bytes")
    async def data() -> bytes:
        return b"\xff\x00"

    @app.resource("secret://x", auth=["admin"])
    def secret() -> str:
        return "x"

    @app.prompt()
    def review(path: str, depth: int = 1) -> list[str]:
        """Review a file."""
        return [f"Review {path}.", f"Depth {depth}."]

    @app.prompt("ask")
    async def ask_about(topic: str) -> str:
        if topic == "fail":
            raise ValueError("no topic")
        return topic

    return app


@pytest.mark.parametrize("version", VERSIONS)
async def test_resources_and_prompts_get_the_answers_of_the_sdk(version: str) -> None:
    stateless = version == STATELESS_VERSION
    generator = RequestGenerator(7)
    odd_values = [*generator.VALUES, 1.0, [[]], -1]
    requests: list[tuple[str, dict[str, Any]]] = [
        *[(method, {}) for method in ("resources/list", "resources/templates/list")],
        ("prompts/list", {}),
        ("prompts/list", {"cursor": "p9"}),
        *[
            ("resources/read", {"uri": uri})
            for uri in ("note://one", "note://3/a", "note://12/a", "note://x/a", "data://bytes")
        ],
        *[("resources/read", {"uri": uri}) for uri in ("secret://x", "missing://x", "n" * 3000)],
        ("prompts/get", {"name": "review", "arguments": {"path": "a.py", "depth": "2"}}),
        ("prompts/get", {"name": "review", "arguments": {"depth": "many"}}),
        *[("prompts/get", {"name": "ask", "arguments": {"topic": t}}) for t in ("ü", "fail")],
        ("prompts/get", {"name": "missing"}),
    ]
    for odd in odd_values:
        requests += [
            ("prompts/list", {"cursor": odd}),
            ("resources/read", {"uri": odd}),
            ("resources/read", {"uri": "note://one", "more": odd}),
            ("prompts/get", {"name": odd}),
            ("prompts/get", {"name": "ask", "arguments": odd}),
            ("prompts/get", {"name": "ask", "arguments": {"topic": odd}}),
        ]
    messages = [
        *handshake(stateless),
        *[generator.request(method, params, stateless) for method, params in requests],
    ]
    assert await compare(make_library_app(), messages) > 40
