"""The interfaces of the parity tests that use a server: HTTP, and MCP in both generations.

They send a case to the ASGI app without a network, and to the stdio server without a process.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tooli.core._hot_tables import HTTP_OPTIONS, OPTION_KINDS
from tooli.core.event_loop import run_awaitable
from tooli.core.record import Record
from tooli.describe.mcp_tools import is_result_wrapped
from tooli.mcp.protocol import (
    CAPABILITIES_KEY,
    ENVELOPE_KEY,
    META_KEY,
    OPTIONS_KEY,
    STATELESS_VERSIONS,
    VERSION_KEY,
)
from tooli.mcp.stdio_server import StdioServer
from tooli.mcp.stdio_transport import StdioTransport, from_json, to_json
from tooli.pipeline.stdout_capture import route_stdout
from tooli.testing.parity import Interface, InterfaceResponse, as_items, register_interface
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_object, to_jsonable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from typing import ClassVar

    from tooli.app import Tooli
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.serving import AsgiApp, Message
    from tooli.testing.parity import Case


# ------------------------------------------------------------------ HTTP


class HttpResponse(Record):
    """A response: status, headers and the chunks of the body."""

    status: int
    headers: Mapping[str, str]
    chunks: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks)

    def json(self) -> Any:
        """The body as a JSON document."""
        return json.loads(self.body)

    def lines(self) -> list[Any]:
        """The lines of the body as JSON documents."""
        return [json.loads(line) for line in self.body.split(b"\n") if line]


async def send_request(
    api: AsgiApp,
    method: str,
    path: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    query: str = "",
) -> HttpResponse:
    """Send one request to an ASGI application and return the response."""
    request_headers = {
        "host": "localhost",
        **({"content-type": "application/json"} if body else {}),
    }
    request_headers |= {name.lower(): value for name, value in (headers or {}).items()}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode("latin-1")) for name, value in request_headers.items()
        ],
    }
    incoming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if incoming:
            return incoming.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    await api(scope, receive, send)
    head = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return HttpResponse(sent[0]["status"], head, tuple(m.get("body", b"") for m in sent[1:]))


@asynccontextmanager
async def run_lifespan(api: AsgiApp) -> AsyncGenerator[AsgiApp]:
    """Context manager that starts and shuts down an ASGI application."""
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    lifespan_task = asyncio.ensure_future(
        api({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, outbox.put)
    )
    inbox.put_nowait({"type": "lifespan.startup"})
    assert (await outbox.get())["type"] == "lifespan.startup.complete"
    try:
        yield api
    finally:
        inbox.put_nowait({"type": "lifespan.shutdown"})
        await lifespan_task


_OPTIONS_WITH_VALUE = [name for name in HTTP_OPTIONS if OPTION_KINDS[name] != "flag"]
_QUERY_NAMES = {
    "detailed": "response_format",
    "concise": "response_format",
    **{name: name for name in HTTP_OPTIONS},
}


@register_interface
class HttpInterface(Interface):
    """`POST /tools/{command}`."""

    name, surface = "http", "http"
    accept = "application/json"

    def skip_reason(self, case: Case) -> str | None:
        """Return why a case is skipped, for example because HTTP lacks an option, or None."""
        if case.options.keys() - _QUERY_NAMES.keys():
            return "HTTP does not have the option"
        return super().skip_reason(case)

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope in the body of the response."""
        return InterfaceResponse(run_awaitable(post_case(self.app, case, self.accept)).json())


