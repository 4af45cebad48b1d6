"""DirectCalls: answers calls of tools over HTTP without the SDK's transport, which is slower.

    POST ─▶ DirectCalls.read ─┬▶ DirectCall: a valid call of a tool that sends its client nothing
                              └▶ None: the SDK's transport

The SDK's transport starts several tasks for each request, and validates each message more than
once. Most requests are calls of tools that need nothing of that: they report no progress, write no
log messages and ask nothing, so their answer is one JSON document. Everything else, and every
request that is not certainly valid, goes to the SDK, which also words the errors. The answers are
those of the SDK, with the same limits, logs and cancellation.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from json import dumps
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from pydantic_core import from_json

from tooli.describe.mcp_tools import arguments_schema
from tooli.mcp.message_limits import MAX_HTTP_MESSAGE_BYTES
from tooli.mcp.protocol import (
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    TEXT_ONLY_VERSIONS,
    VERSION_KEY,
    NeedsSdk,
    RpcError,
    check_call_params,
    check_message,
    has_version_meta,
    read_stateless_meta,
)
from tooli.mcp.sdk_peer import RequestPeer
from tooli.mcp.sdk_server import (
    describe_request,
    end_job,
    http_caller,
    job_result,
    to_mcp_error,
)
from tooli.mcp.service import VERSION_KEY as TOOL_VERSION_KEY
from tooli.mcp.service import RequestContext
from tooli.mcp.stdio_transport import encode_message
from tooli.mcp.stdio_transport import from_json as decode_message
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mcp_types import ErrorData

    from tooli.core.call import Caller
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.sdk_server import AppServer
    from tooli.mcp.service import McpRequest
    from tooli.serving import Receive, Scope, Send
    from tooli.serving.server_request import ServerRequest

MAX_REQUEST_BYTES = 1 << 16
"""Larger requests go to the SDK."""

WATCH_DELAY = 0.05
"""Seconds after which it is checked whether the client of a stateless call has disconnected."""

PING_INTERVAL = 15.0
"""Seconds until a response becomes an event stream, and between the comments in it, as in the SDK.

