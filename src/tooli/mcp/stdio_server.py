"""StdioServer: MCP over stdin and stdout with the standard library, for the common methods.

    line ─▶ StdioServer ─┬▶ initialize, server/discover, ping, lists: answered at once
                         ├▶ tools/call, resources/read, prompts/get: in a thread, many at a time
                         ├▶ subscriptions/listen: a stream of changes of the lists
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
    LIST_CHANGED_FIELDS,
    MESSAGE_DEPTH,
    PARSE_ERROR,
    STATELESS_VERSIONS,
    SUBSCRIPTION_KEY,
    TEXT_ONLY_VERSIONS,
    UNSUPPORTED_VERSION,
    NeedsSdk,
    RpcError,
    check_call_params,
    check_list_params,
    check_message,
    check_params,
    check_prompt_params,
    check_read_params,
    has_version_meta,
    invalid_params_error,
    is_request_id,
    method_not_found_error,
    read_initialize_params,
    read_listen_params,
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
    internal_error,
)
from tooli.serving.dispatcher import is_installed, too_busy_error
from tooli.serving.server_request import (
    ServerRequest,
    new_request_id,
    read_trace,
    request_id_of,
)
from tooli.serving.thread_pool import EventLoopThread, ThreadPool
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from tooli.core.protocols import App, JsonObject
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.resource_service import ResourceService
    from tooli.mcp.sdk_bridge import SdkBridge
    from tooli.mcp.service import McpRequest
    from tooli.pipeline.lifespan import LifespanTask

    RequestFactory: TypeAlias = Callable[[JsonObject, RequestContext], McpRequest]

MAX_THREADS = 64
"""Maximum number of threads that run calls. Further calls of sync functions wait for a thread."""

BATCH_VERSION = "2025-03-26"
"""The only protocol version with batches."""

STDIO_GRACE_PERIOD = 10.0
"""Seconds that running calls get to finish after the client has closed stdin."""

MAX_STREAMS = 1024
"""Maximum number of streams of changes. The SDK has the same limit."""

_LISTS = {
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
    "prompts/list": "list_prompts",
}
"""List methods, and the methods of ResourceService that return a page of the list."""

_REQUESTS = {
    "resources/read": (check_read_params, "read_request"),
    "prompts/get": (check_prompt_params, "prompt_request"),
}
"""Methods that run a function: the check of their parameters, and the request factory."""


class StdioServer:
    """The server of one client."""

    def __init__(
        self,
        app: App,
        transport: StdioTransport,
        *,
        deferred: bool = False,
        code_mode: bool = False,
        expose_errors: bool = False,
    ) -> None:
        self.service = McpService(
            app, deferred=deferred, code_mode=code_mode, exposes_errors=expose_errors
        )
        self.service.stdio_session_data = {}
        self.transport = transport
        self._connection_id = new_request_id()[:8]
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
        self._lifespan: LifespanTask | None = None
        self.sdk: SdkBridge | None = None
        self.subscriptions: dict[RequestId, JsonObject] = {}  # the filters of the open streams

    def serve(self) -> None:
        """Answer messages until the client disconnects."""
        state = self.service.app._state
        self._open_lifespan()
        state.change_listeners.append(self._on_app_change)
        for line in self.transport.lines():
            if self.transport.is_broken:
                break
            self._handle_line(line)
        state.change_listeners.remove(self._on_app_change)
        self.pending.close()
        self.wait(STDIO_GRACE_PERIOD)
        self.close_lifespan()
        self.shut_down()

    def _open_lifespan(self) -> None:
        """Open the lifespans of the app, if it has any, on the event loop of its functions."""
        if self.service.app._state.has_lifespan:
            from tooli.pipeline.lifespan import LifespanTask  # imports asyncio

            self._lifespan = LifespanTask(self.service.app._state)
            self._loop_thread.submit(self._lifespan.start()).result()

    def close_lifespan(self) -> None:
        """Close the lifespans of the app."""
        lifespan, self._lifespan = self._lifespan, None
        if lifespan is not None:
            self._loop_thread.submit(lifespan.stop()).result(STDIO_GRACE_PERIOD)

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
            log_line(f"{feature} needs the MCP SDK: pip install 'tooli[mcp]>=7.0a1'")

    def _on_app_change(self, kind: str, uri: str | None) -> None:
        """Notify the client that a list has changed."""
        if uri is None:
            for request_id, requested in list(self.subscriptions.items()):
                if any([LIST_CHANGED_FIELDS[field] == kind for field in requested]):
                    self._send_to_stream(request_id, f"notifications/{kind}/list_changed")
        is_initialized = len(self.handshake_messages) > 1
        if is_initialized and self.sdk is None and uri is None:
            self.transport.write({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})

    def _send_to_stream(
        self, request_id: RequestId, method: str, params: JsonObject | None = None
    ) -> None:
        """Send a notification of a `subscriptions/listen` stream."""
        meta = {"_meta": {SUBSCRIPTION_KEY: request_id}}
        message = {"jsonrpc": "2.0", "method": method, "params": {**meta, **(params or {})}}
        self.transport.write(message)

    # -------------------------------------------------------------- lines

    def _handle_line(self, line: bytes | OversizedLine) -> None:
        if isinstance(line, OversizedLine):
            error = RpcError(INVALID_REQUEST, "The line is too long")
            self._send_errors(find_request_ids(line) or [None], error)
            return
        if not line.strip():
            return
        try:
            check_json_limits(line, outer_depth=MESSAGE_DEPTH)
            message = from_json(line)
        except JsonLimitError as failure:
            error = RpcError(INVALID_REQUEST, f"The line {failure}")
            self._send_errors(find_request_ids(line) or [None], error)
            return
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
        if request_id in self.pending or request_id in self.subscriptions:
            return True
        return self.sdk is not None and request_id in self.sdk

    # -------------------------------------------------------------- messages

    def handle_message(self, message: object) -> None:
        """Handle one message. An exception is logged and answered; it does not end the server."""
        try:
            self._dispatch_message(message)
        except Exception as failure:
            request_id = message.get("id") if is_object(message) else None
            request = None
            if is_object(message) and is_request_id(request_id):
                request = self._make_request(message)
            error = internal_error(failure, request)
            if is_request_id(request_id):
                self._send_errors([request_id], error)

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
            if self.subscriptions.pop(request_id, None) is not None:
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
            return self._handle_other_method(
                method, message, params, self.client, self.capabilities
            )
        check = check_list_params if method == "tools/list" else check_call_params
        check(params)
        if self.version is None:
            raise invalid_params_error()
        if method == "tools/list":
            return self.service.list_tools(
                params.get("cursor"),
                stateless=False,
                has_structured_content=self.version not in TEXT_ONLY_VERSIONS,
                view=self.service.environment_view(),
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
            view = self.service.environment_view()
            return self.service.list_tools(params.get("cursor"), stateless=True, view=view)
        if method == "tools/call":
            check_call_params(params)
            return self._start_call(message, params, client, capabilities)
        if method == "subscriptions/listen":
            return self._listen(message["id"], read_listen_params(params))
        return self._handle_other_method(method, message, params, client, capabilities)

    def _listen(self, request_id: RequestId, requested: JsonObject) -> None:
        """Open a stream of changes. The first message of the stream repeats the filter."""
        if len(self.subscriptions) >= MAX_STREAMS:
            raise RpcError(INTERNAL_ERROR, "Subscription limit reached")
        self.subscriptions[request_id] = requested
        acknowledged = "notifications/subscriptions/acknowledged"
        self._send_to_stream(request_id, acknowledged, {"notifications": requested})

    def _handle_other_method(
        self,
        method: str,
        message: JsonObject,
        params: JsonObject,
        client: object,
        capabilities: object,
    ) -> JsonObject | None:
        """Handle a method of resources and prompts, or pass it to the SDK."""
        is_ready = self.stateless or self.version is not None
        if is_ready and method in _LISTS:
            check_list_params(params)
            get_list: Callable[..., JsonObject] = getattr(self.resource_service, _LISTS[method])
            view = self.service.environment_view()
            return get_list(params.get("cursor"), stateless=bool(self.stateless), view=view)
        if is_ready and method in _REQUESTS:
            check, factory = _REQUESTS[method]
            check(params)
            make_request: RequestFactory = getattr(self.resource_service, factory)
            return self._start_call(message, params, client, capabilities, make_request)
        if not self._delegate_to_sdk(message):
            self._warn_missing_sdk(method)
            raise method_not_found_error(method)

    # -------------------------------------------------------------- calls

    @property
    def resource_service(self) -> ResourceService:
        """The resources and prompts of the app. Most sessions do not ask for them."""
        from tooli.mcp.resource_service import ResourceService

        return self.service.dispatcher.cached(
            "resource service", lambda: ResourceService(self.service)
        )

    def _make_request(self, message: JsonObject) -> ServerRequest:
        """Return the request as the logs see it."""
        rpc_id, method = message["id"], message.get("method")
        request = ServerRequest("mcp", request_id_of(rpc_id, self._connection_id))
        request.exposes_errors = self.service.exposes_errors
        request.session_data = self.service.stdio_session_data
        request.rpc_id, request.method = rpc_id, method if isinstance(method, str) else None
        params = message.get("params")
        meta = params.get("_meta") if is_object(params) else None
        trace = meta.get("traceparent") if is_object(meta) else None
        request.trace = read_trace(trace.encode()) if isinstance(trace, str) else None
        return request

    def _start_call(
        self,
        message: JsonObject,
        params: JsonObject,
        client: object,
        capabilities: object,
        make_request: RequestFactory | None = None,
    ) -> JsonObject | None:
        """Start a request that runs a function of the app: a tool call by default."""
        entry = self._make_request(message)
        peer = StdioPeer(self.pending, message["id"], params, capabilities, entry)
        context = RequestContext(
            caller_from_client_info(client),
            peer,
            bool(self.stateless),
            self.version not in TEXT_ONLY_VERSIONS,
            accepts_encoded=True,
            find_view=self.service.environment_view,
            request=entry,
        )
        request = (make_request or self.service.tool_call_request)(params, context)
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


def serve_stdio(
    app: App, *, deferred: bool = False, code_mode: bool = False, expose_errors: bool = False
) -> None:
    """Serve an app to the client on stdin and stdout until it disconnects."""
    transport = StdioTransport.claim_stdio()
    server = StdioServer(
        app, transport, deferred=deferred, code_mode=code_mode, expose_errors=expose_errors
    )
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
        server.close_lifespan()
        exit_process()
        # Python ignores an exception that is raised in a weakref callback or in `__del__`. Without
        # input, the server then ends as well.
        server.transport.close_input()
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
