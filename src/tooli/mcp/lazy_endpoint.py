"""LazyEndpoint: the MCP server of an app, which is imported and started with its first request.

    start of the server ─▶ LazyEndpoint          nothing is imported
    first request to /mcp ─▶ build ─▶ McpEndpoint

The MCP SDK takes about a second to import and 40 MB of memory, and many servers never need it.
"""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.mcp.http_transport import McpEndpoint
    from tooli.serving import Receive, Scope, Send


class LazyEndpoint:
    """An ASGI application that builds an McpEndpoint when it is first called."""

    starts_on_demand = True  # the HTTP server starts it with the first request to its path

    def __init__(self, build: Callable[[], McpEndpoint]) -> None:
        self._build = build
        self._endpoint: McpEndpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle the lifespan protocol. The lifespan comes first."""
        if self._endpoint is None:
            # in a thread: calls of the HTTP API do not wait for the import
            self._endpoint = await asyncio.to_thread(self._build)
        await self._endpoint(scope, receive, send)

    async def close(self, grace: float) -> None:
        """Close the server if it was started."""
        if self._endpoint is not None:
            await self._endpoint.close(grace)
