"""MCP over HTTP: Streamable HTTP at `/mcp`, or the older SSE transport.

    request ─▶ access control of the HTTP server ─▶ McpEndpoint ─▶ the SDK's transport ─▶ AppServer
                                                        └─▶ HttpSessions: who may use a session

McpEndpoint is a plain ASGI application without access control of its own. Only a process that
serves MCP over HTTP imports this module, so the SDK is imported at the top.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from contextlib import AsyncExitStack, asynccontextmanager
from json import dumps
from weakref import WeakSet

from anyio import BrokenResourceError, ClosedResourceError
from mcp.server.runner import serve_dual_era_loop
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from tooli.mcp.http_sessions import HttpSessions, SessionCaller
from tooli.mcp.protocol import INVALID_REQUEST, STATELESS_VERSIONS
from tooli.pipeline.stdout_capture import route_stdout
from tooli.serving.asgi_receive import receive_until
from tooli.serving.dispatcher import path_without_root

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import TypeAlias

    from mcp.server.streamable_http import EventCallback, EventId, StreamId
    from mcp.shared._stream_protocols import WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

    from tooli.core.protocols import JsonObject
    from tooli.mcp.http_sessions import HttpSession
    from tooli.mcp.sdk_server import AppServer
    from tooli.serving import Message, Receive, Scope, Send

    StoredEvent: TypeAlias = tuple[int, JSONRPCMessage | None, int]

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
        self._sessions = HttpSessions()

    def running(self) -> AbstractAsyncContextManager[None]:
        return self._manager.run()

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        if path_without_root(scope) not in self._paths:
            await _send_error(send, 404, "Not found")
            return
        session_ids = _header_values(scope, SESSION_HEADER)
        version = next(iter(_header_values(scope, VERSION_HEADER)), None)
        send = _hide_input(send)
        if version in STATELESS_VERSIONS:
            headers = [item for item in scope["headers"] if item[0] != SESSION_HEADER]
            scope = {**scope, "headers": headers}
            await self._manager.handle_request(scope, receive, send)
        elif session_ids:
            await self._continue_session(session_ids, scope, receive, send)
        else:
            await self._open_session(scope, receive, send)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request without a session. Only `initialize` opens one and returns its id."""
        caller = SessionCaller(scope)
        if not self._sessions.has_room(caller):
            await _send_error(send, 503, "Too many open sessions", (b"retry-after", b"60"))
            return
        opened: list[str] = []

        async def send_and_register(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 200:
                    opened.extend(_header_values(message, SESSION_HEADER))
                else:
                    message = _without_session_id(message)
                for session_id in opened:
                    await self._end_sessions(self._sessions.add(session_id, caller))
            await send(message)

        try:
            await self._manager.handle_request(scope, receive, send_and_register)
        finally:
            for session_id in opened:
                self._sessions.close_request(session_id)

    async def _continue_session(
        self, session_ids: list[str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass on a request of a session, if the session belongs to the caller."""
        session_id = session_ids[0]
        session = self._sessions.find(session_id, SessionCaller(scope))
        if session is None or len(session_ids) > 1:
            await _send_error(send, 404, "Session not found")
            return

        async def send_without_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = _without_session_id(message)
                if message["status"] == 404:  # the SDK has ended the session
                    self._sessions.remove(session_id)
            await send(message)

        session.open_requests += 1
        try:
            await self._manager.handle_request(scope, receive, send_without_id)
        finally:
            self._sessions.close_request(session_id)
            if scope["method"] == "DELETE":
                self._sessions.remove(session_id)

    async def _end_sessions(self, ended: list[tuple[str, HttpSession]]) -> None:
        """End sessions in the way in which a client ends them: with a DELETE request."""

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def ignore(message: Message) -> None:
            del message

        for session_id, session in ended:
            scope: Scope = {
                "type": "http",
                "method": "DELETE",
                "path": self._paths[0],
                "query_string": b"",
                "headers": [(SESSION_HEADER, session_id.encode("latin-1"))],
            }
            if session.owner.user is not None:
                scope["user"] = session.owner.user
            await self._manager.handle_request(scope, receive, ignore)


class _SseTransport:
    """The SSE transport of version 2024-11-05: a stream at `/sse`, and POSTs to `/messages/`."""

    def __init__(self, server: AppServer) -> None:
        self._server = server
        self._transport = SseServerTransport("/messages/")
        self._lifespan_state: JsonObject = {}
        self._sessions = HttpSessions()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with self._server.lifespan(self._server) as state:
            self._lifespan_state = state
            yield

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_without_root(scope)
        if path == "/messages/":
            await self._receive_message(scope, receive, send)
        elif path == "/sse" and scope["method"] == "GET":
            await self._stream(scope, receive, send)
        else:
            await _send_error(send, 404, "Not found")

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session, which lasts as long as this request."""
        caller = SessionCaller(scope)
        if not self._sessions.has_room(caller):
            await _send_error(send, 503, "Too many open sessions", (b"retry-after", b"60"))
            return
        opened: list[str] = []
        ended = asyncio.Event()

        async def send_and_register(message: Message) -> None:
            if not opened and message["type"] == "http.response.body":
                # the first event contains the URL for messages, which contains the session id
                found = _SESSION_PARAMETER.search(message.get("body", b""))
                if found is not None:
                    opened.append(found.group(1).decode())
                    self._sessions.add(opened[0], caller)
            await send(message)

        try:
            connection = self._transport.connect_sse(
                scope, receive_until(ended, receive), send_and_register
            )
            async with connection as (incoming, outgoing):
                limited = _LimitedSender(outgoing, ended.set)
                await serve_dual_era_loop(
                    self._server, incoming, limited, lifespan_state=self._lifespan_state
                )
        finally:
            for session_id in opened:
                self._sessions.remove(session_id)

    async def _receive_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a message for a session, if the session belongs to the caller."""
        found = _SESSION_QUERY.fullmatch(scope.get("query_string", b""))
        session_id = "" if found is None else found.group(1).decode()
        if self._sessions.find(session_id, SessionCaller(scope)) is None:
            await _send_error(send, 404, "Session not found")
        else:
            try:
                await self._transport.handle_post_message(scope, receive, send)
            except (BrokenResourceError, ClosedResourceError):
                pass  # the session ended after the response was sent


MAX_UNREAD_MESSAGES, MAX_UNREAD_BYTES = 1000, 32 << 20
"""Maximum number and size of the messages that an SSE client has not read. More end its session."""


class _LimitedSender:
    """The outgoing stream of an SSE session. Its messages wait until the client reads them."""

    def __init__(
        self, stream: WriteStream[SessionMessage], end_session: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._end_session = end_session
        self._waiting = self._waiting_bytes = 0

    async def send(self, item: SessionMessage, /) -> None:
        # the size of a message matters only if it waits for others
        size = len(item.message.model_dump_json()) if self._waiting else 0
        self._waiting += 1
        self._waiting_bytes += size
        if self._waiting > MAX_UNREAD_MESSAGES or self._waiting_bytes > MAX_UNREAD_BYTES:
            self._end_session()
        try:
            await self._stream.send(item)
        finally:
            self._waiting -= 1
            self._waiting_bytes -= size

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _LimitedSender:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        del exc_type, exc_val, exc_tb
        await self.aclose()


SESSION_HEADER, VERSION_HEADER = b"mcp-session-id", b"mcp-protocol-version"
_SESSION_QUERY = re.compile(rb"session_id=([0-9a-f]{32})")
_SESSION_PARAMETER = re.compile(rb"\?session_id=([0-9a-f]{32})")


def _header_values(message: Message, name: bytes) -> list[str]:
    """Return the values of a header in a scope or in the start of a response."""
    return [value.decode("latin-1") for key, value in message["headers"] if key.lower() == name]


def _without_session_id(message: Message) -> Message:
    """Return the start of a response without the session id: only `initialize` returns it."""
    headers = [item for item in message["headers"] if item[0].lower() != SESSION_HEADER]
    return {**message, "headers": headers}


def _hide_input(send: Send) -> Send:
    """Return a function that sends a response without the input that an error of the SDK repeats.

    The input may contain a secret. The errors have status 400 and one body.
    """
    held: list[Message] = []

    async def send_without_input(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 400:
            held.append(message)
        elif held:
            reason, found, _ = message.get("body", b"").partition(b"rror: ")
            if found:
                text = "Parse error" if b"Parse e" in reason else "The JSON-RPC message is invalid"
                await _send_error(send, 400, text)
            else:
                await send(held[0])
                await send(message)
            held.clear()
        else:
            await send(message)

    return send_without_input


async def _send_error(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    """Send a JSON-RPC error without an id."""
    error = {"code": INVALID_REQUEST, "message": text}
    body = dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


# ------------------------------------------------------------------ event store


MAX_STREAMS, MAX_EVENTS_PER_STREAM = 32, 100
"""Maximum number of streams per session and of events per stream. The oldest are dropped."""

MAX_STORED_BYTES, MAX_BYTES_OF_ALL_STORES = 8 << 20, 256 << 20
"""Maximum size of the events of a session and of a process. The last event is always kept."""

_STORES: WeakSet[MemoryEventStore] = WeakSet()


class MemoryEventStore(EventStore):
    """The latest events of the latest streams, for clients that reconnect."""

    def __init__(
        self, max_streams: int = MAX_STREAMS, max_events: int = MAX_EVENTS_PER_STREAM
    ) -> None:
        self._max_streams, self._max_events = max_streams, max_events
        self._streams: OrderedDict[StreamId, deque[StoredEvent]] = OrderedDict()
        self._last_event_number = 0
        self.size = 0  # bytes of all events
        _STORES.add(self)

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Store an event; its id contains the id of the stream."""
        self._last_event_number += 1
        events = self._streams.get(stream_id)
        if events is None:
            events = self._streams[stream_id] = deque()
        self._streams.move_to_end(stream_id)
        size = 0 if message is None else len(message.model_dump_json())
        events.append((self._last_event_number, message, size))
        self.size += size
        if len(events) > self._max_events:
            self.size -= events.popleft()[2]
        while len(self._streams) > self._max_streams:
            self._drop_stream()
        while self.size > MAX_STORED_BYTES and self.drop_oldest():
            pass
        _limit_all_stores()
        return f"{self._last_event_number}@{stream_id}"

    def _drop_stream(self) -> None:
        _, events = self._streams.popitem(last=False)
        self.size -= sum([size for *_, size in events])

    def drop_oldest(self) -> bool:
        """Drop the oldest event of the oldest stream; return False if only one event is left."""
        events = next(iter(self._streams.values()), None)
        if events is not None and len(events) > 1:
            self.size -= events.popleft()[2]
            return True
        if len(self._streams) > 1:
            self._drop_stream()
            return True
        return False

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send the events after an event; return None if its stream is unknown."""
        number, at_sign, stream_id = last_event_id.partition("@")
        events = self._streams.get(stream_id)
        if not at_sign or not number.isdigit() or events is None:
            return None
        for event_number, message, _ in list(events):
            if event_number > int(number) and message is not None:
                await send_callback(EventMessage(message, f"{event_number}@{stream_id}"))
        return stream_id


def _limit_all_stores() -> None:
    """Drop events of the largest stores if the events of all sessions are too large."""
    while sum([store.size for store in _STORES]) > MAX_BYTES_OF_ALL_STORES:
        if not max(_STORES, key=lambda store: store.size).drop_oldest():
            return
