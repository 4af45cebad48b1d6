"""MCP over HTTP: Streamable HTTP at `/mcp`, or the older SSE transport.

    request ─▶ access control of the HTTP server ─▶ McpEndpoint ─▶ the SDK's transport ─▶ AppServer
                                                        └─▶ HttpSessions: who may use a session

McpEndpoint is a plain ASGI application without access control of its own. Only a process that
serves MCP over HTTP imports this module, so the SDK is imported at the top.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from json import loads
from typing import Any
from uuid import UUID, uuid4

from anyio import BrokenResourceError, ClosedResourceError
from mcp.server.runner import serve_dual_era_loop
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

from tooli.mcp.client_limits import MAX_INITIALIZE_CHARS
from tooli.mcp.direct_calls import DirectCalls
from tooli.mcp.event_store import RELEASE_STREAM, MemoryEventStore
from tooli.mcp.http_messages import (
    INVALID_MESSAGE,
    PARSE_ERROR,
    SESSION_DATA,
    SESSION_HEADER,
    VERSION_HEADER,
    add_session_id,
    header_values,
    hide_input,
    join_body,
    send_error,
    with_session,
    without_session_id,
)
from tooli.mcp.http_sessions import HttpSessions, SessionCaller
from tooli.mcp.protocol import MESSAGE_DEPTH, STATELESS_VERSIONS
from tooli.mcp.scope_challenge import refuse_missing_scope
from tooli.mcp.session_ids import SessionIds, read_client_info
from tooli.mcp.stdio_transport import from_json as decode_message
from tooli.pipeline.stdout_capture import route_stdout
from tooli.serving.asgi_receive import (
    BodyCounter,
    read_messages,
    receive_until,
    replay_messages,
)
from tooli.serving.dispatcher import path_without_root
from tooli.storage.session_store import StoredSession
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from types import TracebackType

    from mcp.shared._stream_protocols import WriteStream

    from tooli.core.protocols import JsonObject
    from tooli.mcp.http_sessions import HttpSession
    from tooli.mcp.sdk_server import AppServer
    from tooli.mcp.session_ids import SessionId
    from tooli.serving import Message, Receive, Scope, Send

SSE_RETRY_MS = 100
"""Milliseconds that a disconnected client waits before it reconnects for its answer."""

LIFESPAN_GRACE_PERIOD = 5.0
"""Seconds that running calls get to finish after the event `lifespan.shutdown`."""

FLUSH_TIMEOUT = 2.0
"""Seconds that clients get to receive the last answers."""


class McpEndpoint:
    """The MCP server of an app as an ASGI application with a lifespan."""

    def __init__(
        self,
        server: AppServer,
        transport: str = "http",
        path: str = "/mcp",
        *,
        json_response: bool = False,
    ) -> None:
        self.server = server
        self._handler = (
            _SseTransport(server)
            if transport == "sse"
            else _StreamableHttpTransport(server, path, json_response)
        )
        self._pending_posts = 0  # requests that are not answered yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle the lifespan protocol."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST":
            self._pending_posts += 1
            try:
                await self._answer_post(scope, receive, send)
            finally:
                self._pending_posts -= 1
        elif scope["type"] == "http":
            await self._handler.respond(scope, receive, send)

    async def _answer_post(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a message, unless it takes long to decode or to refuse."""
        messages = await read_messages(receive, MAX_MESSAGE_BYTES)
        if messages is None:
            await send_error(send, 413, f"A message can have {MAX_MESSAGE_BYTES} bytes at most")
            return
        body = b"".join([item.get("body", b"") for item in messages])
        problem = (
            _find_problem(body)
            if len(body) <= LARGE_MESSAGE_BYTES
            else await asyncio.to_thread(_find_problem_of_large_message, body, scope)
        )
        if problem is not None:
            await send_error(send, 400, problem)
            return
        is_large = len(body) > LARGE_MESSAGE_BYTES
        if not await refuse_missing_scope(self.server, body, scope, send, is_large=is_large):
            await self._handler.respond(scope, replay_messages(messages, receive), send, body)

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


