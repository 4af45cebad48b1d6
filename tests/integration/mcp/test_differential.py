"""The stdio front answers as the SDK would: generated tools and calls, in both eras."""

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
from tests.integration.mcp.talk import CLIENT, HANDSHAKE_VERSION, META, STATELESS_VERSION

from tooli import Tooli
from tooli.mcp.sdk_server import make_server
from tooli.mcp.service import McpService
from tooli.mcp.stdio_server import StdioServer
from tooli.pipeline.stdout_capture import route_stdout
from tooli.testing.server_interfaces import MemoryTransport

ERAS = [HANDSHAKE_VERSION, STATELESS_VERSION]


@pytest.fixture(autouse=True)
def routed():
    """What tools print goes where a server lets it go."""
    restore = route_stdout()
    with mock.patch.multiple("tooli.stages.repeated_failures", WARN_AT=1 << 30, BLOCK_AT=1 << 30):
        yield  # who is asked the same thing twice is asked by both
    restore()


class Alone(StdioServer):
    """A front that has an SDK at hand, and only notes what it would give to it."""

    def __init__(self, app: Tooli) -> None:
        self.memory = MemoryTransport()
        super().__init__(app, self.memory)
        self.passed: list[Any] = []

    def _delegate_to_sdk(self, message: dict[str, Any]) -> bool:
        self.passed.append(message["id"])
        return True

    def ask(self, message: dict[str, Any]) -> list[Any] | None:
        """Return every answer to a message, or None if the SDK would answer."""
        before = len(self.memory.sent)
        self.handle_message(json.loads(json.dumps(message)))
        self.pending.wait(60)
        if message.get("id") in self.passed:
            return None
        return self.memory.sent[before:]


class Sdk:
    """The SDK's server of the same app, over streams in memory."""

    def __init__(self, app: Tooli) -> None:
        self.server = make_server(McpService(app))

    async def __aenter__(self) -> Sdk:
        self._inbox, incoming = anyio.create_memory_object_stream[Any](100)
        outgoing, self._outbox = anyio.create_memory_object_stream[Any](1000)
        options = self.server.create_initialization_options()
        self._task = asyncio.create_task(self.server.run(incoming, outgoing, options))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._inbox.close()
        await asyncio.wait_for(self._task, 60)
        self._outbox.close()

    async def ask(self, message: dict[str, Any]) -> list[Any]:
        """Return every answer to a message."""
        copy = json.loads(json.dumps(message))
        await self._inbox.send(SessionMessage(jsonrpc_message_adapter.validate_python(copy)))
        messages: list[Any] = []
        while "id" in message:
            item = await asyncio.wait_for(self._outbox.receive(), 60)
            one = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            messages.append(one)
            if "method" not in one and one["id"] == message["id"]:
                break
        return messages


def plain(message: list[Any]) -> list[Any]:
    """Return the answers without what differs from run to run."""
    text = json.dumps(message)
    text = re.sub(r'(token\\*": ?\\*")[\w-]+', r"\g<1>…", text)
    text = re.sub(r'(duration_ms\\*": ?)\d+', r"\g<1>0", text)
    text = re.sub(r'"requestState": "[^"]*"', '"requestState": "sealed"', text)
    text = text.replace('"mode": "form", ', "")  # what the SDK adds without need
    return json.loads(text)


