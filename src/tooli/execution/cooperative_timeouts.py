"""Time limits without a process that can be killed.

On an event loop the task of the call is cancelled at the deadline, and a task that ignores the
cancellation is abandoned. On systems without fork the function runs in a thread. At the deadline
the caller stops waiting, and the function continues in its thread.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from tooli.core.call import Runner
from tooli.execution.timeouts import timeout_error
from tooli.pipeline import async_drivers
from tooli.pipeline.drivers import aclose_stream, invoke, is_async, is_async_stream, is_stream

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
    from typing import Any

    from tooli.core.call import Call

CANCEL_GRACE_SECONDS = 0.3
"""Seconds that a cancelled task has to clean up."""
_abandoned_tasks: set[asyncio.Task[object]] = set()
"""Abandoned tasks. An event loop holds only weak references, so this set keeps them alive."""


async def run_with_timeout(call: Call, timeout: float) -> Any:
    """Run a call with a time limit and return its value, or an async iterator of its items."""
    deadline = asyncio.get_running_loop().time() + timeout
    value = await _await_until(async_drivers.invoke(call), call, timeout, deadline)
    if is_async_stream(value):
        return _stream_until(value, call, timeout, deadline)
    return value


async def _await_until(
    coroutine: Coroutine[object, object, object], call: Call, timeout: float, deadline: float
) -> Any:
    task = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait({task}, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
    except asyncio.CancelledError:  # the caller was cancelled
        await _cancel_task(task, call)
        raise
    if task.done():
        return task.result()
    raise timeout_error(timeout, "task" if await _cancel_task(task, call) else "no task")


async def _cancel_task(task: asyncio.Task[object], call: Call) -> bool:
    """Cancel a task and return True if it ends in time. Otherwise abandon it and add a warning."""
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_GRACE_SECONDS)
    if task.done():
        if not task.cancelled():
            task.exception()  # asyncio logs an exception that nobody retrieves
        return True
    call.warnings.append("the function ignored its cancellation and may still be running")
    _abandoned_tasks.add(task)
    task.add_done_callback(_discard_task)
    return False


def _discard_task(task: asyncio.Task[object]) -> None:
    _abandoned_tasks.discard(task)
    if not task.cancelled():
        task.exception()


async def _stream_until(
    items: AsyncIterator[object], call: Call, timeout: float, deadline: float
) -> AsyncGenerator[object]:
    """Yield the items of a stream; raise a timeout error if it does not end by the deadline.

    A single task reads all items, because context variables and cancel scopes belong to a task.
    """
    item_requested = asyncio.Event()
    produced: asyncio.Queue[object] = asyncio.Queue()
    task = asyncio.ensure_future(_pull_items(items, item_requested, produced))
    get_item: asyncio.Task[object] | None = None
    try:
        while True:
            item_requested.set()
            get_item = asyncio.ensure_future(produced.get())
            remaining = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait(
                {get_item, task}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED
            )
            if not get_item.done():
                await asyncio.sleep(0)  # let get_item take an item that arrived at the end
            if not get_item.done():
                if task.done():
                    task.result()
                    return
                raise timeout_error(
                    timeout, "task" if await _cancel_task(task, call) else "no task"
                )
            yield get_item.result()
    finally:
        if get_item is not None:
            get_item.cancel()
        if not task.done():
            await _cancel_task(task, call)


async def _pull_items(
    items: AsyncIterator[object], item_requested: asyncio.Event, produced: asyncio.Queue[object]
) -> None:
    try:
        while True:
            await item_requested.wait()
            item_requested.clear()
            try:
                item = await items.__anext__()
            except StopAsyncIteration:
                return
            produced.put_nowait(item)
    finally:
        await aclose_stream(items)


# ------------------------------------------------------------------ threads

_END_OF_STREAM = object()


class ThreadRunner(Runner):
    """Runs a function in a thread, which is abandoned at the deadline."""

    def __init__(self, inner: Runner | None, timeout: float) -> None:
        super().__init__(inner)
        self.timeout = timeout

    def run(self, call: Call) -> Any:
        """Run the call and return its value, or an iterator of its items."""
        worker = _WorkerThread(call.replace(runner=self.inner), self.timeout)
        value = worker.run_step()
        if not is_stream(value):
            return value
        stream = _iterate_stream(value, worker)
        next(stream)  # start the generator, so that close() always ends the thread
        return stream

    async def arun(self, call: Call) -> Any:
        """Run the call from an event loop without blocking it."""
        if is_async(call.tool.fn):
            return await run_with_timeout(call.replace(runner=self.inner), self.timeout)
        return await asyncio.to_thread(self.run, call)


class _WorkerThread:
    """A thread that runs a call step by step: the function, then each item of a stream."""

    def __init__(self, call: Call, timeout: float) -> None:
        self.call = call
        self.timeout = timeout
        self.deadline = monotonic() + timeout
        self._steps: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[object, BaseException | None]] = SimpleQueue()
        Thread(target=copy_context().run, args=(self._run_steps,), daemon=True).start()

    def _run_steps(self) -> None:
        step: Callable[[], object] | None = lambda: invoke(self.call)  # noqa: E731
        while step is not None:
            try:
                self._results.put((step(), None))
            except BaseException as exc:
                self._results.put((None, exc))
            step = self._steps.get()

    def run_step(self, step: Callable[[], object] | None = None) -> Any:
        """Run a step and return its value; the first step calls the function."""
        if step is not None:
            self._steps.put(step)
        try:
            value, exc = self._results.get(timeout=max(0.0, self.deadline - monotonic()))
        except Empty:
            if step is None:  # for a stream, _iterate_stream() ends the thread
                self._steps.put(None)
            self.call.warnings.append(
                "the function cannot be stopped on this system and may still be running"
            )
            raise timeout_error(self.timeout, "nothing") from None
        if (exc is not None or step is None) and not is_stream(value):
            self._steps.put(None)
        if exc is not None:
            raise exc
        return value

    def close_stream(self, items: Iterator[object]) -> None:
        """Close a stream in the thread, and end the thread."""
        self._steps.put(getattr(items, "close", None))
        self._steps.put(None)


def _iterate_stream(items: Iterator[object], worker: _WorkerThread) -> Iterator[object]:
    """Yield None, which starts the generator, and then the items of a stream."""
    try:
        yield None
        while (item := worker.run_step(lambda: next(items, _END_OF_STREAM))) is not _END_OF_STREAM:
            yield item
    finally:
        worker.close_stream(items)
