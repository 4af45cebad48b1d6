"""The async drivers: the same walk, awaiting what can be awaited."""

from __future__ import annotations

import asyncio

from tooli.call.model import Ok
from tooli.call.pipeline import Walk, is_stream

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterator,
        Sequence,
    )
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage

_ASYNC_CODE = 0x80 | 0x200


async def run(call: Call, stages: Sequence[Stage]) -> Outcome:
    """The outcome of a call, from inside an event loop."""
    with Walk(call, stages) as walk:
        if walk.outcome is None:
            value = await invoke(walk.call)
            if hasattr(value.__class__, "__anext__"):
                value = [item async for item in _counted(value)]
            elif is_stream(value):
                from tooli.call.pipeline import gather

                value = await asyncio.to_thread(gather, value)
            walk.outcome = Ok(value)
    return walk.end()


async def stream(call: Call, stages: Sequence[Stage], ended: list[Outcome]) -> AsyncGenerator[Any]:
    """Yield what the tool yields; the outcome is put into `ended`."""
    with Walk(call, stages) as walk:
        if walk.outcome is None:
            value = await invoke(walk.call)
            if hasattr(value.__class__, "__anext__"):
                async for item in value:
                    yield item
                value = None
            elif is_stream(value):
                async for item in _in_threads(value):
                    yield item
                value = None
            walk.outcome = Ok(value)
    ended.append(walk.end())


async def invoke(call: Call) -> Any:
    """Run the function: a coroutine on the loop, anything else in a thread."""
    fn = call.tool.fn
    code = getattr(fn, "__code__", None)
    if code is not None and code.co_flags & _ASYNC_CODE:
        value = fn(**call.arguments)
    else:
        value = await asyncio.to_thread(fn, **call.arguments)
    if hasattr(value.__class__, "__await__"):
        return await value
    return value


async def _counted(items: AsyncIterator[Any]) -> AsyncIterator[Any]:
    count = 0
    try:
        async for item in items:
            count += 1
            yield item
    except Exception as exc:
        from tooli.call.failure import after_items

        raise after_items(exc, count) from exc


async def _in_threads(items: Iterator[Any]) -> AsyncIterator[Any]:
    """A sync stream, each step in a thread, so that the loop goes on meanwhile."""
    end = object()
    while (item := await asyncio.to_thread(next, items, end)) is not end:
        yield item


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
        while (
            item := _beside_any_loop(lambda: loop.run_until_complete(following()))
        ) is not end:
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