@register_interface
class HttpLinesInterface(HttpInterface):
    """`POST /tools/{command}` with the items of a stream as JSON lines."""

    name, streams = "http-lines", True
    accept = "application/x-ndjson"

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the items, or the error in the last line if the stream failed."""
        response = run_awaitable(post_case(self.app, case, self.accept))
        if response.headers["content-type"] == "application/json":
            return InterfaceResponse(as_items(response.json()))
        lines = response.lines()
        if lines and is_object(lines[-1]) and lines[-1].get("ok") is False:
            return InterfaceResponse(as_items(lines[-1]))
        return InterfaceResponse({"ok": True, "result": lines})


async def post_case(app: Tooli, case: Case, accept: str) -> HttpResponse:
    """Send a case as a POST request and return the response."""
    arguments = to_jsonable(dict(case.arguments), [])
    options = case.options.items()
    query = urlencode(
        [
            _query_pair(name, value)
            for name, value in options
            if value or name in _OPTIONS_WITH_VALUE
        ]
    )
    async with run_lifespan(app.asgi(mcp=False)) as api:
        return await send_request(
            api,
            "POST",
            f"/tools/{case.tool.replace(' ', '/')}",
            body=encode(arguments, []),
            headers={"accept": accept},
            query=query,
        )


def _query_pair(name: str, value: Any) -> tuple[str, str]:
    if _QUERY_NAMES[name] == "response_format":
        return _QUERY_NAMES[name], name
    return _QUERY_NAMES[name], str(value) if name in _OPTIONS_WITH_VALUE else "true"


# ------------------------------------------------------------------ MCP

_CLIENT = {"name": "parity", "version": "1"}


class MemoryTransport(StdioTransport):
    """A transport that collects the sent messages in a list."""

    def __init__(self) -> None:
        super().__init__(-1, -1)
        self.sent: list[Any] = []

    def send(self, data: bytes) -> None:
        """Decode a message and add it to the list."""
        self.sent.append(from_json(data))

    def is_disconnected(self) -> bool:
        """Return False."""
        return False


class McpInterface(Interface):
    """Sends `tools/call` as a client of one protocol generation does."""

    surface: ClassVar[str] = "mcp"
    stateless: ClassVar[bool]

    def __init__(self, app: Tooli) -> None:
        super().__init__(app)
        self.transport = MemoryTransport()
        self.server = StdioServer(app, self.transport)
        if not self.stateless:
            self._send(
                "initialize",
                {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT},
            )

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope of the result."""
        name, tool = _find_tool(self.server, case.tool)
        params: JsonObject = {"name": name, "arguments": dict(case.arguments)}
        if case.options:
            params["_meta"] = {OPTIONS_KEY: dict(case.options)}
        restore = route_stdout()
        try:
            reply = self._send("tools/call", params)
        finally:
            restore()
        return InterfaceResponse(_without_client(envelope_from_reply(reply, tool, self.stateless)))

    def _send(self, method: str, params: JsonObject) -> JsonObject:
        if self.stateless:
            envelope: JsonObject = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: {}}
            params = {**params, "_meta": {**params.get("_meta", {}), **envelope}}
        request = {
            "jsonrpc": "2.0",
            "id": len(self.transport.sent),
            "method": method,
            "params": params,
        }
        self.server.handle_message(from_json(to_json(request)))
        self.server.pending.wait(60)
        self.server.shut_down()  # a test suite creates thousands of interfaces
        return self.transport.sent[-1]


@register_interface
class HandshakeInterface(McpInterface):
    """MCP up to version 2025-11-25, with an `initialize` handshake."""

    name, stateless = "mcp", False


@register_interface
class StatelessInterface(McpInterface):
    """MCP since version 2026-07-28, without a handshake."""

    name, stateless = "mcp-stateless", True


def _find_tool(server: StdioServer, name: str) -> tuple[str, Tool | None]:
    tool = server.service.app.find(name)
    for key, one in server.service.tools.items():
        if tool is not None and one.id == tool.id:
            return key, tool
    return name, tool


def envelope_from_reply(reply: JsonObject, tool: Tool | None, stateless: bool) -> JsonObject:
    """Return the envelope of a reply. A successful result is put together from its parts."""
    if "error" in reply:
        return reply["error"]["data"][ENVELOPE_KEY]
    result = reply["result"]
    if result["isError"]:
        return result["_meta"][ENVELOPE_KEY]
    envelope: JsonObject = {"ok": True}
    value = _result_value(result, tool, stateless)
    if value is not None:
        envelope["result"] = value
    return {**envelope, "meta": result["_meta"][META_KEY]}


def _result_value(result: JsonObject, tool: Tool | None, stateless: bool) -> Any:
    if "structuredContent" in result:
        value = result["structuredContent"]
        return value["result"] if tool is not None and is_result_wrapped(tool, stateless) else value
    content = result["content"]
    if not content:
        return None
    if len(content) == 1 and content[0]["type"] == "text":
        return content[0]["text"]
    return content


def _without_client(envelope: JsonObject) -> JsonObject:
    """Remove name and version of the client, which other interfaces do not have."""
    meta = {k: v for k, v in envelope["meta"].items() if k not in ("caller_id", "caller_version")}
    return {**envelope, "meta": meta}
