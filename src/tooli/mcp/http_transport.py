"""MCP over HTTP: Streamable HTTP at `/mcp`, or the older SSE transport.

    request ─▶ access control of the HTTP server ─▶ McpEndpoint ─▶ the SDK's transport ─▶ AppServer

McpEndpoint is a plain ASGI application without access control of its own.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

from tooli.serving.dispatcher import path_without_root

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Any

    from tooli.core.protocols import App
    from tooli.mcp.sdk_server import AppServer
    from tooli.serving import Receive, Scope, Send

SSE_RETRY_MS = 100
"""Milliseconds after which a disconnected client may reconnect for its answer."""

LIFESPAN_GRACE_PERIOD = 5.0
"""Seconds that running calls get when the server shuts down."""


FLUSH_TIMEOUT = 2.0
"""Seconds to send the last answers to their clients."""


class McpEndpoint:
    """The MCP server of an app as an ASGI application with a lifespan."""

    def __init__(self, server: AppServer, transport: str = "http", path: str = "/mcp") -> None:
        self.server = server
        self._handler = (
            _SseTransport(server) if transport == "sse" else _StreamableHttpTransport(server, path)
        )
        self._pending_posts = 0  # requests that are not answered yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle the lifespan protocol."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST":
            self._pending_posts += 1
            try:
                await self._handler.respond(scope, receive, send)
            finally:
                self._pending_posts -= 1
        elif scope["type"] == "http":
            await self._handler.respond(scope, receive, send)

    async def close(self, grace: float) -> None:
        """Shut down: running calls get `grace` seconds, and their answers are sent."""
        import asyncio

        await self.server.close(grace)
        remaining = FLUSH_TIMEOUT
        while self._pending_posts and remaining > 0:
            await asyncio.sleep(0.02)
            remaining -= 0.02

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self.close(LIFESPAN_GRACE_PERIOD)
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the server. While it runs, text that a command prints becomes its result."""
        from tooli.pipeline.stdout_capture import route_stdout

        async with AsyncExitStack() as stack:
            stack.callback(route_stdout())
            await stack.enter_async_context(self._handler.running())
            yield


class _StreamableHttpTransport:
    """Streamable HTTP. Handshake versions have sessions, stateless versions have none."""

    def __init__(self, server: AppServer, path: str) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from tooli.mcp.event_store import MemoryEventStore

        class Manager(StreamableHTTPSessionManager):
            """Session manager with one event store per session, since sessions reuse stream ids."""

            @property
            def event_store(self) -> MemoryEventStore:  # type: ignore[override]
                return MemoryEventStore()

            @event_store.setter
            def event_store(self, _: object) -> None:
                pass

        self._paths = (path, f"{path}/")
        self._manager = Manager(server, retry_interval=SSE_RETRY_MS)

    def running(self) -> Any:
        return self._manager.run()

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        if path_without_root(scope) not in self._paths:
            await _send_not_found(send)
        else:
            await self._manager.handle_request(scope, receive, send)


class _SseTransport:
    """The SSE transport of version 2024-11-05: a stream at `/sse`, and POSTs to `/messages/`."""

    def __init__(self, server: AppServer) -> None:
        from mcp.server.sse import SseServerTransport

        self._server = server
        self._transport = SseServerTransport("/messages/")
        self._lifespan: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with self._server.lifespan(self._server) as state:
            self._lifespan = state
            yield

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.runner import serve_dual_era_loop

        path = path_without_root(scope)
        if path == "/messages/":
            await self._transport.handle_post_message(scope, receive, send)
        elif path == "/sse" and scope["method"] == "GET":
            async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                await serve_dual_era_loop(
                    self._server, incoming, outgoing, lifespan_state=self._lifespan
                )
        else:
            await _send_not_found(send)


async def _send_not_found(send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


# ------------------------------------------------------------------ serving


def mcp_endpoint(
    app: App, *, deferred: bool = False, transport: str = "http", path: str = "/mcp"
) -> McpEndpoint:
    """Return an app's MCP server as an ASGI application. The HTTP server controls access to it."""
    require_sdk()
    from tooli.mcp.sdk_server import make_server
    from tooli.mcp.service import McpService

    return McpEndpoint(make_server(McpService(app, deferred=deferred)), transport, path)


def require_sdk() -> None:
    """Raise a DependencyError if the MCP SDK is not installed."""
    from tooli.serving.dispatcher import is_installed

    if not is_installed("mcp"):
        from tooli.errors import DependencyError, Suggestion

        raise DependencyError(
            "MCP over HTTP needs the MCP SDK, which is not installed.",
            suggestion=Suggestion("fix", "Run: pip install 'tooli[mcp]'"),
        )
