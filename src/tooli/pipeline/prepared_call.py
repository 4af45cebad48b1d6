"""PreparedCall: a call with its stages, ready to run once. Every server surface uses it.

    prepared.run() │ await prepared.arun()          ─▶ Presented
    prepared.stream() │ prepared.astream(ended)     ─▶ items as JSON, then Presented
    prepared.result(), items() and their async forms ─▶ Python values, for `app.call`

A surface gets only presented output. Python code that calls `app.call` gets the values themselves.
"""

from __future__ import annotations

from time import perf_counter

from tooli.core.call import Failed, Ok
from tooli.pipeline.drivers import is_async, run, stream
from tooli.pipeline.present import ItemPresenter, build_meta, present
from tooli.pipeline.result import TooliResult, to_tooli_error
from tooli.pipeline.stdout_capture import StdoutCapture, attach_printed_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage
    from tooli.pipeline.present import Presented


class PreparedCall:
    """A call that is ready to run."""

    __slots__ = ("_call", "_stages", "_started")

    def __init__(self, call: Call, stages: tuple[Stage, ...], started: float | None = None) -> None:
        self._call = call
        self._stages = stages
        self._started = perf_counter() if started is None else started

    @property
    def is_async(self) -> bool:
        """True if the tool's function runs on an event loop."""
        return is_async(self._call.tool.fn)

    def milliseconds(self) -> int:
        """Return how long the call has taken so far."""
        return int((perf_counter() - self._started) * 1000)

    # -------------------------------------------------------------- for surfaces

    def run(self) -> Presented:
        """Run the call in this thread."""
        if not self._call.tool.returns_printed_text:
            return self._present(self._run())
        with StdoutCapture() as printed:
            outcome = self._run()
        return self._present(attach_printed_text(outcome, printed.text(), self._call))

    async def arun(self) -> Presented:
        """Run the call on this event loop: async functions on it, others in a thread."""
        if not self._call.tool.returns_printed_text:
            return self._present(await self._arun())
        with StdoutCapture() as printed:
            outcome = await self._arun()
        return self._present(attach_printed_text(outcome, printed.text(), self._call))

    def fail(self, failure: BaseException) -> Presented:
        """Return the answer for a call that ended with an exception and has no outcome."""
        from tooli.pipeline.failure import to_outcome

        return self._present(to_outcome(failure))

    def stream(self) -> Generator[bytes, None, Presented]:
        """Run the call in this thread; yield its items as JSON and return the end of the answer.

        A list that the tool returns instead of yielding its items is sent item by item as well.
        """
        presenter = ItemPresenter(self._call)
        items = stream(self._call, self._stages)
        try:
            while True:
                yield presenter.encode(next(items))
        except StopIteration as end:
            outcome: Outcome = end.value
        finally:
            items.close()
        for item in _remaining_items(outcome):
            yield presenter.encode(item)
        return self._present_end(outcome)

    async def astream(self, ended: list[Presented]) -> AsyncGenerator[bytes]:
        """Run the call on this event loop; yield its items as JSON.

        The end of the answer is appended to `ended`: async generators cannot return a value.
        """
        from tooli.pipeline import async_drivers

        presenter = ItemPresenter(self._call)
        outcomes: list[Outcome] = []
        items = async_drivers.stream(self._call, self._stages, outcomes)
        async with async_drivers.aclosing(items):
            async for item in items:
                yield presenter.encode(item)
        for item in _remaining_items(outcomes[0]):
            yield presenter.encode(item)
        ended.append(self._present_end(outcomes[0]))

    def _present(self, outcome: Outcome) -> Presented:
        return present(outcome, self._call, self.milliseconds)

    def _present_end(self, outcome: Outcome) -> Presented:
        return self._present(outcome if isinstance(outcome, Failed) else Ok(None))

    def _run(self) -> Outcome:
        try:
            return run(self._call, self._stages)
        except KeyboardInterrupt as stop:  # the tool raised it: Ctrl-C reaches the main thread
            return _interrupted_outcome(stop)

    async def _arun(self) -> Outcome:
        from tooli.pipeline import async_drivers

        try:
            return await async_drivers.run(self._call, self._stages)
        except KeyboardInterrupt as stop:  # it would end the event loop
            return _interrupted_outcome(stop)

    # -------------------------------------------------------------- for Python code

    def result(self) -> TooliResult[Any]:
        """Run the call; return its value or its error, with `meta`."""
        return self._to_result(run(self._call, self._stages))

    async def aresult(self) -> TooliResult[Any]:
        """Run the call on this event loop; return its value or its error, with `meta`."""
        from tooli.pipeline import async_drivers

        return self._to_result(await async_drivers.run(self._call, self._stages))

    def items(self) -> Generator[Any, None, None]:
        """Run the call and yield its items. Raises the ToolError if it fails."""
        outcome = yield from stream(self._call, self._stages)
        if isinstance(outcome, Failed):
            raise outcome.error
        yield from _remaining_items(outcome)

    async def aitems(self) -> AsyncGenerator[Any]:
        """Run the call on this event loop and yield its items. Raises the ToolError if it fails."""
        from tooli.pipeline import async_drivers

        outcomes: list[Outcome] = []
        items = async_drivers.stream(self._call, self._stages, outcomes)
        async with async_drivers.aclosing(items):
            async for item in items:
                yield item
        if isinstance(outcomes[0], Failed):
            raise outcomes[0].error
        for item in _remaining_items(outcomes[0]):
            yield item

    def _to_result(self, outcome: Outcome) -> TooliResult[Any]:
        call = self._call
        value: Any = None
        error = None
        if type(outcome) is Ok:
            value = outcome.value
        else:
            assert isinstance(outcome, Failed)
            error = to_tooli_error(outcome.error, call, call.warnings)
        meta = build_meta(call, self.milliseconds())
        result: TooliResult[Any] = TooliResult(error is None, value, error, meta)
        if call.secrets or call.policy != "standard":
            result.set_output_policy(call)
        return result


def _interrupted_outcome(stop: BaseException) -> Outcome:
    from tooli.pipeline.failure import to_outcome

    return to_outcome(stop)


def _remaining_items(outcome: Outcome) -> Iterator[Any]:
    """Yield the items of a value that a tool returned instead of streaming it."""
    value: Any = outcome.value if isinstance(outcome, Ok) else None
    if type(value) in (list, tuple):
        yield from value
    elif type(value) in (set, frozenset):
        from tooli.text.jsonable import sort_set

        yield from sort_set(value)
    elif value is not None:
        yield value
