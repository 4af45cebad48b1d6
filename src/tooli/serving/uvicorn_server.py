"""uvicorn's server and HTTP protocol, with a graceful shutdown and timeouts for clients.

Only a process that serves imports this module, so uvicorn is imported at the top.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tooli.serving.connection_acceptor import ConnectionAcceptor, connection_limit
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS

if TYPE_CHECKING:
    from asyncio import Transport
    from asyncio.events import TimerHandle
    from collections.abc import Awaitable, Callable, Generator
    from socket import socket
    from types import FrameType

    from tooli.core.protocols import JsonObject
    from tooli.serving import AsgiApp, Receive, Scope, Send

HEADER_TIMEOUT = 10.0
"""Seconds within which the headers of a request must arrive.

The timer starts with the connection, and with the first byte of each later request.
"""

STALL_TIMEOUT = 60.0
"""Seconds that a client may take to read what was sent."""

MAX_CORKED_BYTES = 1 << 16
"""Largest chunk that is held back to be sent together with another one."""

FORWARDED_IPS_VARIABLE = "FORWARDED_ALLOW_IPS"
"""Environment variable of uvicorn that lists the proxies whose X-Forwarded-For is trusted.

If it is not set, no proxy is trusted. uvicorn's default would trust this machine, and any client
on it could claim another address with every call.
"""

FORCED_EXIT_DELAY = 5.0
"""Seconds after the grace period until the process ends, even if calls are still running."""
_EXIT_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_BAD_REQUEST_BODY = (
    b'{"ok":false,"error":{"code":"E1400","category":"input",'
    b'"message":"The request is not valid HTTP.","is_retryable":true},'
    b'"meta":{"tool":"http","duration_ms":0}}'
)


def run_server(
    app: AsgiApp,
    listener: socket,
    grace: float,
    *,
    parent_pipe: int | None = None,
    access_log: bool = False,
    on_started: Callable[[], None] | None = None,
    on_shutdown: Callable[[float], Awaitable[None]],
) -> None:
    """Serve an ASGI application until a signal arrives or the parent process ends.

    `on_started` is called when the server accepts connections.
    """
    config = uvicorn.Config(
        _end_cancelled_requests(app),
        http=TimeoutProtocol,
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=_build_log_config(access_log),
        access_log=access_log,
        server_header=False,
        proxy_headers=FORWARDED_IPS_VARIABLE in os.environ,
        timeout_graceful_shutdown=math.ceil(grace),
    )
    server = GracefulServer(config, parent_pipe, grace, on_shutdown)
    if on_started is not None:
        server.on_started = on_started
    server.run(sockets=[listener])


def _end_cancelled_requests(app: AsgiApp) -> AsgiApp:
    """Return the application, wrapped so that it ignores the CancelledError of HTTP requests.

    A shutdown cancels requests, and uvicorn would log that as an error of the application.
    """

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise

    return run


class GracefulServer(uvicorn.Server):
    """A server that shuts down gracefully after a signal, or when its parent process ends."""

    on_started: Callable[[], None] | None = None

    def __init__(
        self,
        config: uvicorn.Config,
        parent_pipe: int | None,
        grace: float,
        on_shutdown: Callable[[float], Awaitable[None]],
    ) -> None:
        super().__init__(config)
        self._parent_pipe = parent_pipe
        self._grace = grace
        self._on_shutdown = on_shutdown
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shutdown_task: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start the application, then accept connections within the limits of the process.

        The threads of asyncio, which async functions with inputs or with isolation use, are as many
        as calls. So the limit of calls per caller leaves threads for other callers.
        """
        executor = ThreadPoolExecutor(MAX_CONCURRENT_CALLS, "tooli-async")
        asyncio.get_running_loop().set_default_executor(executor)
        if sockets is None or os.name != "posix":
            # Windows: uvicorn accepts the connections, and their number is not limited
            await super().startup(sockets)
        else:
            await super().startup(sockets=[])
            limit = max(1, connection_limit() // max(1, len(sockets)))
            for listener in sockets:
                acceptor = ConnectionAcceptor(
                    listener,
                    self._create_protocol,
                    limit=limit,
                    proxies=os.environ.get(FORWARDED_IPS_VARIABLE, ""),
                )
                acceptor.start()
                self.servers.append(acceptor)  # type: ignore[arg-type]
        if self.started and self.on_started is not None:
            self.on_started()

    def _create_protocol(self) -> TimeoutProtocol:
        return TimeoutProtocol(self.config, self.server_state, self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle SIGINT and SIGTERM; unlike uvicorn, do not raise them again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous_handlers = {sig: signal.signal(sig, self.handle_exit) for sig in _EXIT_SIGNALS}
        if self._parent_pipe is not None:
            # Ctrl-C in a terminal signals the parent too, which then sends SIGTERM to its workers
            signal.signal(signal.SIGINT, _ignore_signal)
        try:
            yield
        finally:
            for sig, handler in previous_handlers.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start the shutdown, and a timer that ends the process even if a call never returns."""
        if self._loop is None or self._shutdown_task is not None:
            super().handle_exit(sig, frame)
        else:
            self._loop.call_soon_threadsafe(self._start_shutdown)
        if self._parent_pipe is None:  # a worker needs no timer: its parent process kills it
            exit_timer = threading.Timer(self._grace + FORCED_EXIT_DELAY, os._exit, (128 + sig,))
            exit_timer.daemon = True
            exit_timer.start()

    async def main_loop(self) -> None:
        """Serve until shutdown, and monitor the parent process."""
        self._loop = asyncio.get_running_loop()
        if self._parent_pipe is not None:
            self._loop.add_reader(self._parent_pipe, self._on_parent_exit)
        await super().main_loop()

    def _on_parent_exit(self) -> None:
        assert self._parent_pipe is not None and self._loop is not None
        self._loop.remove_reader(self._parent_pipe)
        self._start_shutdown()

    def _start_shutdown(self) -> None:
        """Shut down the application first, because the server's shutdown cuts off open streams."""
        if self._shutdown_task is None and self._loop is not None:
            self._shutdown_task = self._loop.create_task(self._shut_down())

    async def _shut_down(self) -> None:
        for server in self.servers:
            server.close()
        try:
            await self._on_shutdown(self._grace)
        finally:
            self.should_exit = True


def _ignore_signal(sig: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing. Unlike SIG_IGN, child processes do not inherit this."""


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


class TimeoutProtocol(H11Protocol):
    """One connection. It is closed if the client is too slow to send headers or to read."""

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
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

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

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with an envelope, and close the connection."""
        del msg  # uvicorn's own text
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(_BAD_REQUEST_BODY)),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (head, h11.Data(data=_BAD_REQUEST_BODY), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # the application cannot send a response any more
            cycle.message_event.set()
        self.transport.close()


def _build_log_config(access_log: bool) -> JsonObject:
    """Return uvicorn's log settings: errors go to stderr, and requests if `access_log` is set."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"stderr": {"class": "logging.StreamHandler"}},
        "loggers": {
            "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            "uvicorn.error": {"level": "ERROR"},
            "uvicorn.access": {
                "handlers": ["stderr"],
                "level": "INFO" if access_log else "WARNING",
                "propagate": False,
            },
        },
    }
