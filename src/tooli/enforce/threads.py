"""Deadlines where no process can be forked: nobody waits for longer, but the function runs on."""

from __future__ import annotations

from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from tooli.call.model import Runner
from tooli.enforce.deadlines import timed_out

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.call.model import Call

_END = object()


class Beside(Runner):
    """Runs a function in a thread that is left to itself where it overruns."""

    def __init__(self, inner: Runner | None, seconds: float) -> None:
        super().__init__(inner)
        self.seconds = seconds

    def run(self, call: Call) -> Any:
        """What the function gives in time."""
        from tooli.call.pipeline import is_stream

        work = _Work(call.replace(runner=self.inner), self.seconds)
        value = work.ask()
        return _items(value, work) if is_stream(value) else value

    async def arun(self, call: Call) -> Any:
        """The same on an event loop, which goes on meanwhile."""
        from tooli.call.pipeline import is_async
        from tooli.enforce.loops import hold

        if is_async(call.tool.fn):
            return await hold(call.replace(runner=self.inner), self.seconds)
        import asyncio

        return await asyncio.to_thread(self.run, call)


class _Work:
    """A thread that does one step at a time, each when it is asked for."""

    def __init__(self, call: Call, seconds: float) -> None:
        self.call = call
        self.seconds = seconds
        self.until = monotonic() + seconds
        self._steps: SimpleQueue[Any] = SimpleQueue()
        self._done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        Thread(target=copy_context().run, args=(self._labour,), daemon=True).start()

    def _labour(self) -> None:
        from tooli.call.pipeline import invoke

        step: Any = lambda: invoke(self.call)  # noqa: E731
        while step is not None:
            try:
                self._done.put((step(), None))
            except BaseException as exc:
                self._done.put((None, exc))
            step = self._steps.get()

    def ask(self, step: Any = None) -> Any:
        """What a step gives in time; the first one calls the function."""
        if step is not None:
            self._steps.put(step)
        try:
            value, exc = self._done.get(timeout=max(0.0, self.until - monotonic()))
        except Empty:
            if step is None:  # a stream is closed by its reader, who says so, too
                self._steps.put(None)
            self.call.warnings.append("the function cannot be stopped here: it may still run")
            raise timed_out(self.seconds, "nothing") from None
        if exc is not None or step is None:
            self._rest(value)
        if exc is not None:
            raise exc
        return value

    def _rest(self, value: Any) -> None:
        from tooli.call.pipeline import is_stream

        if not is_stream(value):
            self._steps.put(None)


def _items(items: Iterator[Any], work: _Work) -> Iterator[Any]:
    try:
        while (item := work.ask(lambda: next(items, _END))) is not _END:
            yield item
    finally:
        close = getattr(items, "close", None)
        work._steps.put(close)
        work._steps.put(None)
