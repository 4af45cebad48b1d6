"""Time limits on an event loop and in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import PYTHON_CALLER, Call
from tooli.errors import TimeoutExceeded
from tooli.execution.cooperative_timeouts import ThreadRunner, run_with_timeout

LIMIT = 60.0


def call_of(fn: Any) -> Call:
    app = Tooli("app")
    app.command("work")(fn)
    (tool,) = app.catalog
    return Call(tool, {}, PYTHON_CALLER, [])


async def test_value_within_the_limit() -> None:
    async def work() -> int:
        return 1

    assert await run_with_timeout(call_of(work), LIMIT) == 1


async def test_items_within_the_limit() -> None:
    async def work() -> AsyncIterator[int]:
        yield 1
        yield 2

    items = await run_with_timeout(call_of(work), LIMIT)
    assert [item async for item in items] == [1, 2]


async def test_task_is_cancelled_at_the_deadline() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    with pytest.raises(TimeoutExceeded) as caught:
        await run_with_timeout(call_of(work), 0.05)
    assert ended == ["cleaned up"]
    assert caught.value.details["stopped"] == "task"


async def test_task_that_ignores_its_cancellation_is_abandoned() -> None:
    release = asyncio.Event()

    async def work() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                pass

    call = call_of(work)
    with pytest.raises(TimeoutExceeded) as caught:
        await run_with_timeout(call, 0.05)
    release.set()
    assert caught.value.details["stopped"] == "no task"
    assert call.warnings == ["the function ignored its cancellation and may still be running"]


async def test_stream_that_stops_yielding_is_cancelled() -> None:
    ended: list[str] = []

    async def work() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    received: list[int] = []
    items = await run_with_timeout(call_of(work), 0.2)
    with pytest.raises(TimeoutExceeded):
        async for item in items:
            received.append(item)
    assert (received, ended) == ([1], ["cleaned up"])


def test_thread_returns_its_value_and_its_items() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2

    assert ThreadRunner(None, LIMIT).run(call_of(lambda: 1)) == 1
    assert list(ThreadRunner(None, LIMIT).run(call_of(items))) == [1, 2]


def test_stream_is_closed_in_its_thread() -> None:
    closed = threading.Event()
    threads: list[int] = []

    def work() -> Iterator[int]:
        threads.append(threading.get_ident())
        try:
            yield 1
        finally:
            threads.append(threading.get_ident())
            closed.set()

    items = ThreadRunner(None, LIMIT).run(call_of(work))
    assert next(items) == 1
    items.close()
    assert closed.wait(60)
    assert threads[0] == threads[1] != threading.get_ident()


def test_error_of_the_thread_is_raised() -> None:
    def work() -> None:
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        ThreadRunner(None, LIMIT).run(call_of(work))


def test_thread_is_abandoned_at_the_deadline() -> None:
    release = threading.Event()
    call = call_of(lambda: release.wait(60))
    with pytest.raises(TimeoutExceeded) as caught:
        ThreadRunner(None, 0.05).run(call)
    release.set()
    assert caught.value.details["stopped"] == "nothing"
    assert call.warnings == [
        "the function cannot be stopped on this system and may still be running"
    ]


async def test_async_function_is_cancelled_and_sync_function_runs_in_a_thread() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutExceeded):
        await ThreadRunner(None, 0.05).arun(call_of(hang))
    ident = await ThreadRunner(None, LIMIT).arun(call_of(lambda: threading.get_ident()))
    assert ident != threading.get_ident()
