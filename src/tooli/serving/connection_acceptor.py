"""ConnectionAcceptor: accepts connections up to a limit that the open files of the process allow.

    listening socket ─▶ accept ─┬▶ room: a protocol handles the connection
                                ├▶ the address has its share: its oldest idle connection is closed,
                                │  or the new one is refused
                                └▶ no room: the oldest idle connections are closed, and no further
                                   one is accepted until a connection has ended

asyncio's own server accepts until `accept` fails because the process has no free descriptor. It
logs every failure and tries again at once.
"""

from __future__ import annotations

import asyncio
import errno
import os
from ipaddress import ip_address, ip_network
from logging import getLogger
from typing import TYPE_CHECKING, Protocol

from tooli.core.caller_key import address_group
from tooli.serving.caller_limits import CallerLimit

try:
    import resource
except ImportError:  # Windows
    resource = None

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from asyncio.events import TimerHandle
    from collections.abc import Callable
    from socket import socket
    from ssl import SSLContext

    class Connection(Protocol):
        """The protocol of a connection that the acceptor counts."""

        on_end: Callable[[Connection], None] | None

        @property
        def is_idle(self) -> bool:
            """True if no request is being handled, and everything is sent."""
            ...

        def abort(self) -> None:
            """Close the connection at once."""
            ...


LISTEN_BACKLOG = 2048
"""Connections that the system keeps until the server accepts them."""

MAX_CONNECTIONS = 4096
"""Largest number of open connections of a server process."""

WANTED_DESCRIPTORS = 8192
"""Number of open files that a server process allows itself, up to the hard limit of the system."""

MIN_CONNECTIONS = 8
"""Number of connections that are accepted even if nearly all descriptors are in use."""

ACCEPT_BATCH = 64
"""Maximum number of connections that are accepted in one iteration of the event loop."""

ACCEPT_RETRY_DELAY = 1.0
"""Seconds without new connections after the system could not accept one."""

MIN_IDLE_SECONDS = 1.0
"""Age from which an idle connection is closed if the limit is reached.

A new client has this time to send its request.
"""

HANDSHAKE_TIMEOUT = 10.0
"""Seconds that a client has for the TLS handshake."""

LOG_INTERVAL = 60.0
"""Minimum number of seconds between two messages about refused connections."""

_EVICTED_AT_ONCE = 8
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)
_logger = getLogger("uvicorn.error")


def connection_limit() -> int:
    """Return how many connections this process may have: three quarters of the free descriptors.

    The others are for the files and processes of the app. The soft limit of descriptors, which is
    often 1,024, is raised if the hard limit allows it.
    """
    _raise_descriptor_limit()
    free = _free_descriptors()
    if free is None:
        return MAX_CONNECTIONS
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, free * 3 // 4))


def _raise_descriptor_limit() -> None:
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS has another limit for all processes
            return


def _free_descriptors() -> int | None:
    """Return how many files this process can still open; None if there is no limit."""
    if resource is None:
        return None
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY:
        return None
    try:
        used = len(os.listdir("/dev/fd"))
    except OSError:
        used = 32
    return max(0, soft_limit - used)


