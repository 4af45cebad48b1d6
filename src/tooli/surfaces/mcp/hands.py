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

    Task = tuple[Callable[[], dict[str, Any]], Flight]

MOST = 64
"""How many calls run at the same time; the next one waits."""


class Hands:
    """Runs calls one beside the other. Threads are kept: a new one costs more than a call."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Task | None] = SimpleQueue()
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
            queue = self._work
            queue.put((work, flight))
        if grow:
            Thread(target=self._labour, args=(queue,), daemon=True, name="tooli-call").start()

    def _labour(self, queue: SimpleQueue[Task | None]) -> None:
        while (task := queue.get()) is not None:
            work, flight = task
            copy_context().run(flight.land, work)
            del task, work, flight  # nothing of a call outlives it
            with self._lock:
                if queue is not self._work:
                    return
                self._idle += 1

    def run_async(self, work: Callable[[], Awaitable[dict[str, Any]]], flight: Flight) -> None:
        """Run a call on the event loop that all async functions of the server share."""
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            Thread(target=_turn, args=(self._loop,), daemon=True, name="tooli-loop").start()
        future = asyncio.run_coroutine_threadsafe(flight.aland(work), self._loop)
        flight.on_cancel = future.cancel

    def rest(self) -> None:
        """Let the threads go, each when it has done what it does; the next call has others."""
        with self._lock:
            for _ in range(self._count):
                self._work.put(None)
            self._work, self._idle, self._count = SimpleQueue(), 0, 0
        if self._loop is not None:
            import asyncio

            asyncio.run_coroutine_threadsafe(_end(), self._loop)
            self._loop = None


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end() -> None:
    """Stop the loop that this runs on, once nothing else does."""
    import asyncio

    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
    asyncio.get_running_loop().stop()