A proxy would close a connection without data.
"""

REQUEST_CANCELLED = -32800
"""The error code of a call that its client has cancelled, as in the SDK."""

_DIRECT_VERSIONS = tuple(v for v in HANDSHAKE_VERSIONS if v not in TEXT_ONLY_VERSIONS)
_SINGLE_HEADERS = (
    b"accept",
    b"content-type",
    b"mcp-protocol-version",
    b"mcp-method",
    b"mcp-name",
    b"mcp-session-id",
)
_JSON, _EVENTS = "application/json", "text/event-stream"
_TRACER = "opentelemetry.sdk"
_EVENT_HEADERS = [
    (b"content-type", _EVENTS.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class DirectCall:
    """A call of a tool that was read from a request."""

    session = ""  # the name of the session that can cancel the call

    def __init__(
        self,
        rpc_id: RequestId,
        request: McpRequest,
        caller: Caller,
        peer: RequestPeer,
        entry: ServerRequest,
        *,
        is_stateless: bool,
    ) -> None:
        self.id = rpc_id
        self.request = request
        self.caller = caller
        self.peer = peer
        self.entry = entry
        self.is_stateless = is_stateless  # True: the version of the protocol has no handshake


class DirectCalls:
    """The calls of one server that are answered without the SDK's transport."""

    def __init__(self, server: AppServer, *, json_response: bool) -> None:
        self._server = server
        self._json_response = json_response
        self._running: dict[tuple[str, RequestId], asyncio.Future[JsonObject]] = {}

    # -------------------------------------------------------------- requests

    def read(
        self,
        scope: Scope,
        body: bytes,
        client: object = None,
        session: str = "",
        *,
        is_local: bool = False,
    ) -> DirectCall | None:
        """Return the call in a request, or None if the SDK must answer the request.

        `client` and `session` are those of a handshake version. With `is_local`, the session is
        open in this process, and its messages can cancel the call.
        """
        if not body or len(body) > MAX_REQUEST_BYTES or _TRACER in sys.modules:
            return None
        headers = _read_headers(scope)
        version = "" if headers is None else headers.get(b"mcp-protocol-version", "")
        if headers is None or not self._accepts(headers) or self._server.service.listing:
            return None
        is_stateless = version in STATELESS_VERSIONS
        if not is_stateless and (
            version not in _DIRECT_VERSIONS or b"mcp-method" in headers or b"mcp-name" in headers
        ):
            return None
        try:
            message = check_message(decode_message(body) if is_stateless else from_json(body))
            if message.keys() != {"jsonrpc", "id", "method", "params"}:
                return None
            params = self._read_params(message, headers, version)
            if params is None:
                return None
            if is_stateless:
                client, _ = read_stateless_meta(params)
            if is_local and (session, message["id"]) in self._running:
                return None
            call = self._make_call(scope, message["id"], params, client, session, version)
        except (RpcError, NeedsSdk, ValueError, RecursionError):
            return None
        if call is not None and is_local:
            call.session = session
        return call

    def _accepts(self, headers: dict[bytes, str]) -> bool:
        """True if the client sends JSON and accepts what this server sends."""
        if headers.get(b"content-type", "").partition(";")[0].strip() != _JSON:
            return False
        accepted = [part.partition(";")[0].strip() for part in headers[b"accept"].split(",")]
        return _JSON in accepted and _EVENTS in accepted

    def _read_params(
        self, message: JsonObject, headers: dict[bytes, str], version: str
    ) -> JsonObject | None:
        """Return the parameters of a call that agrees with its headers."""
        params: JsonObject = message["params"]
        if message["method"] != "tools/call" or not is_object(params):
            return None
        check_call_params(params)
        if "requestState" in params or "inputResponses" in params:
            return None
        if version not in STATELESS_VERSIONS:
            return None if has_version_meta(params) else params
        is_named = headers.get(b"mcp-name") == params["name"]
        if not is_named or headers.get(b"mcp-method") != "tools/call":
            return None
        meta = params.get("_meta")
        return params if is_object(meta) and meta.get(VERSION_KEY) == version else None

    def _make_call(
        self,
        scope: Scope,
        rpc_id: RequestId,
        params: JsonObject,
        client: object,
        session: str,
        version: str,
    ) -> DirectCall | None:
        service = self._server.service
        tool = service.find_called_tool(params)
        if tool is None or self._has_header_parameters(tool):
            return None
        meta: JsonObject = params.get("_meta") or {}
        if TOOL_VERSION_KEY in meta or "fastmcp" in meta:
            return None
        caller, peer = http_caller(scope, client, session), RequestPeer()
        is_stateless = version in STATELESS_VERSIONS
        entry = describe_request(scope, "tools/call", rpc_id, meta)
        entry.exposes_errors = service.exposes_errors
        context = RequestContext(
            caller,
            peer,
            is_stateless,
            max_message_bytes=MAX_HTTP_MESSAGE_BYTES,
            accepts_encoded=True,
            find_view=partial(service.dispatcher.view, scope.get("tooli.scopes", frozenset())),
            request=entry,
        )
        request = service.tool_call_request(params, context)
        if request.can_ask:
            return None
        request.grant(scope.get("tooli.scopes", ()))
        return DirectCall(rpc_id, request, caller, peer, entry, is_stateless=is_stateless)

    def _has_header_parameters(self, tool: Tool) -> bool:
        """True if parameters of a tool are sent as headers too, which the SDK compares."""
        return self._server.service.dispatcher.cached(
            ("header parameters", tool.id),
            lambda: "x-mcp-header" in dumps(arguments_schema(tool), default=str),
        )

    # -------------------------------------------------------------- responses

    async def respond(
        self, call: DirectCall, receive: Receive, send: Send, *, as_events: bool = False
    ) -> None:
        """Run a call and send its answer, with `as_events` as an event stream."""
        response = _Response(call, send, as_events=as_events and not self._json_response)
        try:
            self._server.check_open()
            job = self._server.start_job(call.request, call.caller, call.peer)
            result = (
                await self._finish(call, job, receive, response)
                if isinstance(job, asyncio.Future)
                else job
            )
        except _Disconnected:
            return
        except Exception as failure:
            await response.send_error(to_mcp_error(failure, call.entry).error)
        else:
            await response.send_message("result", result)

    async def _finish(
        self,
        call: DirectCall,
        job: asyncio.Future[JsonObject],
        receive: Receive,
        response: _Response,
    ) -> JsonObject:
        """Wait for a call and return its result. Raises an MCPError if it was cancelled."""
        key = (call.session, call.id)
        if call.session:
            self._running[key] = job
        try:
            if not await _ends_soon(job, call.peer.shutdown_future):
                await self._wait(call, job, receive, response)
        finally:
            self._running.pop(key, None)
            end_job(job, call.peer)
        if job.done() and job.cancelled():
            raise MCPError(REQUEST_CANCELLED, "Request cancelled")
        return job_result(job)

    async def _wait(
        self,
        call: DirectCall,
        job: asyncio.Future[JsonObject],
        receive: Receive,
        response: _Response,
    ) -> None:
        """Wait until a call or the server ends. Raises _Disconnected if nobody waits for it."""
        awaited: set[asyncio.Future[Any]] = {job, call.peer.shutdown_future}
        watcher: asyncio.Future[None] | None = None
        if not call.session:
            watcher = asyncio.ensure_future(_wait_until_disconnected(receive))
            awaited.add(watcher)
        timeout = PING_INTERVAL if self._sends_pings(call) else None
        try:
            while True:
                done, _ = await asyncio.wait(
                    awaited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
                )
                if job in done or call.peer.shutdown_future in done:
                    return
                if done:
                    raise _Disconnected
                await response.send_ping()
        finally:
            if watcher is not None:
                watcher.cancel()

    def _sends_pings(self, call: DirectCall) -> bool:
        return call.is_stateless and not self._json_response

    # -------------------------------------------------------------- cancellation

    def cancel(self, session: str, body: bytes) -> None:
        """Cancel the call that a notification of its session names."""
        if b"notifications/cancelled" not in body or not self._running:
            return
        try:
            message: Any = from_json(body)
        except ValueError:
            return
        if is_object(message) and message.get("method") == "notifications/cancelled":
            params = message.get("params")
            request_id: Any = params.get("requestId") if is_object(params) else None
            if isinstance(request_id, (str, int)):
                self._cancel((session, request_id))

    def cancel_all(self, session: str) -> None:
        """Cancel the calls of a session that ends."""
        for key in [key for key in self._running if key[0] == session]:
            self._cancel(key)

    def _cancel(self, key: tuple[str, RequestId]) -> None:
        job = self._running.get(key)
        if job is not None:
            job.cancel()