class ConnectionAcceptor:
    """Accepts the connections of one listening socket. uvicorn uses it like an asyncio server."""

    def __init__(
        self,
        listener: socket,
        create_protocol: Callable[[], Connection],
        *,
        limit: int,
        proxies: str = "",
        tls: SSLContext | None = None,
    ) -> None:
        self._listener = listener
        self._create_protocol = create_protocol
        self._limit = limit
        self._tls = tls
        self._proxies = TrustedProxies(proxies)
        # the key of the address and the time of each connection, oldest first
        self._open: dict[Connection, tuple[str, float]] = {}
        self._by_address = CallerLimit(max(1, limit // 2))
        self._loop: AbstractEventLoop = asyncio.get_running_loop()
        self._tasks: set[Task[None]] = set()
        self._retry_timer: TimerHandle | None = None
        self._is_reading = False
        self._is_closed = False
        self._next_log = 0.0

    def start(self) -> None:
        """Start to accept. Raises NotImplementedError if the event loop has no readers."""
        self._listener.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Accept the connections that wait, and close the listening socket.

        Open connections are kept. The system resets those that still wait.
        """
        if self._is_closed:
            return
        if self._is_reading:  # otherwise no connection can be accepted now
            self._accept_batch()
        self._is_closed = True
        self._pause()
        self._cancel_retry()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Return at once: nothing is left to close."""

    # -------------------------------------------------------------- accepting

    def _resume(self) -> None:
        self._cancel_retry()
        if not self._is_closed and not self._is_reading:
            self._loop.add_reader(self._listener.fileno(), self._accept_batch)
            self._is_reading = True

    def _pause(self) -> None:
        if self._is_reading:
            self._loop.remove_reader(self._listener.fileno())
            self._is_reading = False

    def _retry_after(self, seconds: float) -> None:
        self._cancel_retry()
        self._retry_timer = self._loop.call_later(seconds, self._resume)

    def _cancel_retry(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None

    def _accept_batch(self) -> None:
        """Accept connections. The event loop calls this if at least one is waiting."""
        if len(self._open) >= self._limit:
            self._pause()  # until a connection ends, or another one can be closed
            if not self._evict_idle():
                self._retry_after(MIN_IDLE_SECONDS / 4)
        for _ in range(min(ACCEPT_BATCH, self._limit - len(self._open))):
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as failure:
                self._pause_after(failure)
                return
            self._admit(sock, str(address[0]) if address else "")

    def _pause_after(self, failure: OSError) -> None:
        self._pause()
        if failure.errno not in _EXHAUSTED:
            self._log(f"cannot accept connections: {failure}")
        else:
            self._log(f"cannot accept more connections: {failure.strerror}. Raise ulimit -n.")
            self._evict_idle()
        self._retry_after(ACCEPT_RETRY_DELAY)

    def _evict_idle(self) -> bool:
        """Close the oldest idle connections; return False if there are none."""
        self._log(f"{len(self._open)} connections are open, which is the limit; see ulimit -n.")
        latest = self._loop.time() - MIN_IDLE_SECONDS
        idle = [
            connection
            for connection, (_, accepted_at) in self._open.items()
            if accepted_at <= latest and connection.is_idle
        ]
        for connection in idle[:_EVICTED_AT_ONCE]:
            connection.abort()
        return bool(idle)

    def _find_idle(self, key: str) -> Connection | None:
        """Return the oldest idle connection of an address."""
        for connection, (other_key, _) in self._open.items():
            if key == other_key and connection.is_idle:
                return connection
        return None

    # -------------------------------------------------------------- connections

    def _admit(self, sock: socket, address: str) -> None:
        key = "" if address in self._proxies else address_group(address)
        if key and not self._by_address.acquire(key):
            oldest = self._find_idle(key)
            if oldest is None:
                _refuse(sock)
                self._log(f"{self._by_address.limit} connections of one address are open.")
                return
            oldest.abort()
            self._by_address.force_acquire(key)
        connection = self._create_protocol()
        connection.on_end = self._on_end
        self._open[connection] = key, self._loop.time()
        task = self._loop.create_task(self._connect(sock, connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, sock: socket, connection: Connection) -> None:
        try:
            sock.setblocking(False)
            await self._loop.connect_accepted_socket(
                lambda: connection,  # type: ignore[arg-type]
                sock,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_TIMEOUT,
            )
        except Exception as failure:  # the client has disconnected
            sock.close()
            self._on_end(connection)
            _logger.debug("a connection failed: %s", failure)

    def _on_end(self, connection: Connection) -> None:
        found = self._open.pop(connection, None)
        if found is None:
            return
        if found[0]:
            self._by_address.release(found[0])
        self._resume()

    def _log(self, message: str) -> None:
        """Log a message, at most one in LOG_INTERVAL seconds."""
        now = self._loop.time()
        if now >= self._next_log:
            self._next_log = now + LOG_INTERVAL
            _logger.error(message)


def _refuse(sock: socket) -> None:
    """Send a refusal, if it can be sent at once, and close the connection."""
    try:
        sock.setblocking(False)
        sock.send(_REFUSAL)
    except OSError:
        pass
    finally:
        sock.close()


class TrustedProxies:
    """The proxies of a comma-separated list of addresses and networks; `*` means every address."""

    def __init__(self, text: str) -> None:
        names = [name.strip() for name in text.split(",") if name.strip()]
        self._trusts_all = "*" in names
        self._networks = [network for name in names if (network := _parse_network(name))]

    def __contains__(self, address: str) -> bool:
        """True if connections from the address are not limited: many clients share it."""
        if self._trusts_all:
            return True
        if not self._networks:
            return False
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return any([parsed in network for network in self._networks])


def _parse_network(text: str):
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None
