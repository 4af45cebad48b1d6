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

import uvicorn

from tooli.serving.connection_acceptor import ConnectionAcceptor, connection_limit
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS, is_installed
from tooli.serving.http_protocols import H11Connection
from tooli.serving.worker_processes import is_repeated_signal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from socket import socket
    from types import FrameType

    from tooli.serving import AsgiApp, Receive, Scope, Send
    from tooli.serving.http_protocols import ClientTimeouts

FORWARDED_IPS_VARIABLE = "FORWARDED_ALLOW_IPS"
"""Environment variable of uvicorn that lists the proxies whose X-Forwarded-For is trusted.

If it is not set, no proxy is trusted. uvicorn's default would trust this machine, and any client
on it could claim another address with every call.
"""

FORCED_EXIT_DELAY = 5.0
"""Seconds after the grace period until the process ends, even if calls are still running."""
_EXIT_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_server(
    app: AsgiApp,
    listener: socket,
    grace: float,
    *,
    parent_pipe: int | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    on_started: Callable[[], None] | None = None,
    on_shutdown: Callable[[float], Awaitable[None]],
) -> None:
    """Serve an ASGI application until a signal arrives or the parent process ends.

    `on_started` is called when the server accepts connections.
    """
    config = uvicorn.Config(
        _end_cancelled_requests(app),
        http=select_protocol(),
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,  # serving/log_setup.py configures the loggers
        access_log=False,
        server_header=False,
        proxy_headers=FORWARDED_IPS_VARIABLE in os.environ,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
        timeout_graceful_shutdown=math.ceil(grace),
    )
    server = GracefulServer(config, parent_pipe, grace, on_shutdown)
    if on_started is not None:
        server.on_started = on_started
    server.run(sockets=[listener])


def select_protocol() -> type[Any]:
    """Return the fastest protocol that is installed."""
    if is_installed("httptools"):
        from tooli.serving.httptools_protocol import HttpToolsConnection

        return HttpToolsConnection
    return H11Connection


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
        self._signals: set[int] = set()  # those that have arrived

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
                    tls=self.config.ssl,
                )
                acceptor.start()
                self.servers.append(acceptor)  # type: ignore[arg-type]
        if self.started and self.on_started is not None:
            self.on_started()

    def _create_protocol(self) -> ClientTimeouts:
        protocol: Any = self.config.http_protocol_class
        return protocol(self.config, self.server_state, self.lifespan.state)

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
        """Start the shutdown, and a timer that ends the process even if a call never returns.

        A repeated signal ends the server at once. A worker ignores it, because a service manager
        signals all processes, and the parent process then signals its workers.
        """
        is_repeated = is_repeated_signal(sig, self._signals)
        self._signals.add(sig)
        if self._loop is None:
            super().handle_exit(sig, frame)
        elif is_repeated and self._parent_pipe is None:
            self.should_exit = self.force_exit = True
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
