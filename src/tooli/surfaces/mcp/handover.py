"""Handing a live stdio stream to the official SDK, in the middle of a conversation.

    client ─▶ Front ─▶ Handover.send ─▶ the SDK's server, on a loop of its own
    client ◀───────────── Wire ◀─────────────┘

What the client said first is said to the SDK again, so that it knows with whom it talks; its
answer to that is not sent a second time.
"""

from __future__ import annotations

from threading import Condition, Thread
from typing import Any

from tooli.surfaces.mcp.wire import twin

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.surfaces.mcp.service import Service
    from tooli.surfaces.mcp.wire import Wire


class Handover:
    """The SDK's server at work behind the front."""

    def __init__(self, service: Service, wire: Wire, opening: list[dict[str, Any]]) -> None:
        from mcp_types.jsonrpc import jsonrpc_message_adapter

        from tooli.surfaces.mcp.sdk import make_server

        self._make_server = make_server
        self._service = service
        self._wire = wire
        self._read_message = jsonrpc_message_adapter.validate_python
        self._again = {message["id"] for message in opening if "id" in message}
        self._open: set[Any] = set()  # requests that are not answered yet
        self._leaving = 0  # answers that are not out yet
        self._change = Condition()  # never held while anything is written: clients may not read
        self._loop: Any = None
        self._inbox: Any = None
        self._over = False
        Thread(target=self._run, daemon=True, name="tooli-sdk").start()
        with self._change:
            while self._loop is None and not self._over:
                self._change.wait()
        for message in opening:
            self.send(message)

    def send(self, message: dict[str, Any]) -> None:
        """Give a message of the client's to the SDK."""
        import asyncio

        from mcp.shared.message import SessionMessage

        item = SessionMessage(self._read_message(message))
        with self._change:
            if self._over:
                raise RuntimeError("the MCP SDK's server has ended")
            if "method" in message and "id" in message:
                self._open.add(message["id"])
        asyncio.run_coroutine_threadsafe(self._inbox.send(item), self._loop).result()

    def forget(self, given: Any) -> None:
        """A request was cancelled: it will not be answered."""
        with self._change:
            self._open -= {given, twin(given)}

    def __contains__(self, given: int | str) -> bool:
        return given in self._open

    @property
    def busy(self) -> bool:
        """Whether a request is not answered yet, or its answer on the way."""
        return bool(self._open or self._leaving)

    def wait(self, seconds: float) -> None:
        """Let the SDK answer what it was asked, as long as somebody is there to read it."""
        from time import monotonic

        until = monotonic() + seconds
        with self._change:
            while self.busy and monotonic() < until and not self._wire.deserted():
                self._change.wait(0.1)

    # -------------------------------------------------------------- on the loop

    def _run(self) -> None:
        import asyncio

        try:
            asyncio.run(self._serve())
        finally:
            with self._change:
                self._over = True
                self._open.clear()
                self._change.notify_all()

    async def _serve(self) -> None:
        import asyncio

        import anyio

        server = self._make_server(self._service)
        self._inbox, incoming = anyio.create_memory_object_stream[Any](1000)
        outgoing, outbox = anyio.create_memory_object_stream[Any](0)
        with self._change:
            self._loop = asyncio.get_running_loop()
            self._change.notify_all()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._deliver, outbox)
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def _deliver(self, outbox: Any) -> None:
        """Write what the SDK says; blocking is right: the client reads, or nobody does."""
        async with outbox:
            async for item in outbox:
                message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                answered = message.get("id") if "method" not in message else None
                if answered is not None and answered in self._again:
                    self._again.discard(answered)
                    self._send(None, answered)
                else:
                    self._send(message, answered)

    def _send(self, message: Any, answered: Any) -> None:
        with self._change:  # the id is free again as soon as the client can know it
            self._open.discard(answered)
            self._leaving += 1
        try:
            if message is not None:
                self._wire.write(message)
        finally:
            with self._change:
                self._leaving -= 1
                self._change.notify_all()
