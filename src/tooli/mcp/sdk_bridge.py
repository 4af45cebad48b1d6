"""SdkBridge: passes a running stdio connection to the official SDK.

    client ─▶ StdioServer ─▶ SdkBridge.send ─▶ SDK server, on its own event loop
    client ◀───── StdioTransport ◀───────────────┘

The messages of the handshake are sent to the SDK again, so that it knows the client; its answer
to them is dropped. Only a connection that needs the SDK imports this module.
"""

from __future__ import annotations

import sys
from traceback import print_exc

import anyio
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from tooli.mcp.sdk_server import AppServer
from tooli.mcp.stdio_transport import RequestTracker, alternate_id
from tooli.serving.thread_pool import EventLoopThread

TYPE_CHECKING = False

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream

    from tooli.core.protocols import JsonObject
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.service import McpService
    from tooli.mcp.stdio_transport import StdioTransport


class SdkBridge(RequestTracker):
    """The SDK's server behind a StdioServer."""

    def __init__(
        self,
        service: McpService,
        transport: StdioTransport,
        handshake_messages: list[JsonObject],
    ) -> None:
        super().__init__(transport)
        self._replayed_ids = {message["id"] for message in handshake_messages if "id" in message}
        self._has_ended = False
        self._inbox, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](1000)
        self._loop_thread = EventLoopThread()
        self._loop_thread.submit(self._serve(AppServer(service), incoming))
        for message in handshake_messages:
            self.send(message)

    def send(self, message: JsonObject) -> None:
        """Pass a message of the client to the SDK."""
        item = SessionMessage(jsonrpc_message_adapter.validate_python(message))
        with self.condition:
            if self._has_ended:
                raise RuntimeError("the MCP SDK's server has ended")
            if "method" in message and "id" in message:
                self.requests[message["id"]] = None
        self._loop_thread.submit(self._inbox.send(item)).result()

    def discard_request(self, request_id: RequestId) -> None:
        """Forget a request that was cancelled: it gets no answer."""
        with self.condition:
            for possible_id in (request_id, alternate_id(request_id)):
                self.requests.pop(possible_id, None)

    # -------------------------------------------------------------- on the loop

    async def _serve(
        self, server: AppServer, incoming: MemoryObjectReceiveStream[SessionMessage | Exception]
    ) -> None:
        outgoing, outbox = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with self._inbox, incoming, outgoing, anyio.create_task_group() as tasks:
                tasks.start_soon(self._forward_messages, outbox)
                await server.run(incoming, outgoing, server.create_initialization_options())
        except Exception:
            # nobody awaits this coroutine, so its exception would be lost
            print_exc(file=sys.stderr)
        finally:
            with self.condition:
                self._has_ended = True
                self.requests.clear()
                self.condition.notify_all()

    async def _forward_messages(self, outbox: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write the SDK's messages. A write may block the loop, but it serves only this client."""
        async with outbox:
            async for item in outbox:
                message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                response_id = message.get("id") if "method" not in message else None
                if response_id is not None and response_id in self._replayed_ids:
                    self._replayed_ids.discard(response_id)
                    message = None
                self.reply(response_id, message)