class Invention:
    """Apps, calls and other requests, the same ones for the same seed."""

    KINDS = (
        *("int", "float", "str", "bool", "list[int]", "list[str]", "dict[str, int]"),
        *("int | None", "Literal['a', 'b']", "Any", "date", "Path", "Point", "str | int"),
    )
    RESULTS = (
        *("", " -> None", " -> Any", " -> int", " -> str", " -> bool", " -> float"),
        *(" -> list[int]", " -> list[Any]", " -> dict[str, Any]", " -> int | None", " -> Point"),
        *(" -> list[Point]", " -> str | int", " -> Iterator[int]"),
    )
    HINTS = ("", "ReadOnly", "Destructive", "Idempotent | OpenWorld", "Destructive | Idempotent")
    VALUES: tuple[Any, ...] = (
        *(0, 1, -5, 2.5, 10**20, True, None, "", "a", "7", "2026-01-02", "\N{SNOWMAN}", "\ud800"),
        *([], [1, 2], ["x"], [None], {}, {"x": 1}, {"x": 1, "y": 2}, {"a": {"b": []}}, "x" * 3000),
    )

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.ids = 0

    def app(self, tools: int) -> Tooli:
        """An app with some tools."""
        scope: dict[str, Any] = {}
        exec(PRELUDE, scope)
        for number in range(tools):
            exec(self._tool(number), scope)
        return scope["app"]

    def _tool(self, number: int) -> str:
        choose = self.random.choice
        params = []
        for index in range(self.random.randrange(4)):
            default = choose(["", "", " = None"]) if index or number % 2 else ""
            params.append(f"p{index}: {choose(self.KINDS)}{default}")
        if any("=" in one for one in params):
            params = [*params[:0], *sorted(params, key=lambda one: "=" in one)]
        if self.random.random() < 0.3:
            params = ["ctx: Context", *params]
        returns = choose(self.RESULTS)
        hints = choose(self.HINTS)
        text = [f"annotations={hints}"] if hints else []
        if self.random.random() < 0.15:
            text.append("requires_approval=True")
        if self.random.random() < 0.2:
            text.append("version='9', when_to_use='Never.', cost_hint='high'")
        word = "async def" if self.random.random() < 0.3 else "def"
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
            word = "def"
            lines.append("yield 1")
            lines.append("yield 2")
        elif returns in (" -> Point", " -> dict[str, Any]"):
            lines.append(f"return {choose([{'x': 1}, {'x': 2, 'y': []}])!r}")
        else:
            lines.append(f"return {choose(self.VALUES)!r}")
        body = "\n    ".join(lines)
        decorator = f"@app.command({', '.join(text)})"
        head = f"{word} tool_{number}({', '.join(params)}){returns}:"
        return f'{decorator}\n{head}\n    """Tool {number}."""\n    {body}\n'

    # -------------------------------------------------------------- requests

    def request(self, method: str, params: Any, stateless: bool, **meta: Any) -> dict[str, Any]:
        """A request of an era."""
        self.ids += 1
        if stateless:
            meta = {
                f"{META}protocolVersion": STATELESS_VERSION,
                f"{META}clientCapabilities": {},
                f"{META}clientInfo": CLIENT,
                **meta,
            }
        if meta and type(params) is dict:
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": self.ids, "method": method}
        return message if params is None else {**message, "params": params}

    def call(self, app: Tooli, stateless: bool) -> dict[str, Any]:
        """A call, more often right than wrong."""
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

    def oddity(self, stateless: bool) -> dict[str, Any]:
        """A request with something wrong in it."""
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
            given = {"name": "tool_0", "arguments": {}, "requestState": odd}
            return self.request("tools/call", given, stateless)
        if kind == 7:
            given = {"name": "tool_0", "arguments": {}, "inputResponses": odd}
            return self.request("tools/call", given, stateless)
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
app = Tooli("invented", version="1", description="Invented.")
"""


def opening(stateless: bool, version: str = HANDSHAKE_VERSION) -> list[dict[str, Any]]:
    """How a conversation of an era begins."""
    if stateless:
        return []
    payload = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    first = {"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": payload}
    return [first, {"jsonrpc": "2.0", "method": "notifications/initialized"}]


async def compare(app: Tooli, messages: list[dict[str, Any]]) -> int:
    """Say the same to both; how many of the messages were the front's."""
    front = Alone(app)
    compared = 0
    async with Sdk(app) as sdk:
        for message in messages:
            theirs = await sdk.ask(message)
            ours = await asyncio.to_thread(front.ask, message)
            if ours is not None:
                assert plain(ours) == plain(theirs), message
                compared += "id" in message
            elif message["method"] == "initialize":
                break  # all that follows is the SDK's as well
    return compared


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("version", ERAS)
async def test_calls(version: str, seed: int) -> None:
    stateless = version == STATELESS_VERSION
    invention = Invention(seed)
    for _ in range(4):
        app = invention.app(10)
        messages = [
            *opening(stateless),
            invention.request("tools/list", None if not stateless else {}, stateless),
        ]
        messages += [invention.call(app, stateless) for _ in range(30)]
        assert await compare(app, messages) > 25


@pytest.mark.parametrize("version", ERAS)
async def test_malformed_parameters(version: str) -> None:
    stateless = version == STATELESS_VERSION
    invention = Invention(99)
    app = invention.app(3)
    messages = [*opening(stateless), *[invention.oddity(stateless) for _ in range(400)]]
    assert await compare(app, messages) > 200


@pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", HANDSHAKE_VERSION, STATELESS_VERSION, "", "x"]
)
async def test_openings(version: str) -> None:
    app = Invention(5).app(1)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    early = [ping, listing] if version != STATELESS_VERSION else []
    assert await compare(app, [*early, *opening(False, version), {**ping, "id": 3}])


@pytest.mark.parametrize("seed", range(3))
async def test_malformed_openings(seed: int) -> None:
    random = Random(seed)
    app = Invention(5).app(1)
    for _ in range(15):
        (first, _) = opening(False)
        place = random.choice(["protocolVersion", "capabilities", "clientInfo", "_meta", "name"])
        odd = random.choice([*Invention.VALUES, {"roots": 1}, {"roots": {}}, {"name": "x"}])
        if place == "name":
            first["params"]["clientInfo"] = {**CLIENT, "name": odd}
        else:
            first["params"][place] = odd
        await compare(app, [first, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}])


async def test_discovery_and_the_other_era() -> None:
    invention = Invention(3)
    app = invention.app(2)
    asked = invention.request("server/discover", {}, True)
    refused = {**opening(False)[0], "id": 77}
    bare = {"jsonrpc": "2.0", "id": 78, "method": "tools/list"}
    assert await compare(app, [asked, refused, bare]) == 3
    assert await compare(app, [*opening(False), {**asked, "id": 79}]) == 2
