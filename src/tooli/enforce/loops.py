"""Deadlines on an event loop: a coroutine is cancelled; one that does not heed that is left."""

from __future__ import annotations

import asyncio

from tooli.enforce.deadlines import timed_out

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine
    from typing import Any

    from tooli.call.model import Call

GRACE = 0.3
"""Seconds that a task has to clean up once it is cancelled."""
_left: set[asyncio.Task[Any]] = set()
"""Tasks that nobody waits for; a loop holds its tasks only weakly."""


async def hold(call: Call, seconds: float) -> Any:
    """What the function gives within so many seconds: its value, or a stream of its items."""
    from tooli.call.aio import invoke, is_async_stream

    until = asyncio.get_running_loop().time() + seconds
    value = await _within(invoke(call), call, seconds, until)
    return _items(value, call, seconds, until) if is_async_stream(value) else value


async def _within(work: Coroutine[Any, Any, Any], call: Call, seconds: float, until: float) -> Any:
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=max(0.0, until - asyncio.get_running_loop().time()))
    except asyncio.CancelledError:  # whoever waited has gone
        await _stop(task, call)
        raise
    if task.done():
        return task.result()
    raise timed_out(seconds, "task" if await _stop(task, call) else "no task")


async def _stop(task: asyncio.Task[Any], call: Call) -> bool:
    """Cancel a task; whether it has ended by that."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE)
    if task.done():
        if not task.cancelled():
            task.exception()  # looked at: nobody else will
        return True
    call.warnings.append("the function did not heed its cancellation: it may still be running")
    _left.add(task)
    task.add_done_callback(_forget)
    return False


def _forget(task: asyncio.Task[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()


async def _items(items: Any, call: Call, seconds: float, until: float) -> AsyncGenerator[Any]:
    """A stream's items, all of them by the deadline.

    One task asks for all of them: what a function holds between two items may be bound to it.
    """
    wanted = asyncio.Event()
    given: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.ensure_future(_draw(items, wanted, given))
    step: asyncio.Task[Any] | None = None
    try:
        while True:
            wanted.set()
            step = asyncio.ensure_future(given.get())
            left = max(0.0, until - asyncio.get_running_loop().time())
            await asyncio.wait({step, task}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                await asyncio.sleep(0)  # an item and the end may come together
            if not step.done():
                if task.done():
                    task.result()
                    return
                raise timed_out(seconds, "task" if await _stop(task, call) else "no task")
            yield step.result()
    finally:
        if step is not None:
            step.cancel()
        if not task.done():
            await _stop(task, call)


async def _draw(items: Any, wanted: asyncio.Event, given: asyncio.Queue[Any]) -> None:
    try:
        while True:
            await wanted.wait()
            wanted.clear()
            try:
                item = await items.__anext__()
            except StopAsyncIteration:
                return
            given.put_nowait(item)
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
