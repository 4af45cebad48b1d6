"""ThreadPool: daemon threads that run synchronous functions for a server.

    loop ── await run(work) ──▶ queue ──▶ thread ──▶ done ──▶ loop, woken once for all results
    any thread ── submit(work) ──▶ queue ──▶ thread

`run` limits how much work of one caller is in the queue and in threads. The rest waits until
earlier work of the same caller is done, so that slow calls of one caller leave threads for others.

An event loop uses `run`. Fast functions run fastest in a single thread, so `run` starts more
threads, up to the size of the pool, only if more work waits than was completed within
GROW_INTERVAL. A server without an event loop uses `submit`, which starts a thread as soon as none
is idle. Threads are daemons: a function that never returns does not keep the process alive.

`asyncio` is imported inside functions: the stdio MCP server starts without it.
"""

from __future__ import annotations

from collections import Counter, deque
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread

TYPE_CHECKING = False

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable, Coroutine
    from contextvars import Context
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")
    Job: TypeAlias = tuple[Callable[[], object], Context, Future[Any] | None, str]
    JobQueue: TypeAlias = SimpleQueue[Job | None]

GROW_INTERVAL = 0.005
"""Seconds between two checks for waiting work that needs more threads."""


class ThreadPool:
    """A pool that starts threads on demand. Use either `run` or `submit` with a pool, not both."""

    def __init__(self, size: int, name: str = "tooli", *, share: int | None = None) -> None:
        self.size = size
        self._name = name
        self._share = size if share is None else share  # threads that one caller may use
        self._started: Counter[str] = Counter()  # queued and running work of each caller
        self._waiting: dict[str, dict[Future[Any], Job]] = {}  # callers who use their whole share
        self._abandoned: Counter[str] = Counter()
        self.on_abandoned_end: Callable[[str], None] | None = None  # called on the event loop
        self._queue: JobQueue = SimpleQueue()
        self._lock = Lock()
        self._thread_count = 0
        self._in_progress = 0
        self._loop: AbstractEventLoop | None = None
        self._done: deque[tuple[Future[Any], str, object, BaseException | None]] = deque()
        self._is_wakeup_scheduled = False
        self._completed = 0
        self._is_grow_scheduled = False

    def submit(self, work: Callable[[], object]) -> None:
        """Run work in a thread. It must not raise: nobody waits for its result."""
        with self._lock:
            if self._in_progress >= self._thread_count < self.size:
                self._start_threads(1)
            self._in_progress += 1
            self._queue.put((work, copy_context(), None, ""))

    async def run(self, work: Callable[[], T], caller: str = "") -> T:
        """Run work in a thread; return its result or raise its exception.

        `caller` is the key of the caller whose share of the threads is used.
        """
        import asyncio

        future = self._start(work, caller)
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():  # the caller was cancelled; the work did not raise this itself
                self._abandon(future, caller)
            raise

    def start(self, work: Callable[[], T], caller: str = "") -> Future[T]:
        """Run work in a thread; return the future of its result. It can be cancelled.

        It needs two iterations of the event loop less than a task for `run`.
        """
        future = self._start(work, caller)
        future.add_done_callback(partial(self._abandon_cancelled, caller))
        return future

    def _start(self, work: Callable[[], T], caller: str) -> Future[T]:
        import asyncio

        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._switch_loop(loop)
        future: Future[T] = loop.create_future()
        if self._thread_count == 0:
            self._start_threads(1)
        job: Job = (work, copy_context(), future, caller)
        if self._started[caller] < self._share:
            self._started[caller] += 1
            self._enqueue(job, loop)
        else:
            self._waiting.setdefault(caller, {})[future] = job
        return future

    def _abandon_cancelled(self, caller: str, future: Future[Any]) -> None:
        if future.cancelled():
            self._abandon(future, caller)

    @property
    def abandoned(self) -> int:
        """The amount of queued and running work whose caller was cancelled."""
        return self._abandoned.total() if self._abandoned else 0

    def abandoned_by(self, caller: str) -> int:
        """Return the amount of queued and running work of a caller that was cancelled."""
        return self._abandoned[caller]

    def shut_down(self) -> None:
        """Stop the threads once the queued work is done. Later work starts new threads."""
        with self._lock:
            for _ in range(self._thread_count):
                self._queue.put(None)
            self._queue = SimpleQueue()
            self._thread_count = 0
            if self._loop is None:
                self._in_progress = 0

    # -------------------------------------------------------------- threads

    def _start_threads(self, count: int) -> None:
        """Start threads. Raises a RuntimeError if no thread can be started and none is running."""
        for _ in range(count):
            thread = Thread(target=self._run_worker, args=(self._queue,), name=self._name)
            thread.daemon = True
            try:
                thread.start()
            except RuntimeError:  # the work waits for the running threads
                if self._thread_count == 0:
                    raise
                return
            self._thread_count += 1

    def _run_worker(self, queue: JobQueue) -> None:
        while (job := queue.get()) is not None:
            work, context, future, caller = job
            if future is None:
                context.run(work)
            else:
                self._run_for_loop(work, context, future, caller)
            del job, work, context  # a call's values are freed before the thread waits again
            if future is None:
                with self._lock:
                    if queue is self._queue:  # a shutdown replaces the queue and resets the count
                        self._in_progress -= 1
            del future

    def _run_for_loop(
        self, work: Callable[[], object], context: Context, future: Future[Any], caller: str
    ) -> None:
        try:  # work whose caller was cancelled is not started
            result = context.run(work) if not future.cancelled() else None
            self._done.append((future, caller, result, None))
        except BaseException as exc:
            self._done.append((future, caller, None, exc))
        if not self._is_wakeup_scheduled and self._loop is not None:
            self._is_wakeup_scheduled = True
            try:
                self._loop.call_soon_threadsafe(self._deliver_results)
            except RuntimeError:  # the loop is closed: nobody waits for results
                self._is_wakeup_scheduled = False

    # -------------------------------------------------------------- the event loop

    def _switch_loop(self, loop: AbstractEventLoop) -> None:
        """Serve another event loop. Results for a loop that has ended are dropped."""
        if self._loop is not None and self._loop.is_running():
            raise RuntimeError("a ThreadPool works for one event loop at a time")
        self._loop = loop
        self._is_wakeup_scheduled = self._is_grow_scheduled = False
        self._in_progress = 0
        for work in (self._done, self._started, self._waiting, self._abandoned):
            work.clear()

    def _enqueue(self, job: Job, loop: AbstractEventLoop) -> None:
        self._in_progress += 1
        if self._in_progress > self._thread_count and not self._is_grow_scheduled:
            self._is_grow_scheduled = True
            loop.call_later(GROW_INTERVAL, self._grow_if_needed, self._completed)
        self._queue.put(job)

    def _abandon(self, future: Future[Any], caller: str) -> None:
        """Forget waiting work. Work that may be running already counts until it is done."""
        if self._waiting.get(caller, {}).pop(future, None) is None:
            _add(self._abandoned, caller, 1)

    def _release(self, caller: str, loop: AbstractEventLoop) -> None:
        """Start the next work of a caller whose work is done, or free its part of the share."""
        waiting = self._waiting.get(caller)
        if waiting:
            self._enqueue(waiting.pop(next(iter(waiting))), loop)
        else:
            self._waiting.pop(caller, None)
            _add(self._started, caller, -1)

    def _grow_if_needed(self, completed_before: int) -> None:
        """Start threads if more work waits than was completed since the last check."""
        waiting = self._queue.qsize()
        if waiting > self._completed - completed_before:
            self._start_threads(min(waiting, self.size - self._thread_count))
        self._is_grow_scheduled = waiting > 0 and self._thread_count < self.size
        if self._is_grow_scheduled and self._loop is not None:
            self._loop.call_later(GROW_INTERVAL, self._grow_if_needed, self._completed)

    def _deliver_results(self) -> None:
        self._is_wakeup_scheduled = False  # set first, so that later results wake the loop again
        while self._done:
            future, caller, result, exc = self._done.popleft()
            loop = future.get_loop()
            if loop is not self._loop:
                continue  # that loop has ended
            self._in_progress -= 1
            self._completed += 1
            self._release(caller, loop)
            if future.cancelled():
                _add(self._abandoned, caller, -1)
                if self.on_abandoned_end is not None:
                    self.on_abandoned_end(caller)
            elif exc is None:
                future.set_result(result)
            else:
                future.set_exception(exc)


def _add(counts: Counter[str], caller: str, change: int) -> None:
    """Change the count of a caller. A count of 0 is removed."""
    count = counts[caller] + change
    if count:
        counts[caller] = count
    else:
        counts.pop(caller, None)


class EventLoopThread:
    """An event loop in a thread, for the async functions of a server that has no loop itself.

    The loop starts with the first coroutine.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, coroutine: Coroutine[object, None, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the loop; return the future of its result."""
        import asyncio

        if self._loop is None:
            loop = asyncio.new_event_loop()
            try:
                Thread(target=_run_loop, args=(loop,), daemon=True, name="tooli-loop").start()
            except RuntimeError:  # the system cannot start more threads
                loop.close()
                coroutine.close()
                raise
            self._loop = loop
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def shut_down(self) -> None:
        """Stop the loop once all its tasks are done. A later coroutine starts a new loop."""
        if self._loop is not None:
            self.submit(_stop_when_idle())
            self._loop = None


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _stop_when_idle() -> None:
    """Stop the loop that this coroutine runs on when no other task is left on it."""
    import asyncio

    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
    asyncio.get_running_loop().stop()
