"""The drivers for async code: coroutines run on the loop, other functions in a thread."""

from __future__ import annotations

import asyncio
from _thread import allocate_lock
from contextlib import aclosing

from tooli.pipeline.drivers import (
    Walk,
    aclose_stream,
    collect_items,
    is_async,
    is_async_stream,
    is_awaitable,
    is_partial,
    is_stream,
    read_failures,
    value_outcome,
)
from tooli.pipeline.failure import as_tool_error, with_item_count

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Iterator,
        Mapping,
        Sequence,
    )
    from types import TracebackType
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage
    from tooli.records.record_flow import RecordFlow


class AsyncWalk(Walk):
    """A Walk that runs the work of stages in threads."""

    __slots__ = ()

    async def __aenter__(self) -> AsyncWalk:
        steps = self.enter_stages()
        try:
            work = next(steps)
            while True:
                work = steps.send(await asyncio.to_thread(work.run))
        except StopIteration:
            return self
        except BaseException as exc:  # the call is cancelled: the stages see that
            steps.close()
            self.__exit__(type(exc), exc, exc.__traceback__)
            raise

    async def __aexit__(
        self, kind: object, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.__exit__(kind, exc, trace)


async def run(call: Call, stages: Sequence[Stage]) -> Outcome:
    """Run a call on the event loop and return its outcome. A failure is returned, never raised."""
    async with AsyncWalk(call, stages) as walk:
        if walk.outcome is None:
            value, flow = await invoke(walk.call), walk.call.flow
            if is_async_stream(value):
                value = await _collect_async(_count_items(value, flow))
            elif is_stream(value):
                value = await asyncio.to_thread(
                    collect_items, value if flow is None else flow.process(value)
                )
            walk.outcome = value_outcome(value, walk.call)
    return walk.take_outcome()


async def stream(
    call: Call, stages: Sequence[Stage], outcomes: list[Outcome]
) -> AsyncGenerator[Any]:
    """Run a call and yield the items of its stream; append the outcome to `outcomes`."""
    async with AsyncWalk(call.replace(is_streamed=True), stages) as walk:
        flow = walk.call.flow
        if walk.outcome is None:
            value = await invoke(walk.call)
            source = as_async_stream(value)
            if source is not None:
                async with aclosing(_count_items(source, flow)) as items:
                    async for item in items:
                        yield item
                value = None
            walk.outcome = value_outcome(value, walk.call)
    outcomes.append(walk.take_outcome())


async def invoke(call: Call) -> object:
    """Run the function of a call: a coroutine on the loop, any other function in a thread."""
    if call.runner is not None:
        return await call.runner.arun(call)
    fn = call.tool.fn
    if is_async(fn):
        value = fn(**call.arguments)
    else:
        value = await asyncio.to_thread(call_without_stop_iteration, fn, call.arguments)
    value = await value if is_awaitable(value) else value
    return read_failures(value) if is_partial(value) else value


async def _collect_async(items: AsyncIterator[object]) -> list[object]:
    """Return all items of a stream. If it fails, the exception has those before the failure."""
    collected: list[object] = []
    try:
        async for item in items:
            collected.append(item)  # a failure must not lose the items
    except BaseException as exc:
        if collected:
            vars(exc)["collected_items"] = collected
        raise
    return collected


def call_without_stop_iteration(
    fn: Callable[..., object], arguments: Mapping[str, object]
) -> object:
    """Call a function. Convert StopIteration, which a future cannot raise, to a ToolError."""
    try:
        return fn(**arguments)
    except StopIteration as stop:
        raise as_tool_error(stop) from stop


def as_async_stream(value: object) -> AsyncIterator[object] | None:
    """Return the result of a function as an async stream; None if it is not a stream."""
    if is_async_stream(value):
        return value
    return _iterate_in_threads(value) if is_stream(value) else None


async def _count_items(
    items: AsyncIterator[object], flow: RecordFlow | None
) -> AsyncGenerator[object]:
    """Yield the items of a stream and close it. If it fails, the error has the number of items."""
    count = 0
    results = items if flow is None else flow.aprocess(items)
    try:
        async for item in results:
            yield item
            count += 1
    except Exception as exc:
        raise with_item_count(exc, count) from exc
    finally:
        await aclose_stream(results)


async def _iterate_in_threads(items: Iterator[object]) -> AsyncGenerator[object]:
    """Yield the items of a sync stream. Each item is read in a thread."""
    steps, end = _ThreadSteps(items), object()
    try:
        while (item := await asyncio.to_thread(steps.next_item, end)) is not end:
            yield item
    finally:
        steps.close()


class _ThreadSteps:
    """Reads the items of an iterator in threads. It can be closed while an item is read.

    When a task is cancelled, the thread that reads an item continues. A generator cannot be closed
    while it runs, so the reading thread closes it after the item.
    """

    def __init__(self, items: Iterator[object]) -> None:
        self._items = items
        self._close: Callable[[], object] = getattr(items, "close", lambda: None)
        self._lock = allocate_lock()
        self._is_running = self._is_closed = False

    def next_item(self, end: object) -> object:
        """Return the next item.

        The monitor and `record_dry_action` recognise a thread of the framework by this frame.
        """
        with self._lock:
            if self._is_closed:
                return end
            self._is_running = True
        try:
            return next(self._items, end)
        finally:
            with self._lock:
                self._is_running = False
                must_close = self._is_closed
            if must_close:
                self._close()

    def close(self) -> None:
        """Close the iterator. If it is running, its thread closes it after the current item."""
        with self._lock:
            is_running, self._is_closed = self._is_running, True
        try:
            self._close()
        except ValueError:  # "generator already executing"
            if not is_running:
                raise
