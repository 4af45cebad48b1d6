"""Hands that run calls: threads that wait for the next one, and an event loop on demand."""

from __future__ import annotations

from contextvars import copy_context
from queue import SimpleQueue
from threading import Lock, Thread

TYPE_CHECKING = False

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from typing import Any

    from tooli.surfaces.mcp.flights import Flight

MOST = 64
"""How many calls run at the same time; the next one waits."""


class Hands:
    """Runs calls one beside the other. Threads are kept: a new one costs more than a call."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[[], dict[str, Any]], Flight]] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0
        self._count = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Callable[[], dict[str, Any]], flight: Flight) -> None:
        """Run a call in a thread."""
        with self._lock:
            grow = self._idle == 0 and self._count < MOST
            if grow:
                self._count += 1
            else:
                self._idle -= 1
        self._work.put((work, flight))
        if grow:
            Thread(target=self._labour, daemon=True, name="tooli-call").start()

    def _labour(self) -> None:
        while True:
            work, flight = self._work.get()
            copy_context().run(flight.land, work)
            del work, flight  # nothing of a call outlives it
            with self._lock:
                self._idle += 1

    def run_async(self, work: Callable[[], Awaitable[dict[str, Any]]], flight: Flight) -> None:
        """Run a call on the event loop that all async functions of the server share."""
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            Thread(target=self._loop.run_forever, daemon=True, name="tooli-loop").start()
        future = asyncio.run_coroutine_threadsafe(flight.aland(work), self._loop)
        flight.on_cancel = future.cancel
