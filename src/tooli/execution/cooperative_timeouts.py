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
from tooli.core.event_loop import iterate_async, run_awaitable
from tooli.core.stop_signal import StopSignal
from tooli.errors import TimeoutExceeded
from tooli.execution.timeouts import timeout_error
from tooli.pipeline import async_drivers
from tooli.pipeline.context import replace_context
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


class _Exited(Exception):  # noqa: N818
    """Carries a SystemExit out of a task. asyncio would end the event loop, and so the server."""

    def __init__(self, exit_request: SystemExit) -> None:
        super().__init__()
        self.exit_request = exit_request


async def _carry_exit(coroutine: Coroutine[object, object, Any]) -> Any:
    try:
        return await coroutine
    except SystemExit as exit_request:
        raise _Exited(exit_request) from None


def _take_result(task: asyncio.Task[Any]) -> Any:
    """Return the result of a task that has ended, or raise its exception."""
    try:
        return task.result()
    except _Exited as exited:
        raise exited.exit_request from None


async def _await_until(
    coroutine: Coroutine[object, object, object], call: Call, timeout: float, deadline: float
) -> Any:
    task = asyncio.ensure_future(_carry_exit(coroutine))
    try:
        await asyncio.wait({task}, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
        if not task.done() and call.stop is not None and call.stop.grace:
            await asyncio.wait({task}, timeout=call.stop.grace)
    except asyncio.CancelledError:  # the caller was cancelled
        await _cancel_task(task, call)
        raise
    if task.done():
        return _take_result(task)
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
    task = asyncio.ensure_future(_carry_exit(_pull_items(items, item_requested, produced)))
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
                    _take_result(task)
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

    def __init__(self, inner: Runner | None, timeout: float, grace: float = 0.0) -> None:
        super().__init__(inner)
        self.timeout = timeout
        self._grace = grace  # seconds after the deadline in which the function may stop itself

    def run(self, call: Call) -> Any:
        """Run the call and return its value, or an iterator of its items."""
        worker = _WorkerThread(call.replace(runner=self.inner), self.timeout, self._grace)
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

    def __init__(self, call: Call, timeout: float, grace: float) -> None:
        self.call = call
        self.timeout = timeout
        self.deadline = monotonic() + timeout + grace
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
                "the function did not stop at the deadline and may still be running"
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


# ------------------------------------------------------------------ functions that stop themselves

STOP_GRACE_SECONDS = 2.0
"""Seconds after the deadline in which a function that stops itself has to end."""


class SelfStoppingRunner(Runner):
    """Runs a function that stops itself: it is told the deadline, and when to stop.

    A coroutine is cancelled at the deadline, or after the grace that it asks for. Any other
    function runs in a thread if there is a deadline. The caller waits a little longer than the
    deadline, and then abandons the thread.
    """

    def __init__(self, inner: Runner | None, timeout: float | None) -> None:
        super().__init__(inner)
        self.timeout = timeout

    def run(self, call: Call) -> Any:
        """Run the call and return its value, or an iterator of its items."""
        stop, call = self._with_stop(call)
        try:
            if self.timeout is None:
                value: Any = invoke(call)
            elif is_async(call.tool.fn):
                value = run_awaitable(run_with_timeout(call, self.timeout))
                value = iterate_async(value) if is_async_stream(value) else value
            else:
                value = ThreadRunner(None, self.timeout, STOP_GRACE_SECONDS).run(call)
        except BaseException as exc:
            raise self._ended_with(stop, exc) from exc
        return self._stop_stream(value, stop) if is_stream(value) else self._end(value, stop)

    async def arun(self, call: Call) -> Any:
        """Run the call on an event loop; a function that is not async runs in a thread."""
        stop, call = self._with_stop(call)
        try:
            if self.timeout is not None and is_async(call.tool.fn):
                value = await run_with_timeout(call, self.timeout)
            elif self.timeout is not None:
                runner = ThreadRunner(None, self.timeout, STOP_GRACE_SECONDS)
                value = await asyncio.to_thread(runner.run, call)
            else:
                value = await async_drivers.invoke(call)
        except BaseException as exc:
            raise self._ended_with(stop, exc) from exc
        return self._stop_stream(value, stop) if is_stream(value) else self._end(value, stop)

    def _with_stop(self, call: Call) -> tuple[StopSignal, Call]:
        """Return the signal, and the call whose Context knows it."""
        stop = StopSignal(self.timeout, call.peer)
        arguments = replace_context(call.arguments, stop=stop)
        return stop, call.replace(runner=self.inner, stop=stop, arguments=arguments)

    def _end(self, value: object, stop: StopSignal) -> Any:
        stop.end()
        if stop.is_stopped and self.timeout is not None and stop.remaining_time() == 0:
            raise timeout_error(self.timeout, "call")  # what it waited for was ended
        return value

    def _stop_stream(self, items: Iterator[object], stop: StopSignal) -> Iterator[object]:
        try:
            yield from items
        except BaseException as exc:
            raise self._ended_with(stop, exc) from exc
        finally:
            stop.end()

    def _ended_with(self, stop: StopSignal, exc: BaseException) -> BaseException:
        """Return the error of the call: after the deadline, any failure is a timeout."""
        has_expired = stop.remaining_time() == 0
        stop.stop()
        if has_expired and self.timeout is not None and isinstance(exc, Exception):
            return exc if isinstance(exc, TimeoutExceeded) else timeout_error(self.timeout, "call")
        return exc
