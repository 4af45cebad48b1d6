"""MCP over HTTP: Streamable HTTP at `/mcp`, or the older SSE transport.

    request ─▶ access control of the HTTP server ─▶ McpEndpoint ─▶ the SDK's transport ─▶ AppServer

McpEndpoint is a plain ASGI application without access control of its own. Only a process that
serves MCP over HTTP imports this module, so the SDK is imported at the top.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from contextlib import AsyncExitStack, asynccontextmanager

from mcp.server.runner import serve_dual_era_loop
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from tooli.pipeline.stdout_capture import route_stdout
from tooli.serving.dispatcher import path_without_root

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from mcp.server.streamable_http import EventCallback, EventId, StreamId
    from mcp_types import JSONRPCMessage

    from tooli.core.protocols import JsonObject
    from tooli.mcp.sdk_server import AppServer
    from tooli.serving import Receive, Scope, Send

SSE_RETRY_MS = 100
"""Milliseconds that a disconnected client waits before it reconnects for its answer."""

LIFESPAN_GRACE_PERIOD = 5.0
"""Seconds that running calls get to finish after the event `lifespan.shutdown`."""

FLUSH_TIMEOUT = 2.0
"""Seconds that clients get to receive the last answers."""


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
        """Shut down. Running calls get `grace` seconds to end; then the last answers are sent."""
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
        """Run the server. While it runs, the text that a command prints can be captured."""
        async with AsyncExitStack() as stack:
            stack.callback(route_stdout())
            await stack.enter_async_context(self._handler.running())
            yield


class _SessionManager(StreamableHTTPSessionManager):
    """Session manager with one event store per session: stream ids are unique only in a session."""

    @property
    def event_store(self) -> MemoryEventStore:  # type: ignore[override]
        return MemoryEventStore()

    @event_store.setter
    def event_store(self, _: object) -> None:
        pass


class _StreamableHttpTransport:
    """Streamable HTTP. Handshake versions have sessions, stateless versions have none."""

    def __init__(self, server: AppServer, path: str) -> None:
        self._paths = (path, f"{path}/")
        self._manager = _SessionManager(server, retry_interval=SSE_RETRY_MS)

    def running(self) -> AbstractAsyncContextManager[None]:
        return self._manager.run()

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        if path_without_root(scope) not in self._paths:
            await _send_not_found(send)
        else:
            await self._manager.handle_request(scope, receive, send)


class _SseTransport:
    """The SSE transport of version 2024-11-05: a stream at `/sse`, and POSTs to `/messages/`."""

    def __init__(self, server: AppServer) -> None:
        self._server = server
        self._transport = SseServerTransport("/messages/")
        self._lifespan_state: JsonObject = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with self._server.lifespan(self._server) as state:
            self._lifespan_state = state
            yield

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_without_root(scope)
        if path == "/messages/":
            await self._transport.handle_post_message(scope, receive, send)
        elif path == "/sse" and scope["method"] == "GET":
            async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                await serve_dual_era_loop(
                    self._server, incoming, outgoing, lifespan_state=self._lifespan_state
                )
        else:
            await _send_not_found(send)


async def _send_not_found(send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


# ------------------------------------------------------------------ event store


MAX_STREAMS, MAX_EVENTS_PER_STREAM = 32, 100
"""Maximum number of streams per session and of events per stream. The oldest are dropped."""


class MemoryEventStore(EventStore):
    """The latest events of the latest streams, for clients that reconnect."""

    def __init__(
        self, max_streams: int = MAX_STREAMS, max_events: int = MAX_EVENTS_PER_STREAM
    ) -> None:
        self._max_streams, self._max_events = max_streams, max_events
        self._streams: OrderedDict[StreamId, deque[tuple[int, JSONRPCMessage | None]]] = (
            OrderedDict()
        )
        self._last_event_number = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Store an event; its id contains the id of the stream."""
        self._last_event_number += 1
        events = self._streams.get(stream_id)
        if events is None:
            events = self._streams[stream_id] = deque(maxlen=self._max_events)
        self._streams.move_to_end(stream_id)
        events.append((self._last_event_number, message))
        while len(self._streams) > self._max_streams:
            self._streams.popitem(last=False)
        return f"{self._last_event_number}@{stream_id}"

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send the events after an event; return None if its stream is unknown."""
        number, at_sign, stream_id = last_event_id.partition("@")
        events = self._streams.get(stream_id)
        if not at_sign or not number.isdigit() or events is None:
            return None
        for event_number, message in list(events):
            if event_number > int(number) and message is not None:
                await send_callback(EventMessage(message, f"{event_number}@{stream_id}"))
        return stream_id
