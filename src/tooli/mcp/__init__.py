"""The MCP server of an app, over stdio and HTTP."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App
    from tooli.mcp.http_transport import McpEndpoint


def mcp_endpoint(
    app: App,
    *,
    deferred: bool = False,
    code_mode: bool = False,
    transport: str = "http",
    path: str = "/mcp",
    stateless: bool = False,
    json_response: bool = False,
    expose_errors: bool = False,
) -> McpEndpoint:
    """Return an app's MCP server as an ASGI application. The HTTP server controls access to it.

    With `stateless`, clients of handshake versions get no sessions. With `json_response`, answers
    are JSON instead of event streams. With `expose_errors`, clients get the texts of unexpected
    exceptions. Raises a DependencyError if the MCP SDK is not installed.
    """
    from tooli.serving.dispatcher import require_package

    message = "MCP over HTTP needs the MCP SDK, which is not installed."
    require_package("mcp", message, "Run: pip install 'tooli[mcp]>=7.0a1'")
    from tooli.mcp.http_transport import McpEndpoint
    from tooli.mcp.sdk_server import AppServer
    from tooli.mcp.service import McpService

    service = McpService(app, deferred=deferred, code_mode=code_mode, exposes_errors=expose_errors)
    server = AppServer(service, has_sessions=not stateless)
    return McpEndpoint(server, transport, path, json_response=json_response)
