"""Time limits on systems without fork.

At the deadline the caller stops waiting, and the function continues in its thread.
"""

from __future__ import annotations

from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from tooli.core.call import Runner
from tooli.execution.timeouts import timeout_error
from tooli.pipeline.drivers import invoke, is_async, is_stream

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.core.call import Call

_END_OF_STREAM = object()


class ThreadRunner(Runner):
    """Runs a function in a thread, which is abandoned at the deadline."""

    def __init__(self, inner: Runner | None, timeout: float) -> None:
        super().__init__(inner)
        self.timeout = timeout

    def run(self, call: Call) -> Any:
        """Run the call and return its value, or an iterator of its items."""
        worker = _WorkerThread(call.replace(runner=self.inner), self.timeout)
        value = worker.run_step()
        return _iterate_stream(value, worker) if is_stream(value) else value

    async def arun(self, call: Call) -> Any:
        """Run the call from an event loop without blocking it."""
        from tooli.execution.async_timeouts import run_with_timeout

        if is_async(call.tool.fn):
            return await run_with_timeout(call.replace(runner=self.inner), self.timeout)
        import asyncio

        return await asyncio.to_thread(self.run, call)


class _WorkerThread:
    """A thread that runs a call step by step: the function, then each item of a stream."""

    def __init__(self, call: Call, timeout: float) -> None:
        self.call = call
        self.timeout = timeout
        self.deadline = monotonic() + timeout
        self._steps: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        Thread(target=copy_context().run, args=(self._run_steps,), daemon=True).start()

    def _run_steps(self) -> None:
        step: Any = lambda: invoke(self.call)  # noqa: E731
        while step is not None:
            try:
                self._results.put((step(), None))
            except BaseException as exc:
                self._results.put((None, exc))
            step = self._steps.get()

    def run_step(self, step: Any = None) -> Any:
        """Run a step and return its value; the first step calls the function."""
        if step is not None:
            self._steps.put(step)
        try:
            value, exc = self._results.get(timeout=max(0.0, self.deadline - monotonic()))
        except Empty:
            if step is None:  # for a stream, _iterate_stream() ends the thread
                self._steps.put(None)
            self.call.warnings.append(
                "the function cannot be stopped on this system and may still be running"
            )
            raise timeout_error(self.timeout, "nothing") from None
        if exc is not None or step is None:
            self._stop_unless_stream(value)
        if exc is not None:
            raise exc
        return value

    def _stop_unless_stream(self, value: Any) -> None:
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
