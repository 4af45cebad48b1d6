"""Run coroutines and async streams from sync code, with and without a running event loop."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import AsyncIterator

import pytest

from tooli.core.event_loop import is_in_event_loop, iterate_async, run_awaitable

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="none")


async def current_name() -> str:
    await asyncio.sleep(0)
    return NAME.get()


class Numbers:
    """An async stream that records whether it was closed."""

    def __init__(self, fails: bool = False) -> None:
        self.closed = 0
        self.fails = fails

    async def stream(self) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(0)
            if self.fails:
                raise ValueError("failed")
            yield 2
        finally:
            await asyncio.sleep(0)
            self.closed += 1


# ------------------------------------------------------------------ is_in_event_loop


async def test_event_loop_of_this_thread_is_found() -> None:
    assert is_in_event_loop()
    assert not await asyncio.to_thread(is_in_event_loop)


def test_no_event_loop_is_found_in_sync_code() -> None:
    assert not is_in_event_loop()


def test_asyncio_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "asyncio.events")
    assert not is_in_event_loop()
    assert "asyncio.events" not in sys.modules


# ------------------------------------------------------------------ run_awaitable


def test_coroutine_returns_its_value_and_sees_context_variables() -> None:
    token = NAME.set("outer")
    try:
        assert run_awaitable(current_name()) == "outer"
    finally:
        NAME.reset(token)


async def test_coroutine_runs_in_another_thread_if_a_loop_runs_here() -> None:
    async def where() -> tuple[int, str]:
        return threading.get_ident(), NAME.get()

    NAME.set("outer")
    ident, name = run_awaitable(where())
    assert ident != threading.get_ident()
    assert name == "outer"


def test_awaitable_that_is_not_a_coroutine_is_run() -> None:
    class Ready:
        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return 3

    assert run_awaitable(Ready()) == 3


async def fail() -> None:
    raise LookupError("failed")


def test_exception_of_a_coroutine_is_raised() -> None:
    with pytest.raises(LookupError, match="failed"):
        run_awaitable(fail())


async def test_exception_of_a_coroutine_in_another_thread_is_raised() -> None:
    with pytest.raises(LookupError, match="failed"):
        run_awaitable(fail())


# ------------------------------------------------------------------ iterate_async


def test_stream_is_read_and_closed() -> None:
    numbers = Numbers()
    assert list(iterate_async(numbers.stream())) == [1, 2]
    assert numbers.closed == 1


async def test_stream_is_read_and_closed_inside_a_running_loop() -> None:
    numbers = Numbers()
    assert list(iterate_async(numbers.stream())) == [1, 2]
    assert numbers.closed == 1


def test_stream_that_is_left_early_is_closed() -> None:
    numbers = Numbers()
    items = iterate_async(numbers.stream())
    assert next(items) == 1
    assert numbers.closed == 0
    items.close()  # type: ignore[attr-defined]
    assert numbers.closed == 1


def test_stream_that_is_never_read_is_not_started() -> None:
    numbers = Numbers()
    items = iterate_async(numbers.stream())
    items.close()  # type: ignore[attr-defined]
    assert numbers.closed == 0


def test_stream_that_fails_is_closed() -> None:
    numbers = Numbers(fails=True)
    items = iterate_async(numbers.stream())
    assert next(items) == 1
    with pytest.raises(ValueError, match="failed"):
        next(items)
    assert numbers.closed == 1


def test_stream_without_aclose_is_read() -> None:
    class Count:
        def __init__(self) -> None:
            self.number = 0

        def __aiter__(self) -> Count:
            return self

        async def __anext__(self) -> int:
            self.number += 1
            if self.number > 3:
                raise StopAsyncIteration
            return self.number

    assert list(iterate_async(Count())) == [1, 2, 3]


def test_pending_tasks_are_cancelled_at_the_end() -> None:
    cancelled: list[str] = []

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append("background")

    async def stream() -> AsyncIterator[int]:
        task = asyncio.ensure_future(background())
        await asyncio.sleep(0)
        yield 1
        assert not task.done()

    assert list(iterate_async(stream())) == [1]
    assert cancelled == ["background"]
