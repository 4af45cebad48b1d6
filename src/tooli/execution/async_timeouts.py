"""Deadlines on an event loop: a coroutine is cancelled; one that does not heed that is left."""

from __future__ import annotations

import asyncio

from tooli.execution.timeouts import timeout_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine
    from typing import Any

    from tooli.core.call import Call

CANCEL_GRACE_SECONDS = 0.3
"""Seconds that a task has to clean up once it is cancelled."""
_abandoned_tasks: set[asyncio.Task[Any]] = set()
"""Tasks that nobody waits for; a loop holds its tasks only weakly."""


async def run_with_timeout(call: Call, timeout: float) -> Any:
    """What the function gives within so many seconds: its value, or a stream of its items."""
    from tooli.pipeline.async_drivers import invoke, is_async_stream

    deadline = asyncio.get_running_loop().time() + timeout
    value = await _await_until(invoke(call), call, timeout, deadline)
    return _stream_until(value, call, timeout, deadline) if is_async_stream(value) else value


async def _await_until(
    coroutine: Coroutine[Any, Any, Any], call: Call, timeout: float, deadline: float
) -> Any:
    task = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait({task}, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
    except asyncio.CancelledError:  # whoever waited has gone
        await _cancel_task(task, call)
        raise
    if task.done():
        return task.result()
    raise timeout_error(timeout, "task" if await _cancel_task(task, call) else "no task")


async def _cancel_task(task: asyncio.Task[Any], call: Call) -> bool:
    """Cancel a task; whether it has ended by that."""
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_GRACE_SECONDS)
    if task.done():
        if not task.cancelled():
            task.exception()  # looked at: nobody else will
        return True
    call.warnings.append("the function did not heed its cancellation: it may still be running")
    _abandoned_tasks.add(task)
    task.add_done_callback(_discard_task)
    return False


def _discard_task(task: asyncio.Task[Any]) -> None:
    _abandoned_tasks.discard(task)
    if not task.cancelled():
        task.exception()


async def _stream_until(
    items: Any, call: Call, timeout: float, deadline: float
) -> AsyncGenerator[Any]:
    """A stream's items, all of them by the deadline.

    One task asks for all of them: what a function holds between two items may be bound to it.
    """
    item_requested = asyncio.Event()
    produced: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.ensure_future(_pull_items(items, item_requested, produced))
    get_item: asyncio.Task[Any] | None = None
    try:
        while True:
            item_requested.set()
            get_item = asyncio.ensure_future(produced.get())
            remaining = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait(
                {get_item, task}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED
            )
            if not get_item.done():
                await asyncio.sleep(0)  # an item and the end may come together
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
    items: Any, item_requested: asyncio.Event, produced: asyncio.Queue[Any]
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
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
