"""The async drivers: the same walk, awaiting what can be awaited."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from tooli.call.model import Ok
from tooli.call.pipeline import Walk, gather, is_async, is_stream

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterator,
        Mapping,
        Sequence,
    )
    from typing import Any

    from tooli.call.flow import Flow
    from tooli.call.model import Call, Outcome, Stage


async def run(call: Call, stages: Sequence[Stage]) -> Outcome:
    """The outcome of a call, from inside an event loop."""
    with Walk(call, stages) as walk:
        if walk.outcome is None:
            value, flow = await invoke(walk.call), walk.call.flow
            if is_async_stream(value):
                value = [item async for item in _counted(value, flow)]
            elif is_stream(value):
                value = await asyncio.to_thread(gather, value if flow is None else flow.sift(value))
            walk.outcome = Ok(value)
    return walk.end()


async def stream(call: Call, stages: Sequence[Stage], ended: list[Outcome]) -> AsyncGenerator[Any]:
    """Yield what the tool yields; the outcome is put into `ended`."""
    with Walk(call, stages) as walk:
        flow = walk.call.flow
        if flow is not None:
            flow.lines = True
        if walk.outcome is None:
            value = await invoke(walk.call)
            if is_async_stream(value) or is_stream(value):
                async with aclosing(_counted(value, flow)) as items:
                    async for item in items:
                        yield item
                value = None
            walk.outcome = Ok(value)
    ended.append(walk.end())


async def invoke(call: Call) -> Any:
    """Run the function: a coroutine on the loop, anything else in a thread."""
    if call.runner is not None:
        return await call.runner.arun(call)
    fn = call.tool.fn
    if is_async(fn):
        value = fn(**call.arguments)
    else:
        value = await asyncio.to_thread(without_stop, fn, call.arguments)
    if hasattr(value.__class__, "__await__"):
        return await value
    return value


def without_stop(fn: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a function; a StopIteration, which no future can carry, leaves as an error of ours."""
    try:
        return fn(**arguments)
    except StopIteration as stop:
        from tooli.call.failure import as_tool_error

        raise as_tool_error(stop) from stop


def is_async_stream(value: Any) -> bool:
    """Whether a tool gives its result piece by piece, to be awaited."""
    return hasattr(value.__class__, "__anext__")


async def _counted(items: Any, flow: Flow | None) -> AsyncGenerator[Any]:
    """A stream's items; a failure on the way says how many there were; the stream is closed."""
    count = 0
    steps = items if is_async_stream(items) else _in_threads(items)
    steps = steps if flow is None else flow.asift(steps)
    try:
        async for item in steps:
            yield item
            count += 1
    except Exception as exc:
        from tooli.call.failure import after_items

        raise after_items(exc, count) from exc
    finally:
        close = getattr(steps, "aclose", None)
        if close is not None:
            await close()


async def _in_threads(items: Iterator[Any]) -> AsyncGenerator[Any]:
    """A sync stream, each step in a thread, so that the loop goes on meanwhile."""
    end = object()
    try:
        while (item := await asyncio.to_thread(_step, items, end)) is not end:
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _step(items: Iterator[Any], end: object) -> Any:
    """The next item. Not `next` itself: this frame says that the thread works for a call."""
    return next(items, end)


# ------------------------------------------------------------------ from sync code


def finish(awaitable: Awaitable[Any]) -> Any:
    """Run a coroutine to its end from sync code, beside a running loop if there is one."""

    async def outcome() -> Any:
        return await awaitable

    return _beside_any_loop(lambda: asyncio.run(outcome()))


def iterate(items: AsyncIterator[Any]) -> Iterator[Any]:
    """An async stream, item by item, from sync code."""
    loop = asyncio.new_event_loop()
    end = object()

    async def following() -> Any:
        try:
            return await items.__anext__()
        except StopAsyncIteration:
            return end

    async def closing() -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}  # an interrupt leaves its step behind
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
        await loop.shutdown_asyncgens()

    try:
        while (item := _beside_any_loop(lambda: loop.run_until_complete(following()))) is not end:
            yield item
    finally:
        _beside_any_loop(lambda: loop.run_until_complete(closing()))
        loop.close()


def _beside_any_loop(work: Callable[[], Any]) -> Any:
    """Do the work here, or in a thread where this one has a running loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, work).result()