_session_owner: ContextVar[str] = ContextVar("session_owner", default="")
"""The key of the caller whose request may open a session."""


class _SessionManager(StreamableHTTPSessionManager):
    """Session manager with one event store per session: stream ids are unique only in a session."""

    def __init__(self, server: AppServer, json_response: bool) -> None:
        super().__init__(server, json_response=json_response, retry_interval=SSE_RETRY_MS)
        self._release_tasks: set[asyncio.Future[None]] = set()

    @property
    def event_store(self) -> MemoryEventStore:  # type: ignore[override]
        return MemoryEventStore(_session_owner.get(), on_large_event=self._release_output)

    @event_store.setter
    def event_store(self, _: object) -> None:
        pass

    async def handle_without_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a handshake version that does not belong to a session here."""
        version = next(iter(header_values(scope, VERSION_HEADER)), None)
        await self._handle_stateless_request(version, scope, receive, send)

    # The loops of the SDK that read the messages of a session keep the last message until the next
    # one arrives. After a large message they get an empty one, so that idle sessions stay small.

    async def release_input(self, session_id: str) -> None:
        """Make a session forget the last message that the client sent."""
        transport = self._server_instances.get(session_id)
        if transport is not None:
            await _send_empty_item(transport._read_stream_writer)

    def _release_output(self, store: MemoryEventStore) -> None:
        """Make a session forget the last message that was sent to the client."""
        for transport in self._server_instances.values():
            if transport._event_store is store and transport._write_stream is not None:
                empty = JSONRPCNotification(jsonrpc="2.0", method=RELEASE_STREAM)
                metadata = ServerMessageMetadata(related_request_id=RELEASE_STREAM)
                item = SessionMessage(empty, metadata=metadata)
                task = asyncio.ensure_future(_send_quietly(transport._write_stream, item))
                self._release_tasks.add(task)
                task.add_done_callback(self._release_tasks.discard)


async def _send_empty_item(writer: WriteStream[SessionMessage | Exception] | None) -> None:
    """Send an item that the SDK ignores."""
    if writer is not None:
        await _send_quietly(writer, Exception("release the last message"))


async def _send_quietly(stream: WriteStream[Any], item: object) -> None:
    try:
        await stream.send(item)
    except (BrokenResourceError, ClosedResourceError):
        pass  # the session has ended


class _StreamableHttpTransport:
    """Streamable HTTP. Handshake versions have sessions, unless the server is stateless."""

    def __init__(self, server: AppServer, path: str, json_response: bool) -> None:
        self._server = server
        self._paths = (path, f"{path}/")
        self._json_response = json_response
        self._direct = DirectCalls(server, json_response=json_response)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self._manager = _SessionManager(self._server, self._json_response)  # can run only once
        self._sessions = HttpSessions()
        self._ids = SessionIds()
        async with self._manager.run():
            yield

    async def respond(self, scope: Scope, receive: Receive, send: Send, body: bytes = b"") -> None:
        if path_without_root(scope) not in self._paths:
            await send_error(send, 404, "Not found")
            return
        session_ids = header_values(scope, SESSION_HEADER)
        version = next(iter(header_values(scope, VERSION_HEADER)), None)
        if version in STATELESS_VERSIONS:
            call = self._direct.read(scope, body)
            if call is not None:
                await self._direct.respond(call, receive, send)
                return
        send = hide_input(send)
        if version in STATELESS_VERSIONS:
            await self._manager.handle_request(with_session(scope, None), receive, send)
        elif not self._server.has_sessions:
            session_id = session_ids[0] if session_ids else ""
            session = self._ids.read(session_id, SessionCaller(scope).principal)
            await self._respond_without_session(session, scope, receive, send, body)
        elif session_ids:
            await self._continue_session(session_ids, scope, receive, send, body)
        else:
            await self._open_session(scope, receive, send)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request without a session. Only `initialize` opens one and returns its id."""
        caller = SessionCaller(scope)
        if not self._sessions.has_room(caller):
            await send_error(send, 503, "Too many open sessions", (b"retry-after", b"60"))
            return
        messages = await read_messages(receive, MAX_INITIALIZE_CHARS)
        if messages is None:
            await send_error(send, 413, _TOO_LARGE)
            return
        receive = replay_messages(messages, receive)
        client = read_client_info(join_body(messages)) or {}
        _session_owner.set(caller.key)
        opened: list[str] = []

        async def send_and_register(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 200:
                    opened.extend(header_values(message, SESSION_HEADER))
                message = without_session_id(message)
                for name in opened:
                    session_id = self._ids.issue(name, client, caller.principal)
                    message["headers"].append((SESSION_HEADER, session_id.encode("ascii")))
                    await self._end_sessions(self._sessions.add(name, caller))
            await send(message)

        try:
            await self._manager.handle_request(scope, receive, send_and_register)
        finally:
            for name in opened:
                self._sessions.close_request(name)

    async def _respond_without_session(
        self,
        session: SessionId | None,
        scope: Scope,
        receive: Receive,
        send: Send,
        body: bytes,
    ) -> None:
        """Answer a request on its own. Its session, if it has one, only tells who the client is."""
        if scope["method"] != "POST":
            text = "Requests to this server have no session: it accepts only POST."
            await send_error(send, 405, text, (b"allow", b"POST"))
            return
        client, name = (None, "") if session is None else (session.client, session.name)
        call = self._direct.read(scope, body, client, name)
        if call is not None:
            await self._direct.respond(call, receive, send, as_events=True)
            return
        if session is None:
            messages = await read_messages(receive)
            receive = replay_messages(messages or [], receive)
            client = read_client_info(join_body(messages or []))
            if client is not None:
                issued = self._ids.issue(uuid4().hex, client, SessionCaller(scope).principal)
                send = add_session_id(send, issued)
        known = {} if session is None else {"client": session.client, "session": session.name}
        scope = {**with_session(scope, None), "tooli.stateless": known}
        if session is not None and not self._server.has_sessions:
            scope[SESSION_DATA] = self._find_stored_session(session, scope)
        await self._manager.handle_without_session(scope, receive, send)

    def _find_stored_session(self, session: SessionId, scope: Scope) -> StoredSession:
        """Return the values of a session that every process of the server can answer."""
        caller, state = SessionCaller(scope), self._server.service.app._state
        store_url = state.security_settings.get("store")
        return StoredSession(store_url, state.name, session.name, caller.key, caller.scopes)

    async def _continue_session(
        self, session_ids: list[str], scope: Scope, receive: Receive, send: Send, body: bytes
    ) -> None:
        """Pass on a request of a session, if the session belongs to the caller."""
        caller = SessionCaller(scope)
        known = self._ids.read(session_ids[0], caller.principal)
        if known is not None and not known.is_local and len(session_ids) == 1:
            await self._respond_without_session(known, scope, receive, send, body)
            return
        session_id = "" if known is None else known.name
        session = self._sessions.find(session_id, caller)
        if session is None or len(session_ids) > 1:
            await send_error(send, 404, "Session not found")
            return
        scope = {**scope, SESSION_DATA: session.data}
        self._direct.cancel(session_id, body)
        call = None
        if known is not None and self._json_response:  # an event stream can be resumed
            call = self._direct.read(scope, body, known.client, session_id, is_local=True)
        session.open_requests += 1
        try:
            if call is not None:
                await self._direct.respond(call, receive, send)
            else:
                await self._pass_on(session_id, scope, receive, send)
        finally:
            self._sessions.close_request(session_id)
            if scope["method"] == "DELETE":
                self._sessions.remove(session_id)
                self._direct.cancel_all(session_id)

    async def _pass_on(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of a session to the SDK."""

        async def send_without_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = without_session_id(message)
                if message["status"] == 404:  # the SDK has ended the session
                    self._sessions.remove(session_id)
            await send(message)

        counter = BodyCounter(receive)
        try:
            await self._manager.handle_request(
                with_session(scope, session_id), counter, send_without_id
            )
        finally:
            if counter.size > LARGE_MESSAGE_BYTES:
                await self._manager.release_input(session_id)

    async def _end_sessions(self, ended: list[tuple[str, HttpSession]]) -> None:
        """End sessions in the way in which a client ends them: with a DELETE request."""

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def ignore(message: Message) -> None:
            del message

        for session_id, session in ended:
            self._direct.cancel_all(session_id)
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


_SESSION_QUERY = re.compile(rb"session_id=([0-9a-f]{32})")
_SESSION_PARAMETER = re.compile(rb"\?session_id=([0-9a-f]{32})")


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

    async def respond(self, scope: Scope, receive: Receive, send: Send, body: bytes = b"") -> None:
        del body
        path = path_without_root(scope)
        if path == "/messages/":
            await self._receive_message(scope, receive, send)
        elif path == "/sse" and scope["method"] == "GET":
            await self._stream(scope, receive, send)
        else:
            await send_error(send, 404, "Not found")

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session, which lasts as long as this request."""
        caller = SessionCaller(scope)
        if not self._sessions.has_room(caller):
            await send_error(send, 503, "Too many open sessions", (b"retry-after", b"60"))
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
        session = self._sessions.find(session_id, SessionCaller(scope))
        if session is None:
            await send_error(send, 404, "Session not found")
            return
        if not session.is_started:  # the SDK keeps the first request of a session
            messages = await read_messages(receive, MAX_INITIALIZE_CHARS)
            if messages is None:
                await send_error(send, 413, _TOO_LARGE)
                return
            session.is_started = _is_request(join_body(messages))
            receive = replay_messages(messages, receive)
        counter = BodyCounter(receive)
        scope = {**scope, SESSION_DATA: session.data}
        try:
            await self._transport.handle_post_message(scope, counter, send)
            if counter.size > LARGE_MESSAGE_BYTES:
                await _send_empty_item(self._transport._read_stream_writers.get(UUID(session_id)))
        except (BrokenResourceError, ClosedResourceError):
            pass  # the session ended after the response was sent


def _find_problem(body: bytes) -> str | None:
    """Return why a message is not JSON within the limits; None if it is, or may be."""
    if b"\0" in body:  # JSON in UTF-16 or UTF-32, which the SDK would decode
        return PARSE_ERROR
    try:
        check_json_limits(body, outer_depth=MESSAGE_DEPTH)
        if b"NaN" in body or b"Infinity" in body:  # the SDK would accept them as numbers
            decode_message(body)
    except JsonLimitError as failure:
        return f"The message {failure}"
    except (ValueError, RecursionError):
        return PARSE_ERROR
    return None


def _find_problem_of_large_message(body: bytes, scope: Scope) -> str | None:
    """Return why a large message is refused; None if it is not.

    For an invalid message of a handshake version, the SDK would write an error with all its values
    on the event loop.
    """
    problem = _find_problem(body)
    version = next(iter(header_values(scope, VERSION_HEADER)), None)
    if problem is None and version not in STATELESS_VERSIONS:
        try:
            jsonrpc_message_adapter.validate_python(from_json(body), by_name=False)
        except ValidationError:
            return INVALID_MESSAGE
        except ValueError:
            return PARSE_ERROR
    return problem


def _is_request(body: bytes) -> bool:
    """True if a message is a JSON-RPC request."""
    try:
        message = loads(body)
    except (ValueError, RecursionError):
        return False
    return is_object(message) and "id" in message and "method" in message


LARGE_MESSAGE_BYTES = 1 << 16
"""Larger messages are checked in a thread, and forgotten as soon as they are handled."""

MAX_MESSAGE_BYTES = 4 << 20
"""Maximum size of a message. The SDK has the same limit."""

_TOO_LARGE = f"The first request of a session can have {MAX_INITIALIZE_CHARS} bytes at most"

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
