"""The stdio front: MCP on the standard library alone, for what clients ask all day.

    line ─▶ Front ─┬▶ initialize, server/discover, ping, tools/list: answered at once
                   ├▶ tools/call: in a thread, many at a time
                   └▶ anything else: the official SDK takes the live stream over

Importing the SDK costs more than most sessions need altogether. Every id gets exactly one
answer, whatever the line was; whatever is in doubt is the SDK's to decide.
"""

from __future__ import annotations

import sys
from functools import partial

from tooli.mcp.message_validation import (
    NeedsSdk,
    check_call_params,
    check_list_params,
    check_params,
    find_message_error,
    has_version_meta,
    is_request_id,
    read_initialize_params,
    read_stateless_meta,
    request_ids,
)
from tooli.mcp.pending_requests import PendingRequest, PendingRequests
from tooli.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MODERN_VERSIONS,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RpcError,
    invalid_params_error,
    method_not_found_error,
)
from tooli.mcp.service import McpService, caller_from_client_info
from tooli.mcp.stdio_transport import OversizedLine, StdioTransport, find_request_ids, from_json
from tooli.serving.dispatcher import is_installed, too_busy_error
from tooli.serving.thread_pool import EventLoopThread, ThreadPool
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.mcp.sdk_bridge import SdkBridge

MAX_THREADS = 64
"""Calls that run at the same time; later ones wait for a thread."""

BATCH_VERSION = "2025-03-26"
"""The one version that knows batches."""

STDIO_GRACE_PERIOD = 10.0
"""Seconds that calls have to end, once the client has closed its end of stdin."""


