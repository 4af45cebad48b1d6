"""Deadlines where no process can be forked: nobody waits for longer, but the function runs on."""

from __future__ import annotations

from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from tooli.core.call import Runner
from tooli.execution.timeouts import timeout_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.core.call import Call

_END_OF_STREAM = object()


class ThreadRunner(Runner):
    """Runs a function in a thread that is left to itself where it overruns."""

    def __init__(self, inner: Runner | None, timeout: float) -> None:
        super().__init__(inner)
        self.timeout = timeout

    def run(self, call: Call) -> Any:
        """What the function gives in time."""
        from tooli.pipeline.drivers import is_stream

        worker = _WorkerThread(call.replace(runner=self.inner), self.timeout)
        value = worker.run_step()
        return _iterate_stream(value, worker) if is_stream(value) else value

    async def arun(self, call: Call) -> Any:
        """The same on an event loop, which goes on meanwhile."""
        from tooli.execution.async_timeouts import run_with_timeout
        from tooli.pipeline.drivers import is_async

        if is_async(call.tool.fn):
            return await run_with_timeout(call.replace(runner=self.inner), self.timeout)
        import asyncio

        return await asyncio.to_thread(self.run, call)


class _WorkerThread:
    """A thread that does one step at a time, each when it is asked for."""

    def __init__(self, call: Call, timeout: float) -> None:
        self.call = call
        self.timeout = timeout
        self.deadline = monotonic() + timeout
        self._steps: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        Thread(target=copy_context().run, args=(self._run_steps,), daemon=True).start()

    def _run_steps(self) -> None:
        from tooli.pipeline.drivers import invoke

        step: Any = lambda: invoke(self.call)  # noqa: E731
        while step is not None:
            try:
                self._results.put((step(), None))
            except BaseException as exc:
                self._results.put((None, exc))
            step = self._steps.get()

    def run_step(self, step: Any = None) -> Any:
        """What a step gives in time; the first one calls the function."""
        if step is not None:
            self._steps.put(step)
        try:
            value, exc = self._results.get(timeout=max(0.0, self.deadline - monotonic()))
        except Empty:
            if step is None:  # a stream is closed by its reader, who says so, too
                self._steps.put(None)
            self.call.warnings.append("the function cannot be stopped here: it may still run")
            raise timeout_error(self.timeout, "nothing") from None
        if exc is not None or step is None:
            self._stop_unless_stream(value)
        if exc is not None:
            raise exc
        return value

    def _stop_unless_stream(self, value: Any) -> None:
        from tooli.pipeline.drivers import is_stream

        if not is_stream(value):
            self._steps.put(None)


def _iterate_stream(items: Iterator[Any], worker: _WorkerThread) -> Iterator[Any]:
    try:
        while (item := worker.run_step(lambda: next(items, _END_OF_STREAM))) is not _END_OF_STREAM:
            yield item
    finally:
        close = getattr(items, "close", None)
        worker._steps.put(close)
        worker._steps.put(None)