class _Disconnected(Exception):  # noqa: N818  a disconnection is not an error
    """The client of a stateless call has disconnected."""


async def _ends_soon(*futures: asyncio.Future[Any]) -> bool:
    """Wait for one of the futures; return False if none is done after WATCH_DELAY.

    Most calls end before that. `asyncio.wait` takes several times longer.
    """
    loop = futures[0].get_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = loop.call_later(WATCH_DELAY, wake)
    for future in futures:
        future.add_done_callback(wake)
    try:
        await waiter
    finally:
        timer.cancel()
        for future in futures:
            future.remove_done_callback(wake)
    return any([future.done() for future in futures])


async def _wait_until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _read_headers(scope: Scope) -> dict[bytes, str] | None:
    """Return the headers that decide how a request is answered; None if the SDK reads them."""
    found: dict[bytes, str] = {b"accept": ""}
    seen: set[bytes] = set()
    for name, value in scope["headers"]:
        if name in _SINGLE_HEADERS:
            if name in seen:
                return None
            seen.add(name)
            found[name] = value.decode("latin-1")
        elif name.startswith(b"mcp-param-"):
            return None
    return found


# ------------------------------------------------------------------ answers


class _Response:
    """The response to a call: JSON, or an event stream."""

    def __init__(self, call: DirectCall, send: Send, *, as_events: bool) -> None:
        self._call = call
        self._send = send
        self._as_events = as_events
        self._is_started = False

    async def send_ping(self) -> None:
        """Send a comment, so that the connection is not closed as idle."""
        await self._start_events()
        await self._send(
            {"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True}
        )

    async def _start_events(self) -> None:
        if not self._is_started:
            self._is_started = True
            start = {"type": "http.response.start", "status": 200, "headers": [*_EVENT_HEADERS]}
            await self._send(start)

    async def send_error(self, error: ErrorData) -> None:
        """Send the error of a call and end the response."""
        data = {} if error.data is None else {"data": error.data}
        await self.send_message(
            "error", {"code": error.code, "message": error.message, **data}, error.code
        )

    async def send_message(self, kind: str, content: JsonObject, code: int | None = None) -> None:
        """Send the result or the error of a call and end the response."""
        message = {"jsonrpc": "2.0", "id": self._call.id, kind: content}
        body = b"".join(encode_message(message))
        if self._as_events or self._is_started:
            await self._start_events()
            for character, escape in _LINE_ENDS:  # some clients take them for the end of a line
                body = body.replace(character, escape)
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        else:
            status = 200
            if self._call.is_stateless and code is not None:
                status = ERROR_CODE_HTTP_STATUS.get(code, 200)
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(body)),
            ]
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


_LINE_ENDS = (
    ("\x85".encode(), b"\\u0085"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)
