"""Time limits for calls on an event loop.

At the deadline the task is cancelled. A task that ignores the cancellation is abandoned.
"""

from __future__ import annotations

import asyncio

from tooli.execution.timeouts import timeout_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine
    from typing import Any

    from tooli.core.call import Call

CANCEL_GRACE_SECONDS = 0.3
"""Seconds that a cancelled task has to clean up."""
_abandoned_tasks: set[asyncio.Task[Any]] = set()
"""Abandoned tasks. An event loop holds only weak references, so this set keeps them alive."""


async def run_with_timeout(call: Call, timeout: float) -> Any:
    """Run a call with a time limit and return its value, or an async iterator of its items."""
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
    except asyncio.CancelledError:  # the caller was cancelled
        await _cancel_task(task, call)
        raise
    if task.done():
        return task.result()
    raise timeout_error(timeout, "task" if await _cancel_task(task, call) else "no task")


async def _cancel_task(task: asyncio.Task[Any], call: Call) -> bool:
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


def _discard_task(task: asyncio.Task[Any]) -> None:
    _abandoned_tasks.discard(task)
    if not task.cancelled():
        task.exception()


async def _stream_until(
    items: Any, call: Call, timeout: float, deadline: float
) -> AsyncGenerator[Any]:
    """Yield the items of a stream; raise a timeout error if it does not end by the deadline.

    A single task reads all items, because context variables and cancel scopes belong to a task.
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
                await asyncio.sleep(0)  # an item and the end may arrive together
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
