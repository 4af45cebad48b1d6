"""Time limits on an event loop and in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.execution.calls import make_call

from tooli import Context
from tooli.core.call import Call
from tooli.core.peer import Peer
from tooli.errors import TimeoutExceeded
from tooli.execution import cooperative_timeouts
from tooli.execution.cooperative_timeouts import (
    SelfStoppingRunner,
    ThreadRunner,
    run_with_timeout,
)
from tooli.pipeline.context import call_of

LIMIT = 60.0


async def test_task_is_cancelled_at_the_deadline() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    with pytest.raises(TimeoutExceeded) as caught:
        await run_with_timeout(make_call(work), 0.05)
    assert ended == ["cleaned up"]
    assert caught.value.details["stopped"] == "task"


async def test_stream_that_stops_yielding_is_cancelled() -> None:
    ended: list[str] = []

    async def work() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    received: list[int] = []
    items = await run_with_timeout(make_call(work), 0.2)
    with pytest.raises(TimeoutExceeded):
        async for item in items:
            received.append(item)
    assert (received, ended) == ([1], ["cleaned up"])


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

    items = ThreadRunner(None, LIMIT).run(make_call(work))
    assert next(items) == 1
    items.close()
    assert closed.wait(60)
    assert threads[0] == threads[1] != threading.get_ident()


async def test_async_function_is_cancelled_and_sync_function_runs_in_a_thread() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutExceeded):
        await ThreadRunner(None, 0.05).arun(make_call(hang))
    ident = await ThreadRunner(None, LIMIT).arun(make_call(lambda: threading.get_ident()))
    assert ident != threading.get_ident()


async def hang() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("x")


def test_values_and_exceptions_of_tasks_are_passed_on() -> None:
    async def work() -> int:
        return 3

    assert asyncio.run(run_with_timeout(make_call(work), LIMIT)) == 3
    with pytest.raises(ValueError, match="x"):
        asyncio.run(run_with_timeout(make_call(fail), LIMIT))


def test_task_that_fails_when_it_is_cancelled_is_a_timeout() -> None:
    async def work() -> None:
        try:
            await hang()
        finally:
            raise ValueError("x")

    with pytest.raises(TimeoutExceeded) as caught:
        asyncio.run(run_with_timeout(make_call(work), 0.01))
    assert caught.value.details is not None
    assert caught.value.details["stopped"] == "task"


@pytest.mark.parametrize("fails", [False, True])
def test_task_that_ignores_its_cancellation_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(cooperative_timeouts, "CANCEL_GRACE_SECONDS", 0.01)
    call: Call | None = None

    async def main() -> None:
        nonlocal call
        release = asyncio.Event()

        async def work() -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    pass
            if fails:
                raise ValueError("x")

        call = make_call(work)
        with pytest.raises(TimeoutExceeded) as caught:
            await run_with_timeout(call, 0.01)
        assert caught.value.details is not None
        assert caught.value.details["stopped"] == "no task"
        assert cooperative_timeouts._abandoned_tasks
        release.set()
        while cooperative_timeouts._abandoned_tasks:
            await asyncio.sleep(0)

    asyncio.run(main())
    assert call is not None
    assert call.warnings == ["the function ignored its cancellation and may still be running"]


def test_cancelled_caller_cancels_the_task() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await hang()
        finally:
            ended.append("ended")

    async def main() -> None:
        task = asyncio.ensure_future(run_with_timeout(make_call(work), LIMIT))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["ended"]


def test_stream_is_closed_after_its_end_or_timeout() -> None:
    closed: list[str] = []

    async def items(hangs: bool) -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
            if hangs:
                await hang()
        finally:
            closed.append("closed")

    async def collect(hangs: bool, timeout: float) -> list[int]:
        stream = await run_with_timeout(make_call(items, {"hangs": hangs}), timeout)
        return [item async for item in stream]

    assert asyncio.run(collect(False, LIMIT)) == [1, 2]
    with pytest.raises(TimeoutExceeded):
        asyncio.run(collect(True, 0.2))

    async def close_early() -> None:
        stream = await run_with_timeout(make_call(items, {"hangs": True}), LIMIT)
        assert await stream.__anext__() == 1
        await stream.aclose()

    asyncio.run(close_early())
    assert closed == ["closed"] * 3


def test_exception_of_a_stream_is_raised() -> None:
    async def items() -> AsyncIterator[int]:
        yield 1
        raise ValueError("x")

    async def collect() -> None:
        async for _ in await run_with_timeout(make_call(items), LIMIT):
            pass

    with pytest.raises(ValueError, match="x"):
        asyncio.run(collect())


def test_values_and_streams_of_threads_are_returned() -> None:
    def items() -> Iterator[int]:
        yield from (1, 2)

    assert ThreadRunner(None, LIMIT).run(make_call(lambda: 3)) == 3
    assert list(ThreadRunner(None, LIMIT).run(make_call(items))) == [1, 2]
    stream = ThreadRunner(None, LIMIT).run(make_call(items))
    assert next(stream) == 1
    stream.close()


def test_closing_a_stream_before_its_first_item_ends_the_thread() -> None:
    def items() -> Iterator[int]:
        yield 1

    before = set(threading.enumerate())
    stream = ThreadRunner(None, LIMIT).run(make_call(items))
    (thread,) = set(threading.enumerate()) - before
    stream.close()
    thread.join(LIMIT)
    assert not thread.is_alive()


def test_exceptions_of_threads_are_raised() -> None:
    def work() -> None:
        raise ValueError("x")

    def items() -> Iterator[int]:
        yield 1
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        ThreadRunner(None, LIMIT).run(make_call(work))
    with pytest.raises(ValueError, match="x"):
        list(ThreadRunner(None, LIMIT).run(make_call(items)))


def test_hanging_thread_is_abandoned_with_a_warning() -> None:
    release = threading.Event()

    def work() -> None:
        release.wait()

    def items() -> Iterator[int]:
        release.wait()
        yield 1

    for fn in (work, items):
        call = make_call(fn)
        with pytest.raises(TimeoutExceeded) as caught:
            value = ThreadRunner(None, 0.05).run(call)
            list(value)
        assert caught.value.details is not None
        assert caught.value.details["stopped"] == "nothing"
        assert call.warnings == [
            "the function did not stop at the deadline and may still be running"
        ]
    release.set()


def test_arun_returns_values_of_sync_and_async_functions() -> None:
    async def work() -> int:
        return 4

    assert asyncio.run(ThreadRunner(None, LIMIT).arun(make_call(lambda: 3))) == 3
    assert asyncio.run(ThreadRunner(None, LIMIT).arun(make_call(work))) == 4


# ------------------------------------------------------------------ functions that stop themselves


def stopping_call(fn: Callable[..., object], **fields: Any) -> Call:
    """Return a call of a function that takes the Context."""
    call = make_call(fn, **fields)
    return call.replace(arguments={"ctx": Context(call)})


def wait_until_stopped(ctx: Context) -> str:
    stopped = threading.Event()
    ctx.on_stop(stopped.set)
    stopped.wait()
    raise ConnectionError("the connection was closed")


async def test_function_is_told_to_stop_at_the_deadline() -> None:
    runner = SelfStoppingRunner(None, 0.05)
    for run in (lambda c: asyncio.to_thread(runner.run, c), runner.arun):
        call = stopping_call(wait_until_stopped)
        with pytest.raises(TimeoutExceeded) as caught:
            await run(call)
        assert caught.value.details is not None
        assert caught.value.details["stopped"] == "call"
        assert not call.warnings


async def test_coroutine_with_a_grace_ends_by_itself() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(ctx: Context) -> None:
        stop = call_of(ctx).stop
        assert stop is not None
        stop.grace = LIMIT
        ctx.on_stop(lambda: loop.call_soon_threadsafe(ended.set))
        await ended.wait()
        raise TimeoutExceeded("It has cleaned up.")

    with pytest.raises(TimeoutExceeded, match="It has cleaned up"):
        await SelfStoppingRunner(None, 0.05).arun(stopping_call(work))


def test_value_of_a_function_that_was_stopped_is_no_result() -> None:
    def work(ctx: Context) -> str:
        stopped = threading.Event()
        ctx.on_stop(stopped.set)
        stopped.wait()
        return "killed"

    with pytest.raises(TimeoutExceeded):
        SelfStoppingRunner(None, 0.05).run(stopping_call(work))


def test_function_knows_its_deadline() -> None:
    def work(ctx: Context) -> float | None:
        return ctx.remaining_time()

    assert 0 < SelfStoppingRunner(None, LIMIT).run(stopping_call(work)) <= LIMIT
    assert SelfStoppingRunner(None, None).run(stopping_call(work)) is None


def test_function_that_ignores_the_deadline_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooperative_timeouts, "STOP_GRACE_SECONDS", 0.05)
    release = threading.Event()

    def work(ctx: Context) -> None:
        release.wait()

    call = stopping_call(work)
    with pytest.raises(TimeoutExceeded) as caught:
        SelfStoppingRunner(None, 0.05).run(call)
    release.set()
    assert caught.value.details is not None
    assert caught.value.details["stopped"] == "nothing"
    assert call.warnings


async def test_function_is_told_when_the_client_cancels() -> None:
    peer = Peer()

    def work(ctx: Context) -> str:
        stopped = threading.Event()
        ctx.on_stop(stopped.set)
        peer.cancelled = True
        stopped.wait()
        return "stopped"

    assert await SelfStoppingRunner(None, None).arun(stopping_call(work, peer=peer)) == "stopped"


async def test_function_is_told_when_its_task_is_cancelled() -> None:
    started, stopped = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(ctx: Context) -> None:
        ctx.on_stop(stopped.set)
        loop.call_soon_threadsafe(started.set)
        stopped.wait()

    task = asyncio.ensure_future(SelfStoppingRunner(None, None).arun(stopping_call(work)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


def test_coroutine_is_cancelled_without_an_event_loop() -> None:
    async def work(ctx: Context) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutExceeded) as caught:
        SelfStoppingRunner(None, 0.05).run(stopping_call(work))
    assert caught.value.details is not None
    assert caught.value.details["stopped"] == "task"


async def test_streams_of_functions_that_stop_themselves() -> None:
    def work(ctx: Context) -> Iterator[int]:
        yield from (1, 2)

    async def awork(ctx: Context) -> AsyncIterator[int]:
        yield 1
        yield 2

    def wait(ctx: Context) -> Iterator[str]:
        yield "one"
        yield wait_until_stopped(ctx)

    for seconds in (None, LIMIT):
        runner = SelfStoppingRunner(None, seconds)
        assert list(runner.run(stopping_call(work))) == [1, 2]
        assert list(await asyncio.to_thread(lambda r=runner: [*r.run(stopping_call(awork))])) == [
            *(1, 2)
        ]
        assert [item async for item in await runner.arun(stopping_call(awork))] == [1, 2]
    items = SelfStoppingRunner(None, 0.05).run(stopping_call(wait))
    assert next(items) == "one"
    with pytest.raises(TimeoutExceeded):
        next(items)


def test_error_before_the_deadline_is_unchanged() -> None:
    def work(ctx: Context) -> None:
        raise TimeoutExceeded("my own")

    for seconds in (None, LIMIT):
        with pytest.raises(TimeoutExceeded, match="my own"):
            SelfStoppingRunner(None, seconds).run(stopping_call(work))


async def test_exit_of_a_function_does_not_end_the_event_loop() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise SystemExit(3)

    with pytest.raises(SystemExit) as caught:
        await run_with_timeout(make_call(work), LIMIT)
    assert caught.value.code == 3
    await asyncio.sleep(0)  # the loop still runs


async def test_exit_of_a_stream_does_not_end_the_event_loop() -> None:
    async def work() -> AsyncIterator[int]:
        yield 1
        raise SystemExit(3)

    received: list[int] = []
    items = await run_with_timeout(make_call(work), LIMIT)
    with pytest.raises(SystemExit) as caught:
        async for item in items:
            received.append(item)
    assert (received, caught.value.code) == ([1], 3)
    await asyncio.sleep(0)