class StdioServer:
    """One client, served over stdin and stdout."""

    def __init__(self, app: Any, transport: StdioTransport, *, deferred: bool = False) -> None:
        self.service = McpService(app, deferred=deferred)
        self.transport = transport
        self.has_sdk = is_installed("mcp")
        self.has_warned_missing_sdk = False  # what is missing without the SDK
        self.modern: bool | None = None  # the first request decides
        self.version: str | None = None
        self.client: Any = None
        self.capabilities: Any = {}
        self.handshake_messages: list[dict[str, Any]] = []  # what the SDK must have heard to go on
        self.pending = PendingRequests(self)
        self.thread_pool = ThreadPool(MAX_THREADS, "tooli-call")
        self._loop_thread = EventLoopThread()
        self.sdk: SdkBridge | None = None

    def serve(self) -> None:
        """Answer until the client has gone."""
        state = self.service.app._state
        if not self.has_sdk and (state.resources or state.prompts):
            self._warn_missing_sdk("resources and prompts")
        state.change_listeners.append(self._on_app_change)
        for line in self.transport.lines():
            if self.transport.is_broken:
                break
            self._handle_line(line)
        state.change_listeners.remove(self._on_app_change)
        self.wait(STDIO_GRACE_PERIOD)
        self.shut_down()

    def shut_down(self) -> None:
        """Let the threads end, each after the call it runs."""
        self.thread_pool.shut_down()
        self._loop_thread.shut_down()

    def wait(self, timeout: float) -> None:
        """Let the calls end, as long as somebody is there to read their answers."""
        from time import monotonic

        deadline = monotonic() + timeout
        self.pending.wait(timeout)
        if self.sdk is not None:
            self.sdk.wait(deadline - monotonic())

    @property
    def is_busy(self) -> bool:
        """Whether anything is not answered yet."""
        return self.pending.is_busy or (self.sdk is not None and self.sdk.is_busy)

    def _warn_missing_sdk(self, feature: str) -> None:
        """Say once how to get the rest."""
        if not self.has_warned_missing_sdk:
            self.has_warned_missing_sdk = True
            log_line(
                f"without the MCP SDK there are only tools; for {feature}: pip install 'tooli[mcp]'"
            )

    def _on_app_change(self, kind: str, uri: str | None) -> None:
        """Tell a client that has shaken hands that a list is not what it was."""
        ready = len(self.handshake_messages) > 1 and self.has_sdk and self.sdk is None
        if ready and uri is None:
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
            error = RpcError(PARSE_ERROR, f"The line is not JSON: {reason}")
            self._send_errors(find_request_ids(line) or [None], error)
            return
        if is_list(message):
            self._handle_batch(message)
        else:
            self.handle_message(message)

    def _handle_batch(self, messages: Sequence[Any]) -> None:
        if self.version == BATCH_VERSION and messages:
            for message in messages:
                self.handle_message(message)
            return
        error = RpcError(INVALID_REQUEST, "Batches are not part of this protocol version")
        self._send_errors(request_ids(messages) or [None], error)

    def _send_errors(self, ids: Sequence[Any], error: RpcError) -> None:
        """Answer with an error; an id that is in flight gets its answer from its call."""
        for request_id in ids:
            if request_id is None or not self._is_pending(request_id):
                self.transport.write({"jsonrpc": "2.0", "id": request_id, "error": error.to_dict()})

    def _is_pending(self, request_id: int | str) -> bool:
        return request_id in self.pending or (self.sdk is not None and request_id in self.sdk)

    # -------------------------------------------------------------- messages

    def handle_message(self, message: Any) -> None:
        """Deal with one message; nothing that it says can end the server."""
        try:
            self._dispatch_message(message)
        except Exception as failure:
            log_line(f"{type(failure).__name__}: {failure}")
            request_id = message.get("id") if is_object(message) else None
            if is_request_id(request_id):
                self._send_errors([request_id], RpcError(INTERNAL_ERROR, "Internal server error"))

    def _dispatch_message(self, message: Any) -> None:
        problem = find_message_error(message)
        if problem is not None:
            ids = request_ids(message if is_list(message) else [message])
            self._send_errors(ids or [None], RpcError(INVALID_REQUEST, problem))
            return
        method = message.get("method")
        if method is None:
            if not self.pending.resolve_question(message) and self.sdk is not None:
                self.sdk.send(message)
        elif "id" not in message:
            self._handle_notification(method, message)
        elif self._is_pending(message["id"]):
            log_line(f"a second request with id {message['id']!r} was left unanswered")
        elif self.sdk is not None:
            self.sdk.send(message)
        else:
            self._handle_request(method, message)

    def _handle_notification(self, method: str, message: dict[str, Any]) -> None:
        """A notification: cancelling is ours, the rest is for whoever has to know it."""
        if method == "notifications/cancelled":
            params: Any = message.get("params") or {}
            request_id = params.get("requestId")
            if type(request_id) not in (int, str) or self.pending.cancel(request_id):
                return
            if self.sdk is not None:
                self.sdk.discard_request(request_id)
        if self.sdk is not None:
            self.sdk.send(message)
        elif method == "notifications/initialized" and self.modern is False:
            self.handshake_messages.append(message)

    def _handle_request(self, method: str, message: dict[str, Any]) -> None:
        params = message.get("params")
        if self.modern is None:
            self.modern = method != "initialize" and has_version_meta(params)
        try:
            result = (self._handle_modern if self.modern else self._handle_legacy)(
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

    # -------------------------------------------------------------- the two eras

    def _handle_legacy(
        self, method: str, message: dict[str, Any], params: Any
    ) -> dict[str, Any] | None:
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
            return self.service.list_tools(_get_param(params, "cursor"), modern=False)
        return self._start_call(message, params, self.client, self.capabilities)

    def _handle_modern(
        self, method: str, message: dict[str, Any], params: Any
    ) -> dict[str, Any] | None:
        if method == "initialize":
            requested = _get_param(params, "protocolVersion")
            data: dict[str, Any] = {"supported": list(MODERN_VERSIONS)}
            if isinstance(requested, str):
                data["requested"] = requested
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
            return self.service.list_tools(params.get("cursor"), modern=True)
        if method == "tools/call":
            check_call_params(params)
            return self._start_call(message, params, client, capabilities)
        return self._handle_other_method(method, message)

    def _handle_other_method(self, method: str, message: dict[str, Any]) -> None:
        """A method that is not the front's."""
        if not self._delegate_to_sdk(message):
            self._warn_missing_sdk(method)
            raise method_not_found_error(method)

    # -------------------------------------------------------------- calls

    def _start_call(
        self, message: dict[str, Any], params: dict[str, Any], client: Any, capabilities: Any
    ) -> dict[str, Any] | None:
        pending_request = PendingRequest(self.pending, message["id"], params, capabilities)
        caller, modern = caller_from_client_info(client), bool(self.modern)
        request = self.service.request(params, caller, pending_request, modern=modern)
        if self.pending.is_full:
            return request.error_result(too_busy_error())
        self.pending.add(pending_request)
        if request.is_async:
            work = pending_request.run_and_reply_async(request.arun)
            pending_request.on_cancel = self._loop_thread.submit(work)
        else:
            self.thread_pool.submit(partial(pending_request.run_and_reply, request.run))
        return None

    def _delegate_to_sdk(self, message: dict[str, Any]) -> bool:
        """Give a request to the SDK, which takes over from here; False where there is none."""
        if not self.has_sdk:
            return False
        from tooli.mcp.sdk_bridge import SdkBridge

        try:
            self.sdk = SdkBridge(self.service, self.transport, self.handshake_messages)
        except ImportError as missing:  # it is there, but not the one that we know
            self.has_sdk = False
            log_line(f"the MCP SDK cannot be used: {missing}")
            return False
        self.sdk.send(message)
        return True


def log_line(text: str) -> None:
    """A line for whoever reads the server's log."""
    try:
        line = " ".join(text[:300].split())  # clients' words stand in it: one line, and not long
        sys.stderr.write(f"[tooli] {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def _get_param(params: Any, name: str) -> Any:
    return params.get(name) if params is not None else None
