"""Timeouts for waiting on a client."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Awaitable, Coroutine, Generator
    from typing import Any, TypeVar

    T = TypeVar("T")


class ClientTimeout(Exception):  # noqa: N818  a slow client is not an error of ours
    """The client took too long."""


async def wait_with_timeout(seconds: float, awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable; raise ClientTimeout if it takes longer than `seconds`.

    `asyncio.wait_for` starts a task and a timer. This function first runs a coroutine up to its
    first suspension without either. A read of a short body and a write to a free buffer end there.
    """
    if asyncio.iscoroutine(awaitable):
        try:
            step = awaitable.send(None)
        except StopIteration as stop:
            return stop.value
        awaitable = _ResumedCoroutine(awaitable, step)
    loop = asyncio.get_running_loop()
    task = asyncio.current_task(loop)
    assert task is not None
    expired: list[bool] = []
    timer = loop.call_later(max(seconds, 0), _expire, task, expired)
    try:
        return await awaitable
    except asyncio.CancelledError:
        if not expired:
            raise
        if hasattr(task, "uncancel"):  # Python 3.11 counts cancellations; this one was ours
            getattr(task, "uncancel")()  # noqa: B009  Python 3.10 does not have it
        raise ClientTimeout from None
    finally:
        timer.cancel()


def _expire(task: Task[Any], expired: list[bool]) -> None:
    expired.append(True)
    task.cancel()


class _ResumedCoroutine:
    """A coroutine that has run up to its first suspension; awaiting it continues from there."""

    __slots__ = ("_coroutine", "_step")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], step: Any) -> None:
        self._coroutine = coroutine
        self._step = step

    def __await__(self) -> Generator[Any, Any, Any]:
        step, resume = self._step, self._coroutine
        try:
            while True:
                try:
                    sent = yield step
                except BaseException as thrown:
                    step = resume.throw(thrown)
                else:
                    step = resume.send(sent)
        except StopIteration as end:
            return end.value
