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

    from tooli.mcp.pending_requests import PendingRequest

    Task = tuple[Callable[[], dict[str, Any]], PendingRequest]

MAX_THREADS = 64
"""How many calls run at the same time; the next one waits."""


class RequestThreadPool:
    """Runs calls one beside the other. Threads are kept: a new one costs more than a call."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = Lock()
        self._idle_threads = 0
        self._thread_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Callable[[], dict[str, Any]], request: PendingRequest) -> None:
        """Run a call in a thread."""
        with self._lock:
            needs_thread = self._idle_threads == 0 and self._thread_count < MAX_THREADS
            if needs_thread:
                self._thread_count += 1
            else:
                self._idle_threads -= 1
            queue = self._queue
            queue.put((work, request))
        if needs_thread:
            Thread(target=self._run_worker, args=(queue,), daemon=True, name="tooli-call").start()

    def _run_worker(self, queue: SimpleQueue[Task | None]) -> None:
        while (task := queue.get()) is not None:
            work, request = task
            copy_context().run(request.run_and_reply, work)
            del task, work, request  # nothing of a call outlives it
            with self._lock:
                if queue is not self._queue:
                    return
                self._idle_threads += 1

    def run_async(
        self, work: Callable[[], Awaitable[dict[str, Any]]], request: PendingRequest
    ) -> None:
        """Run a call on the event loop that all async functions of the server share."""
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            Thread(target=_run_loop, args=(self._loop,), daemon=True, name="tooli-loop").start()
        future = asyncio.run_coroutine_threadsafe(request.run_and_reply_async(work), self._loop)
        request.on_cancel = future.cancel

    def shut_down(self) -> None:
        """Let the threads go, each when it has done what it does; the next call has others."""
        with self._lock:
            for _ in range(self._thread_count):
                self._queue.put(None)
            self._queue, self._idle_threads, self._thread_count = SimpleQueue(), 0, 0
        if self._loop is not None:
            import asyncio

            asyncio.run_coroutine_threadsafe(_stop_when_idle(), self._loop)
            self._loop = None


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _stop_when_idle() -> None:
    """Stop the loop that this runs on, once nothing else does."""
    import asyncio

    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
    asyncio.get_running_loop().stop()
