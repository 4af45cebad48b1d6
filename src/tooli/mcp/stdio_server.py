"""StdioServer: MCP over stdin and stdout with the standard library, for the common methods.

    line ─▶ StdioServer ─┬▶ initialize, server/discover, ping, tools/list: answered at once
                         ├▶ tools/call: in a thread, many at a time
                         └▶ anything else: the official SDK takes the connection over

The import of the SDK is slow, and most sessions do not need it. Modules that import the SDK are
therefore imported inside functions. Every request id gets exactly one answer, or none if the
client cancels the request. The SDK handles messages that this server cannot validate.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from time import monotonic

from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    STATELESS_VERSIONS,
    TEXT_ONLY_VERSIONS,
    UNSUPPORTED_VERSION,
    NeedsSdk,
    RpcError,
    check_call_params,
    check_list_params,
    check_message,
    check_params,
    has_version_meta,
    invalid_params_error,
    is_request_id,
    method_not_found_error,
    read_initialize_params,
    read_stateless_meta,
    request_ids,
)
from tooli.mcp.service import McpService, RequestContext, caller_from_client_info
from tooli.mcp.stdio_transport import (
    OversizedLine,
    PendingCalls,
    StdioPeer,
    StdioTransport,
    find_request_ids,
    flush_standard_streams,
    from_json,
)
from tooli.serving.dispatcher import is_installed, too_busy_error
from tooli.serving.thread_pool import EventLoopThread, ThreadPool
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tooli.core.protocols import App, JsonObject
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.sdk_bridge import SdkBridge

MAX_THREADS = 64
"""Maximum number of threads that run calls. Further calls of sync functions wait for a thread."""

BATCH_VERSION = "2025-03-26"
"""The only protocol version with batches."""

STDIO_GRACE_PERIOD = 10.0
"""Seconds that running calls get to finish after the client has closed stdin."""


class StdioServer:
    """The server of one client."""

    def __init__(self, app: App, transport: StdioTransport, *, deferred: bool = False) -> None:
        self.service = McpService(app, deferred=deferred)
        self.transport = transport
        self.has_sdk = is_installed("mcp")
        self.has_warned_missing_sdk = False
        self.stateless: bool | None = None  # None until the first request
        self.version: str | None = None
        self.client: object = None
        self.capabilities: object = {}
        self.handshake_messages: list[JsonObject] = []  # sent to the SDK when it takes over
        self.pending = PendingCalls(self)
        self.thread_pool = ThreadPool(MAX_THREADS, "tooli-call")
        self._loop_thread = EventLoopThread()
        self.sdk: SdkBridge | None = None

    def serve(self) -> None:
        """Answer messages until the client disconnects."""
        state = self.service.app._state
        if not self.has_sdk and (state.resources or state.prompts):
            self._warn_missing_sdk("resources and prompts")
        state.change_listeners.append(self._on_app_change)
        for line in self.transport.lines():
            if self.transport.is_broken:
                break
            self._handle_line(line)
        state.change_listeners.remove(self._on_app_change)
        self.pending.close()
        self.wait(STDIO_GRACE_PERIOD)
        self.shut_down()

    def shut_down(self) -> None:
        """Stop the threads once their calls are done; does not wait for them."""
        self.thread_pool.shut_down()
        self._loop_thread.shut_down()

    def wait(self, timeout: float) -> None:
        """Wait for the calls to end while the client is connected."""
        deadline = monotonic() + timeout
        self.pending.wait(timeout)
        if self.sdk is not None:
            self.sdk.wait(deadline - monotonic())

    @property
    def is_busy(self) -> bool:
        """True if a request is not answered yet."""
        return self.pending.is_busy or (self.sdk is not None and self.sdk.is_busy)

    def _warn_missing_sdk(self, feature: str) -> None:
        """Log once that a feature needs the SDK."""
        if not self.has_warned_missing_sdk:
            self.has_warned_missing_sdk = True
            log_line(
                f"without the MCP SDK there are only tools; for {feature}: "
                "pip install 'tooli[mcp]>=7.0a1'"
            )

    def _on_app_change(self, kind: str, uri: str | None) -> None:
        """Notify a client of a handshake version that a list has changed."""
        is_initialized = len(self.handshake_messages) > 1
        if is_initialized and self.has_sdk and self.sdk is None and uri is None:
            self.transport.write({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})

    # -------------------------------------------------------------- lines

    def _handle_line(self, line: bytes | OversizedLine) -> None:
        if isinstance(line, OversizedLine):
            error = RpcError(INVALID_REQUEST, "The line is too long")
            self._send_errors(find_request_ids(line) or [None], error)
            return
        if not line.strip():
            return
        try:
            message = from_json(line)
        except (ValueError, RecursionError) as failure:
            is_too_deep = isinstance(failure, RecursionError)
            reason = "it is nested too deeply" if is_too_deep else str(failure)
            error = RpcError(PARSE_ERROR, f"The line is not valid JSON: {reason}")
            self._send_errors(find_request_ids(line) or [None], error)
            return
        if is_list(message):
            self._handle_batch(message)
        else:
            self.handle_message(message)

    def _handle_batch(self, messages: Sequence[object]) -> None:
        if self.version == BATCH_VERSION and messages:
            for message in messages:
                self.handle_message(message)
            return
        error = RpcError(INVALID_REQUEST, "Batches are not part of this protocol version")
        self._send_errors(request_ids(messages) or [None], error)

    def _send_errors(self, ids: Sequence[RequestId | None], error: RpcError) -> None:
        """Send an error for each id, except ids of running calls, which get their own answer."""
        for request_id in ids:
            if request_id is None or not self._is_pending(request_id):
                self.transport.write({"jsonrpc": "2.0", "id": request_id, "error": error.to_dict()})

    def _is_pending(self, request_id: RequestId) -> bool:
        return request_id in self.pending or (self.sdk is not None and request_id in self.sdk)

    # -------------------------------------------------------------- messages

    def handle_message(self, message: object) -> None:
        """Handle one message. An exception is logged and answered; it does not end the server."""
        try:
            self._dispatch_message(message)
        except Exception as failure:
            log_line(f"{type(failure).__name__}: {failure}")
            request_id = message.get("id") if is_object(message) else None
            if is_request_id(request_id):
                self._send_errors([request_id], RpcError(INTERNAL_ERROR, "Internal server error"))

    def _dispatch_message(self, received: object) -> None:
        try:
            message = check_message(received)
        except RpcError as error:
            ids = request_ids(received if is_list(received) else [received])
            self._send_errors(ids or [None], error)
            return
        method: str | None = message.get("method")
        if method is None:
            if not self.pending.resolve_question(message) and self.sdk is not None:
                self.sdk.send(message)
        elif "id" not in message:
            self._handle_notification(method, message)
        elif self._is_pending(message["id"]):
            log_line(f"ignored a second request with id {message['id']!r}")
        elif self.sdk is not None:
            self.sdk.send(message)
        else:
            self._handle_request(method, message)

    def _handle_notification(self, method: str, message: JsonObject) -> None:
        """Handle a notification: cancel a call, or pass it to the SDK."""
        if method == "notifications/cancelled":
            params: JsonObject = message.get("params") or {}
            request_id = params.get("requestId")
            if not is_request_id(request_id) or self.pending.cancel(request_id):
                return
            if self.sdk is not None:
                self.sdk.discard_request(request_id)
        if self.sdk is not None:
            self.sdk.send(message)
        elif method == "notifications/initialized" and self.stateless is False:
            self.handshake_messages.append(message)

    def _handle_request(self, method: str, message: JsonObject) -> None:
        params: JsonObject = message.get("params") or {}
        if self.stateless is None:
            self.stateless = method != "initialize" and has_version_meta(params)
        try:
            result = (self._handle_stateless if self.stateless else self._handle_handshake)(
                method, message, params
            )
        except RpcError as error:
            self._send_errors([message["id"]], error)
            return
        except NeedsSdk:
            if not self._delegate_to_sdk(message):
                self._send_errors([message["id"]], invalid_params_error())
            return
        if result is not None:
            self.transport.write({"jsonrpc": "2.0", "id": message["id"], "result": result})

    # -------------------------------------------------------------- handshake and stateless

    def _handle_handshake(
        self, method: str, message: JsonObject, params: JsonObject
    ) -> JsonObject | None:
        if method != "initialize" and has_version_meta(params):
            raise RpcError(
                INVALID_REQUEST,
                "this connection serves the handshake protocol era; "
                "requests carrying the 2026-07-28 envelope are not accepted on it",
            )
        if method == "initialize":
            version, self.client, self.capabilities = read_initialize_params(params)
            self.handshake_messages = [message]
            result = self.service.initialize(version, has_sdk=self.has_sdk)
            self.version = result["protocolVersion"]
            return result
        if method == "ping":
            check_params(params)
            return {}
        if method not in ("tools/list", "tools/call"):
            return self._handle_other_method(method, message)
        check = check_list_params if method == "tools/list" else check_call_params
        check(params)
        if self.version is None:
            raise invalid_params_error()
        if method == "tools/list":
            return self.service.list_tools(
                params.get("cursor"),
                stateless=False,
                has_structured_content=self.version not in TEXT_ONLY_VERSIONS,
            )
        return self._start_call(message, params, self.client, self.capabilities)

    def _handle_stateless(
        self, method: str, message: JsonObject, params: JsonObject
    ) -> JsonObject | None:
        if method == "initialize":
            requested = params.get("protocolVersion")
            data: JsonObject = {"supported": list(STATELESS_VERSIONS)}
            if isinstance(requested, str):
                data["requested"] = cut_text(requested, MAX_QUOTED_CHARS)
            raise RpcError(
                UNSUPPORTED_VERSION,
                "connection is serving the 2026-07-28 protocol; "
                "the initialize handshake is not accepted",
                data,
            )
        client, capabilities = read_stateless_meta(params)
        if method == "server/discover":
            return self.service.discover(has_sdk=self.has_sdk)
        if method == "tools/list":
            check_list_params(params)
            return self.service.list_tools(params.get("cursor"), stateless=True)
        if method == "tools/call":
            check_call_params(params)
            return self._start_call(message, params, client, capabilities)
        return self._handle_other_method(method, message)

    def _handle_other_method(self, method: str, message: JsonObject) -> None:
        """Handle a method that needs the SDK."""
        if not self._delegate_to_sdk(message):
            self._warn_missing_sdk(method)
            raise method_not_found_error(method)

    # -------------------------------------------------------------- calls

    def _start_call(
        self, message: JsonObject, params: JsonObject, client: object, capabilities: object
    ) -> JsonObject | None:
        peer = StdioPeer(self.pending, message["id"], params, capabilities)
        context = RequestContext(
            caller_from_client_info(client),
            peer,
            bool(self.stateless),
            self.version not in TEXT_ONLY_VERSIONS,
        )
        request = self.service.tool_call_request(params, context)
        if self.pending.is_full:
            return request.error_result(too_busy_error())
        self.pending.requests[peer.id] = peer
        try:
            if request.is_async:
                work = peer.run_and_reply_async(request.arun)
                peer.on_cancel = self._loop_thread.submit(work).cancel
            else:
                self.thread_pool.submit(partial(peer.run_and_reply, request.run))
        except RuntimeError:  # the system cannot start a thread
            del self.pending.requests[peer.id]
            return request.error_result(too_busy_error())
        return None

    def _delegate_to_sdk(self, message: JsonObject) -> bool:
        """Hand the connection and a request over to the SDK; return False if it cannot be used."""
        if not self.has_sdk:
            return False
        try:
            from tooli.mcp.sdk_bridge import SdkBridge

            self.sdk = SdkBridge(self.service, self.transport, self.handshake_messages)
        except ImportError as missing:  # a version of the SDK that is not supported
            self.has_sdk = False
            log_line(f"the MCP SDK cannot be used: {missing}")
            return False
        self.sdk.send(message)
        return True


def log_line(text: str) -> None:
    """Write a text to the server's log on stderr, as one line."""
    line = " ".join(text[:300].split())  # the text of a client must not add lines to the log
    try:
        sys.stderr.write(f"[tooli] {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


# ------------------------------------------------------------------ the process


def serve_stdio(app: App, *, deferred: bool = False) -> None:
    """Serve an app to the client on stdin and stdout until it disconnects."""
    server = StdioServer(app, StdioTransport.claim_stdio(), deferred=deferred)
    exit_process = _install_signal_handlers(server)
    server.serve()
    exit_process()


def _install_signal_handlers(server: StdioServer) -> Callable[[], None]:
    """Exit gracefully at the first SIGTERM or SIGINT, and immediately at the second.

    Return the function to call when the server has ended. If calls still run, it terminates the
    child processes. If calls still run or the SDK is in use, it exits immediately.
    """
    is_ending = False

    def handle_signal(number: int, frame: object) -> None:
        nonlocal is_ending
        if is_ending:  # the handler of the first signal is still waiting for the calls
            terminate_children()
            os._exit(0)
        is_ending = True
        server.wait(STDIO_GRACE_PERIOD / 2)
        exit_process()
        raise SystemExit(0)

    def exit_process() -> None:
        if server.is_busy:
            terminate_children()
        flush_standard_streams()
        if server.is_busy or server.sdk is not None:
            os._exit(0)

    for name in ("SIGTERM", "SIGINT"):
        try:
            signal.signal(getattr(signal, name), handle_signal)
        except (ValueError, OSError):
            continue
    return exit_process


def terminate_children() -> None:
    """Terminate the child processes that calls have started; works on Linux only."""
    from tooli.execution.processes import list_processes, send_signal

    for pid, process in list_processes().items():
        if process.parent == os.getpid():
            send_signal(pid, signal.SIGTERM)
