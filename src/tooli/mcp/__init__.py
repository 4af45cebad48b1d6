"""The MCP server of an app, over stdio and HTTP."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App
    from tooli.mcp.http_transport import McpEndpoint


def mcp_endpoint(
    app: App, *, deferred: bool = False, transport: str = "http", path: str = "/mcp"
) -> McpEndpoint:
    """Return an app's MCP server as an ASGI application. The HTTP server controls access to it.

    Raises a DependencyError if the MCP SDK is not installed.
    """
    from tooli.serving.dispatcher import require_package

    message = "MCP over HTTP needs the MCP SDK, which is not installed."
    require_package("mcp", message, "Run: pip install 'tooli[mcp]>=7.0a1'")
    from tooli.mcp.http_transport import McpEndpoint
    from tooli.mcp.sdk_server import AppServer
    from tooli.mcp.service import McpService

    return McpEndpoint(AppServer(McpService(app, deferred=deferred)), transport, path)
