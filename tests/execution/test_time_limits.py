"""Time limits without a process: tasks that are cancelled, threads that are abandoned."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import Call, Caller, Options
from tooli.errors import TimeoutExceeded
from tooli.execution import cooperative_timeouts
from tooli.execution.cooperative_timeouts import ThreadRunner, run_with_timeout

LONG = 600.0


def make_call(fn: Any, **arguments: Any) -> Call:
    """Return a call of a function."""
    app = Tooli("app")
    app.command("work")(fn)
    tool = app.find("work")
    assert tool is not None
    return Call(tool, arguments, Caller("python"), [], Options())


async def hang() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("x")


def test_values_and_exceptions_of_tasks() -> None:
    async def work() -> int:
        return 3

    assert asyncio.run(run_with_timeout(make_call(work), LONG)) == 3
    with pytest.raises(ValueError, match="x"):
        asyncio.run(run_with_timeout(make_call(fail), LONG))


def test_task_is_cancelled() -> None:
    with pytest.raises(TimeoutExceeded) as caught:
        asyncio.run(run_with_timeout(make_call(hang), 0.01))
    assert caught.value.details is not None
    assert caught.value.details["stopped"] == "task"


def test_task_that_fails_when_it_is_cancelled() -> None:
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
def test_task_that_ignores_its_cancellation(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
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
    assert "ignored its cancellation" in call.warnings[0]


def test_cancelled_caller_cancels_the_task() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await hang()
        finally:
            ended.append("ended")

    async def main() -> None:
        task = asyncio.ensure_future(run_with_timeout(make_call(work), LONG))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["ended"]


def test_streams_of_tasks() -> None:
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
        stream = await run_with_timeout(make_call(items, hangs=hangs), timeout)
        return [item async for item in stream]

    assert asyncio.run(collect(False, LONG)) == [1, 2]
    with pytest.raises(TimeoutExceeded):
        asyncio.run(collect(True, 0.2))

    async def close_early() -> None:
        stream = await run_with_timeout(make_call(items, hangs=True), LONG)
        assert await stream.__anext__() == 1
        await stream.aclose()

    asyncio.run(close_early())
    assert closed == ["closed"] * 3


def test_exception_of_a_stream() -> None:
    async def items() -> AsyncIterator[int]:
        yield 1
        raise ValueError("x")

    async def collect() -> None:
        async for _ in await run_with_timeout(make_call(items), LONG):
            pass

    with pytest.raises(ValueError, match="x"):
        asyncio.run(collect())


# ------------------------------------------------------------------ threads


def test_values_and_streams_of_threads() -> None:
    def items() -> Iterator[int]:
        yield from (1, 2)

    assert ThreadRunner(None, LONG).run(make_call(lambda: 3)) == 3
    assert list(ThreadRunner(None, LONG).run(make_call(items))) == [1, 2]
    stream = ThreadRunner(None, LONG).run(make_call(items))
    assert next(stream) == 1
    stream.close()


def test_exceptions_of_threads() -> None:
    def work() -> None:
        raise ValueError("x")

    def items() -> Iterator[int]:
        yield 1
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        ThreadRunner(None, LONG).run(make_call(work))
    with pytest.raises(ValueError, match="x"):
        list(ThreadRunner(None, LONG).run(make_call(items)))


def test_thread_is_abandoned() -> None:
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
        assert "cannot be stopped" in call.warnings[0]
    release.set()


def test_threads_on_an_event_loop() -> None:
    async def work() -> int:
        return 4

    assert asyncio.run(ThreadRunner(None, LONG).arun(make_call(lambda: 3))) == 3
    assert asyncio.run(ThreadRunner(None, LONG).arun(make_call(work))) == 4
