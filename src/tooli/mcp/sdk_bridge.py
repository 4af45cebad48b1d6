"""SdkBridge: hand a running stdio connection to the official SDK.

    client ─▶ StdioServer ─▶ SdkBridge.send ─▶ the SDK's server, on its own event loop
    client ◀───── StdioTransport ◀─────────────────┘

The messages of the handshake are sent to the SDK again, so that it knows the client; its answer
to them is dropped.
"""

from __future__ import annotations

from threading import Condition, Thread
from typing import Any

from tooli.mcp.stdio_transport import alternate_id

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.mcp.service import McpService
    from tooli.mcp.stdio_transport import StdioTransport


class SdkBridge:
    """The SDK's server behind a StdioServer."""

    def __init__(
        self,
        service: McpService,
        transport: StdioTransport,
        handshake_messages: list[dict[str, Any]],
    ) -> None:
        from mcp_types.jsonrpc import jsonrpc_message_adapter

        from tooli.mcp.sdk_server import make_server

        self._make_server = make_server
        self._service = service
        self._transport = transport
        self._parse_message = jsonrpc_message_adapter.validate_python
        self._replayed_ids = {message["id"] for message in handshake_messages if "id" in message}
        self._pending_ids: set[Any] = set()  # requests that are not answered yet
        self._replies_in_progress = 0  # answers that are being sent
        self._condition = Condition()  # not held during writes, which can block
        self._loop: Any = None
        self._inbox: Any = None
        self._has_ended = False
        Thread(target=self._run, daemon=True, name="tooli-sdk").start()
        with self._condition:
            while self._loop is None and not self._has_ended:
                self._condition.wait()
        for message in handshake_messages:
            self.send(message)

    def send(self, message: dict[str, Any]) -> None:
        """Pass a message of the client to the SDK."""
        import asyncio

        from mcp.shared.message import SessionMessage

        item = SessionMessage(self._parse_message(message))
        with self._condition:
            if self._has_ended:
                raise RuntimeError("the MCP SDK's server has ended")
            if "method" in message and "id" in message:
                self._pending_ids.add(message["id"])
        asyncio.run_coroutine_threadsafe(self._inbox.send(item), self._loop).result()

    def discard_request(self, request_id: Any) -> None:
        """Forget a request that was cancelled: it gets no answer."""
        with self._condition:
            self._pending_ids -= {request_id, alternate_id(request_id)}

    def __contains__(self, request_id: int | str) -> bool:
        return request_id in self._pending_ids

    @property
    def is_busy(self) -> bool:
        """True if a request is not answered yet, or its answer is being sent."""
        return bool(self._pending_ids or self._replies_in_progress)

    def wait(self, timeout: float) -> None:
        """Wait for the SDK's answers while the client is connected."""
        from time import monotonic

        deadline = monotonic() + timeout
        with self._condition:
            while self.is_busy and monotonic() < deadline and not self._transport.is_disconnected():
                self._condition.wait(0.1)

    # -------------------------------------------------------------- on the loop

    def _run(self) -> None:
        import asyncio

        try:
            asyncio.run(self._serve())
        finally:
            with self._condition:
                self._has_ended = True
                self._pending_ids.clear()
                self._condition.notify_all()

    async def _serve(self) -> None:
        import asyncio

        import anyio

        server = self._make_server(self._service)
        self._inbox, incoming = anyio.create_memory_object_stream[Any](1000)
        outgoing, outbox = anyio.create_memory_object_stream[Any](0)
        with self._condition:
            self._loop = asyncio.get_running_loop()
            self._condition.notify_all()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._forward_messages, outbox)
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def _forward_messages(self, outbox: Any) -> None:
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

    def _send(self, message: Any, response_id: Any) -> None:
        with self._condition:  # the client may reuse the id as soon as it has the answer
            self._pending_ids.discard(response_id)
            self._replies_in_progress += 1
        try:
            if message is not None:
                self._transport.write(message)
        finally:
            with self._condition:
                self._replies_in_progress -= 1
                self._condition.notify_all()
