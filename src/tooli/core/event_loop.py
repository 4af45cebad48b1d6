"""Run coroutines and async streams from sync code.

Importing asyncio takes longer than an ordinary call, so it is imported where it is used.
"""

from __future__ import annotations

from tooli.core import find_loaded

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from typing import TypeVar

    T = TypeVar("T")


def is_in_event_loop() -> bool:
    """True if an event loop runs in this thread, so that waiting here would block its tasks."""
    get_running_loop = find_loaded("asyncio.events", "_get_running_loop")
    return get_running_loop is not None and get_running_loop() is not None


def run_awaitable(awaitable: Awaitable[T]) -> T:
    """Await an awaitable from sync code, even if an event loop runs in this thread."""
    import asyncio

    async def wait() -> T:
        return await awaitable

    return _run_outside_loop(lambda: asyncio.run(wait()))


def iterate_async(items: AsyncIterator[T]) -> Iterator[T]:
    """Iterate over an async stream from sync code, in an event loop of its own."""
    import asyncio

    loop = asyncio.new_event_loop()

    async def next_item() -> tuple[T] | None:
        try:
            return (await items.__anext__(),)
        except StopAsyncIteration:
            return None

    async def close_stream() -> None:
        # After a KeyboardInterrupt, the task of the interrupted step is still pending.
        pending_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending_tasks:
            task.cancel()
        await asyncio.gather(*pending_tasks, return_exceptions=True)
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
        await loop.shutdown_asyncgens()

    try:
        while found := _run_outside_loop(lambda: loop.run_until_complete(next_item())):
            yield found[0]
    finally:
        _run_outside_loop(lambda: loop.run_until_complete(close_stream()))
        loop.close()


def _run_outside_loop(function: Callable[[], T]) -> T:
    """Call a function here, or in another thread if an event loop runs in this one."""
    if not is_in_event_loop():
        return function()
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, function).result()
