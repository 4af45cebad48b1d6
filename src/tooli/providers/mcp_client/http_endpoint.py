"""HttpEndpoint: an MCP server at a URL, over streamable HTTP.

Each message is a POST request in a thread of its own. Its answer is one message, or a stream of
server-sent events: progress, questions, and the result at the end. A stream that breaks off is
resumed at its last event, if the server numbers them.
"""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from json import dumps
from threading import Event, Lock, Thread

from tooli.errors import NotFoundError, Suggestion, ToolError
from tooli.providers.http_requests import (
    AnswerTooLarge,
    ConnectionFailed,
    EventStream,
    HttpServer,
    abort_connection,
    status_error,
)
from tooli.providers.mcp_client.server_process import (
    MAX_MESSAGE_BYTES,
    ServerGone,
    decode_messages,
)
from tooli.providers.mcp_client.server_session import LISTEN_PAUSES, PendingRequest, RpcFailure
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.http_requests import HttpAnswer

MAX_RESUMES = 3
"""Maximum number of times that a stream is resumed without a new event."""
_STREAM = "text/event-stream"
_ACCEPT = f"application/json, {_STREAM}"


class HttpEndpoint:
    """The messages to and from a server at a URL.

    `receive` gets each message, with the request whose answer contains it.
    """

    def __init__(
        self,
        source: str,
        server: HttpServer,
        receive: Callable[[JsonObject, PendingRequest | None], None],
        on_end: Callable[[ServerGone], None],
    ) -> None:
        self._source = source
        self._server = server
        self._receive = receive
        self._on_end = on_end
        self._session_id: str | None = None
        self._version = ""
        self._is_stateless = False
        self._sockets: dict[object, socket] = {}  # connections in use, by request
        self._cancelled: set[PendingRequest] = set()
        self._lock = Lock()
        self._closed = Event()

    def start(self) -> None:
        """Do nothing: the first request connects."""

    def set_version(self, version: str, *, is_stateless: bool) -> None:
        """Set the version of the protocol that the next requests name."""
        self._version, self._is_stateless = version, is_stateless

    def output_tail(self) -> JsonObject:
        """Return nothing: the server prints elsewhere."""
        return {}

    # -------------------------------------------------------------- sending

    def send(
        self,
        message: JsonObject,
        request: PendingRequest | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a message. It never blocks."""
        sent = self._make_headers(message, headers or {})
        body = dumps(message, separators=(",", ":")).encode("ascii")
        Thread(
            target=self._post, args=(body, sent, request), name="tooli-mcp-http", daemon=True
        ).start()

    def _make_headers(self, message: JsonObject, extra: Mapping[str, str]) -> dict[str, str]:
        headers = {"Accept": _ACCEPT, "Content-Type": "application/json", **extra}
        if self._version:
            headers["MCP-Protocol-Version"] = self._version
        if self._session_id is not None:
            headers["Mcp-Session-Id"] = self._session_id
        if self._is_stateless and "method" in message:
            headers["Mcp-Method"] = message["method"]
            if message["method"] == "tools/call":
                headers["Mcp-Name"] = encode_header(message["params"]["name"])
        return headers

    def _post(self, body: bytes, headers: dict[str, str], request: PendingRequest | None) -> None:
        """Send a message and read its answer; a failure ends the request."""
        try:
            answer = self._server.send(
                "POST", body=body, headers=headers, on_open=partial(self._track, request)
            )
            try:
                self._read_answer(answer, request)
            finally:
                self._track(request, None)
                answer.release()
        except (ToolError, RpcFailure) as failure:
            _fail(request, failure)
        except ConnectionFailed as failure:
            _fail(request, ServerGone(str(failure), failure.was_sent))
        except (AnswerTooLarge, ValueError) as failure:
            _fail(request, ServerGone(f"it sent an answer that is not MCP: {failure}"))
        except Exception as failure:  # a bug must not leave the call waiting
            _fail(request, ServerGone(f"{type(failure).__name__}: {failure}"))

    def _track(self, key: object, sock: socket | None) -> None:
        """Note the connection of a request, so that `cancel` and `close` can end it."""
        if key is None:
            return
        with self._lock:
            if sock is None:
                self._sockets.pop(key, None)
                return
            self._sockets[key] = sock
            is_cancelled = self._closed.is_set() or key in self._cancelled
        if is_cancelled:
            abort_connection(sock)

    def _read_answer(self, answer: HttpAnswer, request: PendingRequest | None) -> None:
        if request is None:
            answer.read(MAX_MESSAGE_BYTES)
            return
        session_id = answer.headers.get("mcp-session-id")
        if session_id is not None and request.method == "initialize":
            self._session_id = session_id
        if answer.status == 200 and answer.content_type == _STREAM:
            self._read_streams(answer, request)
            return
        data = answer.read(MAX_MESSAGE_BYTES)
        if answer.status != 200:
            raise self._status_failure(answer, data, request)
        for message in decode_messages(data):
            self._receive(message, request)
        if not request.is_done:
            raise ServerGone("it did not answer the request")

    def _status_failure(
        self, answer: HttpAnswer, data: bytes, request: PendingRequest
    ) -> Exception:
        """Return the failure of a request that was answered with another status than 200."""
        try:
            error: Any = decode_messages(data)[0].get("error")
        except (ValueError, IndexError):
            error = None
        if answer.status == 404 and self._session_id is not None and request.method != "initialize":
            gone = ServerGone("it has ended the session", was_sent=False)
            self._on_end(gone)
            return gone
        if is_object(error) and type(error.get("code")) is int:
            return RpcFailure(error["code"], str(error.get("message", "")), error.get("data"))
        text = data[:2_000].decode("utf-8", "replace").strip()
        text = "" if text.startswith("<") else text  # a page for browsers
        if request.method == "server/discover" and answer.status in (400, 404, 405, 406, 415, 422):
            return RpcFailure(0, f"HTTP {answer.status}")
        if answer.status in (404, 405):
            return NotFoundError(
                f"{self._source}: there is no MCP server at {clean_text(self._server.url, 200)} "
                f"(HTTP {answer.status}).",
                suggestion=Suggestion("fix", "Check the URL; many servers are at the path /mcp."),
            )
        retry_after = answer.headers.get("retry-after", "")
        return status_error(self._source, answer.status, text, retry_after)

    # -------------------------------------------------------------- streams

    def _read_streams(self, answer: HttpAnswer, request: PendingRequest) -> None:
        """Read the events of a request until its result, also after the stream breaks off."""
        state = EventStream(MAX_MESSAGE_BYTES)
        resumes = 0
        while True:
            before = state.last_event_id
            try:
                self._read_events(answer, request, state)
            except ConnectionFailed:
                pass  # the server closes the stream if the client is to ask again
            if request.is_done or request in self._cancelled or self._closed.is_set():
                return
            resumes = 0 if state.last_event_id != before else resumes + 1
            if state.last_event_id is None or self._is_stateless or resumes > MAX_RESUMES:
                raise ServerGone("it has closed the connection before the result")
            self._closed.wait(state.retry_seconds)
            answer = self._open_stream(state.last_event_id, request)

    def _open_stream(self, last_event_id: str | None, key: object) -> HttpAnswer:
        headers = self._make_headers({}, {})
        headers["Accept"] = _STREAM
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        answer = self._server.send("GET", headers=headers, on_open=partial(self._track, key))
        if answer.status != 200 or answer.content_type != _STREAM:
            answer.close()
            raise ServerGone("it has closed the connection before the result")
        return answer

    def _read_events(
        self, answer: HttpAnswer, request: PendingRequest | None, state: EventStream
    ) -> None:
        try:
            for _, data in state.read(answer.lines(MAX_MESSAGE_BYTES)):
                for message in decode_messages(data):
                    self._receive(message, request)
                if request is not None and request.is_done:
                    return
        finally:
            answer.close()

    def listen(self) -> None:
        """Read the messages that belong to no request, in a thread."""
        if self._session_id is not None:
            Thread(target=self._listen, name="tooli-mcp-listen", daemon=True).start()

    def _listen(self) -> None:
        state, attempt = EventStream(MAX_MESSAGE_BYTES), 0
        while not self._closed.is_set():
            before = state.last_event_id
            try:
                self._read_events(self._open_stream(before, self), None, state)
            except ServerGone:
                return  # the server has no such stream
            except (ConnectionFailed, ValueError, AnswerTooLarge, ToolError):
                pass
            attempt = 0 if state.last_event_id != before else attempt + 1
            self._closed.wait(LISTEN_PAUSES[min(attempt, len(LISTEN_PAUSES) - 1)])

    # -------------------------------------------------------------- the end

    def cancel(self, request: PendingRequest) -> None:
        """Tell the server that nobody waits for a request."""
        self._cancelled.add(request)
        if not self._is_stateless:
            params = {"requestId": request.id, "reason": "the caller does not wait any more"}
            self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        with self._lock:
            sock = self._sockets.pop(request, None)
        if sock is not None:
            abort_connection(sock)

    def close(self, grace: float = 1.0) -> None:
        """End the session and all streams."""
        self._closed.set()
        with self._lock:
            sockets, self._sockets = list(self._sockets.values()), {}
        for sock in sockets:
            abort_connection(sock)
        if self._session_id is not None and not self._is_stateless and grace:
            try:
                headers = self._make_headers({}, {})
                self._server.send("DELETE", headers=headers, timeout=grace).close()
            except (ConnectionFailed, ToolError):
                pass
        self._server.close()


def _fail(request: PendingRequest | None, failure: Exception) -> None:
    if request is not None:
        request.put("failure", failure)


# ------------------------------------------------------------------ headers of a call


def encode_header(value: str) -> str:
    """Return a value as it may stand in a header; others than plain ASCII are in base64."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    encoded = b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")
    return f"=?base64?{encoded}?="


def find_param_headers(schema: object, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """Return the headers that repeat arguments (`x-mcp-header`), by the path of the argument."""
    found: dict[tuple[str, ...], str] = {}
    properties = schema.get("properties") if is_object(schema) else None
    for name, part in properties.items() if is_object(properties) and len(path) < 20 else ():
        if not is_object(part):
            continue
        header = part.get("x-mcp-header")
        if isinstance(header, str):
            token = header.replace("-", "").replace("_", "")
            if token.isascii() and token.isalnum():
                found[(*path, name)] = f"Mcp-Param-{header}"
        found.update(find_param_headers(part, (*path, name)))
    return found


def make_param_headers(
    headers: Mapping[tuple[str, ...], str], arguments: JsonObject
) -> dict[str, str]:
    """Return the headers that repeat the arguments of a call."""
    made: dict[str, str] = {}
    for path, header in headers.items():
        value: object = arguments
        for name in path:
            value = value.get(name) if is_object(value) else None
        if isinstance(value, bool):
            made[header] = "true" if value else "false"
        elif isinstance(value, (str, int, float)):
            made[header] = encode_header(str(value))
    return made
