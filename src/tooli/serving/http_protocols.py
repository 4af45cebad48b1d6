"""The HTTP protocol of a connection: uvicorn's, with timeouts and with envelopes as errors.

    connection ─▶ ClientTimeouts ─┬▶ HttpToolsConnection, if httptools is installed: faster
                                  └▶ H11Connection

Only a process that serves imports this module, so uvicorn is imported at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from asyncio import Transport
    from asyncio.events import TimerHandle
    from collections.abc import Callable

    Base = asyncio.Protocol
else:
    Base = object

HEADER_TIMEOUT = 10.0
"""Seconds within which the headers of a request must arrive.

The timer starts with the connection, and with the first byte of each later request.
"""

STALL_TIMEOUT = 60.0
"""Seconds that a client may take to read what was sent."""

MAX_CORKED_BYTES = 1 << 16
"""Largest chunk that is held back to be sent together with another one."""

BAD_REQUEST_BODY = (
    b'{"ok":false,"error":{"code":"E1400","category":"input",'
    b'"message":"The request is not valid HTTP.","is_retryable":true},'
    b'"meta":{"tool":"http","duration_ms":0}}'
)


class CorkedTransport:
    """A transport that sends the headers and the body of a response in one system call."""

    def __init__(
        self, transport: Transport, loop: asyncio.AbstractEventLoop, stall_timeout: float
    ) -> None:
        self._transport = transport
        self._stall_timeout = stall_timeout
        self._loop = loop
        self._parts: list[bytes] = []
        self._awaits_body = False  # True: headers are held back until their body is written

    def write(self, data: bytes) -> None:
        """Send data together with the chunks that follow it in this iteration of the event loop.

        Headers with a content length are held back until their body is written. A large chunk or
        a third chunk is sent at once, because a stream may write many chunks within one iteration.
        """
        parts = self._parts
        if parts:
            parts.append(data)
            if self._awaits_body or len(parts) > 2 or len(data) > MAX_CORKED_BYTES:
                self._flush()
        elif data:
            parts.append(data)
            self._awaits_body = data.startswith(b"HTTP/1.1 ") and b"\r\ncontent-length: " in data
            if len(data) > MAX_CORKED_BYTES:
                self._flush()
            elif not self._awaits_body:
                self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._parts:
            data, self._parts = b"".join(self._parts), []
            self._transport.write(data)

    def close(self) -> None:
        """Send the remaining data, then close the transport, even if the client does not read."""
        self._flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._loop.call_later(self._stall_timeout, self._transport.abort)

    def has_unsent_data(self) -> bool:
        """True if data waits to be sent."""
        return bool(self._parts) or self._transport.get_write_buffer_size() > 0

    def is_closing(self) -> bool:
        """True if the transport is closed or closing."""
        return self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class ClientTimeouts(Base):
    """One connection. It is closed if the client is too slow to send headers or to read.

    A mixin for the protocols of uvicorn, which parse HTTP.
    """

    if TYPE_CHECKING:
        loop: asyncio.AbstractEventLoop
        transport: Transport
        cycle: Any

    header_timeout = HEADER_TIMEOUT
    stall_timeout = STALL_TIMEOUT
    on_end: Callable[[Any], None] | None = None
    _is_aborted = False
    _header_timer: TimerHandle | None = None
    _stall_timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Handle a new connection."""
        corked = CorkedTransport(transport, self.loop, self.stall_timeout)
        super().connection_made(corked)  # type: ignore[arg-type]
        if self._is_aborted:
            transport.abort()
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        """Handle received data. The header timer runs until the headers are complete."""
        super().data_received(data)
        if self._is_responding:
            self._cancel_header_timer()
        elif self._header_timer is None:
            self._start_header_timer()

    def pause_writing(self) -> None:
        """Start the timer for a client that reads too slowly."""
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self.stall_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        self._cancel_stall_timer()
        super().resume_writing()

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._cancel_header_timer()
        self._cancel_stall_timer()
        super().connection_lost(exc)
        if self.on_end is not None:
            self.on_end(self)

    @property
    def is_idle(self) -> bool:
        """True if no request is being handled, and everything is sent."""
        transport: Any = self.transport  # a CorkedTransport, or None before the connection
        return not self._is_aborted and (
            transport is None or not (self._is_responding or transport.has_unsent_data())
        )

    def abort(self) -> None:
        """Close the connection at once, or as soon as it is made."""
        self._is_aborted = True
        transport: Any = self.transport
        if transport is not None:
            transport.abort()

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.header_timeout, self._on_header_timeout)

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _on_header_timeout(self) -> None:
        self._header_timer = None
        if not self._is_responding:
            self.transport.close()

    def end_cycle(self) -> None:
        """Tell the application of the current request that it cannot send a response any more."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()


class H11Connection(ClientTimeouts, H11Protocol):
    """A connection whose messages h11 parses."""

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with an envelope, and close the connection."""
        del msg  # uvicorn's own text
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(BAD_REQUEST_BODY)),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (head, h11.Data(data=BAD_REQUEST_BODY), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.end_cycle()
        self.transport.close()
