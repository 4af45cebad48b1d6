"""The MCP interfaces of the parity tests, for both generations of the protocol.

They use the stdio server without a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from tooli.testing.parity import Case, Interface, InterfaceResponse, register_interface

if TYPE_CHECKING:
    from typing import ClassVar

    from tooli.app import Tooli
    from tooli.core.tool import Tool

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
        params: dict[str, Any] = {"name": name, "arguments": dict(case.arguments)}
        if case.options:
            params["_meta"] = {OPTIONS_KEY: dict(case.options)}
        restore = route_stdout()
        try:
            reply = self._send("tools/call", params)
        finally:
            restore()
        return InterfaceResponse(_without_client(envelope_from_reply(reply, tool, self.stateless)))

    def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.stateless:
            envelope: dict[str, Any] = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: {}}
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


def envelope_from_reply(
    reply: dict[str, Any], tool: Tool | None, stateless: bool
) -> dict[str, Any]:
    """Return the envelope of a reply. A successful result is put together from its parts."""
    if "error" in reply:
        return reply["error"]["data"][ENVELOPE_KEY]
    result = reply["result"]
    if result["isError"]:
        return result["_meta"][ENVELOPE_KEY]
    envelope: dict[str, Any] = {"ok": True}
    value = _result_value(result, tool, stateless)
    if value is not None:
        envelope["result"] = value
    return {**envelope, "meta": result["_meta"][META_KEY]}


def _result_value(result: dict[str, Any], tool: Tool | None, stateless: bool) -> Any:
    if "structuredContent" in result:
        value = result["structuredContent"]
        return value["result"] if tool is not None and is_result_wrapped(tool, stateless) else value
    content = result["content"]
    if not content:
        return None
    if len(content) == 1 and content[0]["type"] == "text":
        return content[0]["text"]
    return content


def _without_client(envelope: dict[str, Any]) -> dict[str, Any]:
    """Remove name and version of the client, which other interfaces do not have."""
    meta = {k: v for k, v in envelope["meta"].items() if k not in ("caller_id", "caller_version")}
    return {**envelope, "meta": meta}
