"""Patience: waiting for a client, but not for ever."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Awaitable, Coroutine, Generator
    from typing import Any, TypeVar

    T = TypeVar("T")


class Late(Exception):  # noqa: N818  it is the client's fault
    """The client took longer than it may."""


async def within(seconds: float, waiting: Awaitable[T]) -> T:
    """What is waited for, if it comes in time; raises Late if not.

    `asyncio.wait_for` starts a task for it, and a clock; here a first step is tried without
    either, because most of what is waited for (a short body, room to write) is there already.
    """
    if asyncio.iscoroutine(waiting):
        try:
            step = waiting.send(None)
        except StopIteration as here:
            return here.value
        waiting = _Resumed(waiting, step)
    loop = asyncio.get_running_loop()
    task = asyncio.current_task(loop)
    assert task is not None
    rung: list[bool] = []
    alarm = loop.call_later(max(seconds, 0), _ring, task, rung)
    try:
        return await waiting
    except asyncio.CancelledError:
        if not rung:
            raise
        if hasattr(task, "uncancel"):  # Python 3.11 counts: the cancelling was ours alone
            getattr(task, "uncancel")()  # noqa: B009  3.10 has no such name
        raise Late from None
    finally:
        alarm.cancel()


def _ring(task: Task[Any], rung: list[bool]) -> None:
    rung.append(True)
    task.cancel()


class _Resumed:
    """A coroutine that has taken its first step, to be awaited from there."""

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
