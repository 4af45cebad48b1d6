from __future__ import annotations

import asyncio
from contextvars import ContextVar
from threading import Event, current_thread

import pytest

from tooli.execution.daemon_thread import call_in_daemon_thread

NAME: ContextVar[str] = ContextVar("NAME", default="none")


def describe(text: str) -> tuple[str, str, bool]:
    return text, NAME.get(), current_thread().daemon


def fail(text: str) -> None:
    raise ValueError(text)


async def test_the_result_and_the_context_of_the_caller() -> None:
    NAME.set("ada")
    assert await call_in_daemon_thread(describe, "a") == ("a", "ada", True)


async def test_an_exception_is_raised() -> None:
    with pytest.raises(ValueError, match="wrong"):
        await call_in_daemon_thread(fail, "wrong")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_call_is_abandoned(fails: bool) -> None:
    started, may_end, has_ended = Event(), Event(), Event()

    def block(_: None) -> None:
        started.set()
        may_end.wait()
        has_ended.set()
        if fails:
            raise ValueError

    task = asyncio.ensure_future(call_in_daemon_thread(block, None))
    await asyncio.to_thread(started.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    await asyncio.to_thread(has_ended.wait)


def test_a_closed_loop_is_no_error() -> None:
    started, may_end = Event(), Event()
    threads = []

    def block(_: None) -> None:
        threads.append(current_thread())
        started.set()
        may_end.wait()

    async def abandon() -> None:
        task = asyncio.ensure_future(call_in_daemon_thread(block, None))
        await asyncio.to_thread(started.wait)
        task.cancel()

    asyncio.run(abandon())
    may_end.set()
    threads[0].join()
