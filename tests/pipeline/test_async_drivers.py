"""The async drivers: run and stream a call on an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from tests.pipeline.test_drivers import Log, call_of

from tooli.core.call import Failed, Ok
from tooli.errors import AuthError, NotFoundError
from tooli.pipeline import async_drivers
from tooli.pipeline.drivers import bind
from tooli.pipeline.drivers import run as run_sync
from tooli.pipeline.drivers import stream as stream_sync


@pytest.fixture
def log() -> Log:
    return Log()


async def drain(items) -> list[object]:
    return [item async for item in items]


class TestRunning:
    async def test_a_coroutine_runs_on_the_current_loop(self) -> None:
        async def tool():
            return asyncio.get_running_loop()

        outcome = await async_drivers.run(call_of(tool), [bind])
        assert outcome == Ok(asyncio.get_running_loop())

    async def test_a_function_runs_in_a_thread(self) -> None:
        outcome = await async_drivers.run(call_of(lambda: threading.get_ident()), [])
        assert outcome.value != threading.get_ident()

    async def test_a_thread_sees_the_callers_context(self) -> None:
        variable = contextvars.ContextVar("word", default="unset")
        variable.set("set")
        assert await async_drivers.run(call_of(lambda: variable.get()), [bind]) == Ok("set")

    async def test_an_object_with_an_async_call_is_awaited(self) -> None:
        class Tool:
            async def __call__(self, n: int = 2):
                return n

        assert await async_drivers.run(call_of(Tool()), [bind]) == Ok(2)

    async def test_streams_are_collected(self) -> None:
        def items():
            yield from (1, 2)

        async def async_items():
            yield 1
            yield 2

        for tool in (items, async_items):
            assert await async_drivers.run(call_of(tool), [bind]) == Ok([1, 2])

    async def test_failed_stream_reports_the_number_of_items(self) -> None:
        def items():
            yield 1
            raise NotFoundError("gone")

        async def async_items():
            yield 1
            raise NotFoundError("gone")

        for tool in (items, async_items):
            outcome = await async_drivers.run(call_of(tool), [bind])
            assert outcome.error.details == {"items_before_failure": 1}

    async def test_failure_passes_the_stages(self, log) -> None:
        async def tool():
            raise ZeroDivisionError("no")

        outcome = await async_drivers.run(call_of(tool), [log.stage("a"), bind])
        assert outcome.error.message == "ZeroDivisionError: no"
        assert log.seen == ["a in", "a out"]

    async def test_stage_can_reject_the_call(self, log) -> None:
        def refuse(call):
            raise AuthError("no")
            yield call

        outcome = await async_drivers.run(call_of(log.tool()), [log.stage("a"), refuse])
        assert isinstance(outcome.error, AuthError)
        assert log.seen == ["a in", "a out"]

    @pytest.mark.parametrize("code", [0, 3])
    async def test_system_exit_sets_the_exit_code(self, code) -> None:
        def tool():
            raise SystemExit(code)

        async def async_tool():
            raise SystemExit(code)

        for fn in (tool, async_tool):
            outcome = await async_drivers.run(call_of(fn), [bind])
            assert outcome == Ok(None) if code == 0 else outcome.error.exit_code == code

    async def test_stop_iteration_does_not_hang(self) -> None:
        """A future cannot raise StopIteration, so the call would never end."""

        def tool():
            return next(iter(()))

        outcome = await asyncio.wait_for(async_drivers.run(call_of(tool), [bind]), 5)
        assert "StopIteration" in outcome.error.message

    async def test_cancelled_call_passes_the_stages(self, log) -> None:
        started = asyncio.Event()

        async def tool():
            started.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(async_drivers.run(call_of(tool), [log.stage("a")]))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log.seen == ["a in", "a out"]


class TestStreaming:
    async def test_all_items_are_yielded(self) -> None:
        def items():
            yield from (1, 2)

        async def async_items():
            yield 1
            yield 2

        for tool in (items, async_items):
            ended: list[object] = []
            assert await drain(async_drivers.stream(call_of(tool), [bind], ended)) == [1, 2]
            assert ended == [Ok(None)]

    async def test_a_tool_that_does_not_stream_yields_no_items(self) -> None:
        ended: list[object] = []
        assert await drain(async_drivers.stream(call_of(lambda: [1]), [bind], ended)) == []
        assert ended == [Ok([1])]

    async def test_outcome_of_a_stage_yields_no_items(self) -> None:
        def answer(call):
            return Ok(5)
            yield call

        ended: list[object] = []
        assert await drain(async_drivers.stream(call_of(lambda: 1), [answer], ended)) == []
        assert ended == [Ok(5)]

    async def test_a_failure_in_the_middle_keeps_earlier_items(self) -> None:
        async def tool():
            yield 1
            raise NotFoundError("gone")

        ended: list[Failed] = []
        assert await drain(async_drivers.stream(call_of(tool), [bind], ended)) == [1]
        assert isinstance(ended[0].error, NotFoundError)

    async def test_async_stream_closed_early_closes_the_tool(self, log) -> None:
        async def async_items():
            try:
                yield 1
                yield 2
            finally:
                log.seen.append("tool closed")

        items = async_drivers.stream(call_of(async_items), [log.stage("a")], [])
        assert await anext(items) == 1
        await items.aclose()
        assert log.seen == ["a in", "tool closed", "a out"]

    async def test_sync_stream_closed_early_closes_the_tool(self, log) -> None:
        def now():
            try:
                yield 1
                yield 2
            finally:
                log.seen.append("tool closed")

        items = async_drivers.stream(call_of(now), [log.stage("a")], [])
        assert await anext(items) == 1
        await items.aclose()
        assert log.seen == ["a in", "tool closed", "a out"]


class TestFromSyncCode:
    """The sync drivers run async tools, also while an event loop runs in the same thread."""

    async def test_coroutine_runs_on_another_loop_while_a_loop_runs(self) -> None:
        async def tool():
            await asyncio.sleep(0)
            return id(asyncio.get_running_loop())

        outcome = run_sync(call_of(tool), [bind])
        assert outcome.value != id(asyncio.get_running_loop())

    async def test_async_stream_is_collected_while_a_loop_runs(self) -> None:
        async def tool():
            for i in range(3):
                await asyncio.sleep(0)
                yield i

        assert list(stream_sync(call_of(tool), [bind])) == [0, 1, 2]

    async def test_context_variables_are_passed_on(self) -> None:
        variable = contextvars.ContextVar("word", default="unset")
        variable.set("set")

        async def tool():
            return variable.get()

        assert run_sync(call_of(tool), [bind]) == Ok("set")

    async def test_system_exit_while_a_loop_runs_sets_the_exit_code(self) -> None:
        async def tool():
            raise SystemExit(4)

        assert run_sync(call_of(tool), [bind]).error.exit_code == 4

    def test_all_items_of_a_stream_use_one_loop(self) -> None:
        async def tool():
            for _ in range(3):
                yield asyncio.get_running_loop()

        assert len(set(map(id, stream_sync(call_of(tool), [bind])))) == 1

    def test_custom_async_iterator_is_collected(self) -> None:
        class Count:
            def __init__(self) -> None:
                self.at = 0

            def __aiter__(self):
                return self

            async def __anext__(self):
                self.at += 1
                if self.at > 2:
                    raise StopAsyncIteration
                return self.at

        assert run_sync(call_of(Count), [bind]) == Ok([1, 2])

    def test_unfinished_tasks_are_cancelled(self) -> None:
        ended = []

        async def tool():
            async def forever():
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(True)

            task = asyncio.ensure_future(forever())
            await asyncio.sleep(0)
            yield id(task)
            yield 2

        items = stream_sync(call_of(tool), [bind])
        next(items)
        items.close()
        assert ended == [True]


class TestCancelledStream:
    """A task that reads a sync stream is cancelled while a thread reads an item."""

    @pytest.mark.parametrize("ending", ["yields", "ends"])
    async def test_running_generator_is_closed_after_its_item(self, ending: str) -> None:
        entered, may_continue, closed = threading.Event(), threading.Event(), threading.Event()

        def items():
            try:
                yield 1
                entered.set()
                assert may_continue.wait(60)
                if ending == "yields":
                    yield 2
            finally:
                closed.set()

        task = asyncio.ensure_future(drain(async_drivers.stream(call_of(items), [bind], [])))
        await asyncio.to_thread(entered.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not closed.is_set()
        may_continue.set()
        assert await asyncio.to_thread(closed.wait, 60)

    async def test_running_iterator_with_a_close_method_is_closed(self) -> None:
        entered, stopped = threading.Event(), threading.Event()

        class Items:
            def __iter__(self):
                return self

            def __next__(self):
                entered.set()
                assert stopped.wait(60)
                raise StopIteration

            def close(self):
                stopped.set()

        task = asyncio.ensure_future(
            drain(async_drivers.stream(call_of(lambda: Items()), [bind], []))
        )
        await asyncio.to_thread(entered.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stopped.is_set()

    async def test_error_of_close_is_raised(self) -> None:
        class Items:
            def __init__(self):
                self.left = [1]

            def __iter__(self):
                return self

            def __next__(self):
                if not self.left:
                    raise StopIteration
                return self.left.pop()

            def close(self):
                raise ValueError("not closed")

        outcomes: list[Ok | Failed] = []
        assert await drain(async_drivers.stream(call_of(lambda: Items()), [bind], outcomes)) == [1]
        assert isinstance(outcomes[0], Failed)
        assert "not closed" in str(outcomes[0].error)
