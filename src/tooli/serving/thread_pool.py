"""Crew: a few threads that run sync functions, so that the event loop goes on meanwhile.

    loop ── put ──▶ queue ──▶ thread ──▶ done ──▶ loop, woken once for all that is done by then

One thread does for quick functions, and costs the least. Work that has to wait for longer
than a moment gets more threads, up to the size of the crew. They are daemons: a function
that never ends does not keep the process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable
    from contextvars import Context
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")
    Job: TypeAlias = tuple[Callable[[], Any], Context, Future[Any]]

GROW_INTERVAL = 0.005
"""Seconds after which it is looked whether work that waits will have its turn as soon again."""


class ThreadPool:
    """Threads for one event loop at a time; made as they are needed."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.abandoned = 0  # work that nobody waits for any more, and that is not done yet
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._done: deque[tuple[Future[Any], Any, BaseException | None]] = deque()
        self._loop: AbstractEventLoop | None = None
        self._is_wakeup_scheduled = False
        self._thread_count = 0
        self._in_progress = 0
        self._completed = 0
        self._is_grow_scheduled = False

    async def run(self, work: Callable[[], T]) -> T:
        """What the work returns or raises, once a thread has done it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._switch_loop(loop)
        future: Future[T] = loop.create_future()
        self._in_progress += 1
        if self._thread_count == 0:
            self._start_threads(1)
        elif self._in_progress > self._thread_count and not self._is_grow_scheduled:
            self._is_grow_scheduled = True
            loop.call_later(GROW_INTERVAL, self._grow_if_needed, self._completed)
        self._jobs.put((work, copy_context(), future))
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():  # who waited was cancelled, and not the work from within
                self.abandoned += 1
            raise

    def _switch_loop(self, loop: AbstractEventLoop) -> None:
        """Serve another loop; one that has ended left whatever it waited for."""
        if self._loop is not None and self._loop.is_running():
            raise RuntimeError("a crew works for one event loop at a time")
        self._loop = loop
        self._is_wakeup_scheduled = self._is_grow_scheduled = False
        self._in_progress = self.abandoned = 0
        self._done.clear()

    def _grow_if_needed(self, completed_before: int) -> None:
        """Start threads where more waits than was done since the last look."""
        waiting = self._jobs.qsize()
        if waiting > self._completed - completed_before:
            self._start_threads(min(waiting, self.size - self._thread_count))
        self._is_grow_scheduled = waiting > 0 and self._thread_count < self.size
        if self._is_grow_scheduled and self._loop is not None:
            self._loop.call_later(GROW_INTERVAL, self._grow_if_needed, self._completed)

    def _start_threads(self, count: int) -> None:
        for _ in range(count):
            self._thread_count += 1
            Thread(target=self._run_worker, name="tooli", daemon=True).start()

    def _run_worker(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, context, future = job
            try:  # what nobody waits for any more is not begun
                result = context.run(work) if not future.cancelled() else None
                self._done.append((future, result, None))
                del result
            except BaseException as exc:
                self._done.append((future, None, exc))
            del job, work, context, future  # what a call held is let go before the next one comes
            if not self._is_wakeup_scheduled and self._loop is not None:
                self._is_wakeup_scheduled = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver_results)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    self._is_wakeup_scheduled = False

    def _deliver_results(self) -> None:
        self._is_wakeup_scheduled = False  # first: what is done from now on wakes the loop again
        while self._done:
            future, result, exc = self._done.popleft()
            if future.get_loop() is not self._loop:
                continue  # that loop has ended
            self._in_progress -= 1
            self._completed += 1
            if future.cancelled():
                self.abandoned -= 1
            elif exc is None:
                future.set_result(result)
            else:
                future.set_exception(exc)

    def shut_down(self) -> None:
        """Send the threads home, each after the work that it has."""
        for _ in range(self._thread_count):
            self._jobs.put(None)
        self._thread_count = 0
