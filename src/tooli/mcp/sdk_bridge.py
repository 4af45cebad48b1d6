"""SdkBridge: hand a running stdio connection to the official SDK.

    client ─▶ StdioServer ─▶ SdkBridge.send ─▶ the SDK's server, on its own event loop
    client ◀───── StdioTransport ◀─────────────────┘

The messages of the handshake are sent to the SDK again, so that it knows the client; its answer
to them is dropped. Only a connection that needs the SDK imports this module.
"""

from __future__ import annotations

import asyncio
from threading import Condition, Thread
from time import monotonic

import anyio
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from tooli.mcp.sdk_server import make_server
from tooli.mcp.stdio_transport import alternate_id

TYPE_CHECKING = False

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from tooli.core.protocols import JsonObject
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.service import McpService
    from tooli.mcp.stdio_transport import StdioTransport


class SdkBridge:
    """The SDK's server behind a StdioServer."""

    def __init__(
        self,
        service: McpService,
        transport: StdioTransport,
        handshake_messages: list[JsonObject],
    ) -> None:
        self._service = service
        self._transport = transport
        self._replayed_ids = {message["id"] for message in handshake_messages if "id" in message}
        self._pending_ids: set[RequestId] = set()  # requests that are not answered yet
        self._replies_in_progress = 0  # answers that are being sent
        self._condition = Condition()  # not held during writes, which can block
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: MemoryObjectSendStream[SessionMessage | Exception] | None = None
        self._has_ended = False
        Thread(target=self._run, daemon=True, name="tooli-sdk").start()
        with self._condition:
            while self._loop is None and not self._has_ended:
                self._condition.wait()
        for message in handshake_messages:
            self.send(message)

    def send(self, message: JsonObject) -> None:
        """Pass a message of the client to the SDK."""
        item = SessionMessage(jsonrpc_message_adapter.validate_python(message))
        with self._condition:
            if self._has_ended or self._loop is None or self._inbox is None:
                raise RuntimeError("the MCP SDK's server has ended")
            if "method" in message and "id" in message:
                self._pending_ids.add(message["id"])
        asyncio.run_coroutine_threadsafe(self._inbox.send(item), self._loop).result()

    def discard_request(self, request_id: RequestId) -> None:
        """Forget a request that was cancelled: it gets no answer."""
        with self._condition:
            self._pending_ids -= {request_id, alternate_id(request_id)}

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self._pending_ids

    @property
    def is_busy(self) -> bool:
        """True if a request is not answered yet, or its answer is being sent."""
        return bool(self._pending_ids or self._replies_in_progress)

    def wait(self, timeout: float) -> None:
        """Wait for the SDK's answers while the client is connected."""
        deadline = monotonic() + timeout
        with self._condition:
            while self.is_busy and monotonic() < deadline and not self._transport.is_disconnected():
                self._condition.wait(0.1)

    # -------------------------------------------------------------- on the loop

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            with self._condition:
                self._has_ended = True
                self._pending_ids.clear()
                self._condition.notify_all()

    async def _serve(self) -> None:
        server = make_server(self._service)
        self._inbox, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](1000)
        outgoing, outbox = anyio.create_memory_object_stream[SessionMessage](0)
        with self._condition:
            self._loop = asyncio.get_running_loop()
            self._condition.notify_all()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._forward_messages, outbox)
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def _forward_messages(self, outbox: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write the SDK's messages. A write may block the loop, which serves only this client."""
        async with outbox:
            async for item in outbox:
                message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                response_id = message.get("id") if "method" not in message else None
                if response_id is not None and response_id in self._replayed_ids:
                    self._replayed_ids.discard(response_id)
                    self._send(None, response_id)
                else:
                    self._send(message, response_id)

    def _send(self, message: JsonObject | None, response_id: RequestId | None) -> None:
        with self._condition:  # the client may reuse the id as soon as it has the answer
            if response_id is not None:
                self._pending_ids.discard(response_id)
            self._replies_in_progress += 1
        try:
            if message is not None:
                self._transport.write(message)
        finally:
            with self._condition:
                self._replies_in_progress -= 1
                self._condition.notify_all()
