"""CallSlots: how many calls run at a time, and how many requests one caller may have open.

    request ─▶ enter ─▶ body ─▶ start ─▶ call ─▶ end ─▶ response ─▶ leave
                 └ waits         └ waits

A call takes its slot after the body is read, and frees it before the response is sent. A client
that sends or reads slowly therefore does not keep others from calling. A request that finds no slot
waits for one, in the order of arrival. It is refused if none gets free in time.
"""

from __future__ import annotations

import asyncio
from collections import deque

from tooli.errors import Suggestion, TemporaryError
from tooli.http.http_request import HttpError
from tooli.serving.caller_limits import CallerLimit, caller_share
from tooli.serving.dispatcher import too_busy_error, too_many_requests_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable
    from typing import Any

    from tooli.errors import ToolError
    from tooli.http.stream_response import StreamSource
    from tooli.serving.thread_pool import ThreadPool

_RETRY_AFTER = (b"retry-after", b"1")


MAX_HELD_BYTES = 64 << 20
"""Maximum size of the request bodies of one caller whose calls wait or run."""

MAX_WAITING = 4096
"""Maximum number of requests that wait. Further ones are refused at once."""


class OpenStreams(set["StreamSource"]):
    """The streams that have not ended. They may end in any thread."""

    def __init__(self, on_end: Callable[[str], None]) -> None:
        super().__init__()
        self._on_end = on_end

    def discard(self, source: Any, /) -> None:
        """Remove a stream that has ended."""
        super().discard(source)
        try:
            source.loop.call_soon_threadsafe(self._on_end, source.caller)
        except RuntimeError:  # the loop is closed: nobody waits
            pass


class CallSlots:
    """The slots of one server."""

    def __init__(self, limit: int, thread_pool: ThreadPool, queue_timeout: float = 0) -> None:
        self._limit = limit
        self._queue_timeout = queue_timeout
        self._thread_pool = thread_pool
        thread_pool.on_abandoned_end = self._wake
        self._running_calls = 0  # running calls, except open streams
        self.open_streams = OpenStreams(self._wake)
        self._open_requests = CallerLimit(caller_share(limit))
        self._held_bytes: dict[str, int] = {}
        self._waiting_calls: deque[Future[bool]] = deque()
        self._waiting_requests: dict[str, deque[Future[bool]]] = {}  # by caller
        self._waiting = 0

    # -------------------------------------------------------------- open requests of a caller

    async def enter(self, caller: str) -> None:
        """Count an open request of a caller, as soon as the caller has few enough.

        Raises an HttpError if that takes too long.
        """
        if self._waiting_requests.get(caller) or not self._acquire(caller):
            queue = self._waiting_requests.setdefault(caller, deque())
            error = too_many_requests_error(self._open_requests.limit)
            if len(queue) >= caller_share(MAX_WAITING):  # the rest is for other callers
                raise HttpError(error, _RETRY_AFTER)
            try:
                await self._wait(queue, error, lambda: self.leave(caller))
            finally:
                if not queue:
                    self._waiting_requests.pop(caller, None)

    def leave(self, caller: str) -> None:
        """Count the end of a request of a caller."""
        self._open_requests.release(caller)
        self._admit_requests(caller)

    def _acquire(self, caller: str) -> bool:
        others = self._thread_pool.abandoned_by(caller)
        if self.open_streams:  # a stream whose client has disconnected may still run
            others += sum([source.caller == caller for source in list(self.open_streams)])
        return self._open_requests.acquire(caller, others)

    def _admit_requests(self, caller: str) -> None:
        queue = self._waiting_requests.get(caller)
        while queue and (queue[0].done() or self._acquire(caller)):
            future = queue.popleft()
            if not future.done():
                future.set_result(True)

    # -------------------------------------------------------------- bodies

    def hold_body(self, caller: str, size: int) -> None:
        """Count the bytes of a body that a caller's call has received.

        Raises an HttpError if the bodies of the caller are too large together.
        """
        held = self._held_bytes.get(caller, 0)
        if held and held + size > MAX_HELD_BYTES:
            raise HttpError(_too_many_bytes_error(), _RETRY_AFTER)
        self._held_bytes[caller] = held + size

    def free_body(self, caller: str, size: int) -> None:
        """Count the bytes of a body less."""
        held = self._held_bytes[caller] - size
        if held:
            self._held_bytes[caller] = held
        else:
            del self._held_bytes[caller]

    # -------------------------------------------------------------- running calls

    @property
    def _is_full(self) -> bool:
        abandoned = self._thread_pool.abandoned  # calls whose requests were cancelled
        return self._running_calls + len(self.open_streams) + abandoned >= self._limit

    async def wait_for_room(self) -> None:
        """Wait until a slot is free, without taking it. Raises an HttpError if it takes too long.

        A request waits here before its body is read, so that waiting requests need little memory.
        """
        if self._is_full or self._waiting_calls:
            await self.start()
            self.end()

    async def start(self) -> None:
        """Take a slot for a call, as soon as one is free.

        Raises an HttpError if that takes too long.
        """
        if self._waiting_calls or self._is_full:
            await self._wait(self._waiting_calls, too_busy_error(), self.end)
        else:
            self._running_calls += 1

    def end(self) -> None:
        """Free the slot of a call."""
        self._running_calls -= 1
        self._admit_calls()

    def _admit_calls(self) -> None:
        queue = self._waiting_calls
        while queue and (queue[0].done() or not self._is_full):
            future = queue.popleft()
            if not future.done():
                self._running_calls += 1
                future.set_result(True)

    # -------------------------------------------------------------- waiting

    async def _wait(
        self, queue: deque[Future[bool]], error: ToolError, give_back: Callable[[], None]
    ) -> None:
        """Wait for a slot. A request that frees one passes it to the first in the queue."""
        if self._queue_timeout <= 0 or self._waiting >= MAX_WAITING:
            raise HttpError(error, _RETRY_AFTER)
        loop = asyncio.get_running_loop()
        future: Future[bool] = loop.create_future()
        timer = loop.call_later(self._queue_timeout, _expire, future)
        queue.append(future)
        self._waiting += 1
        try:
            has_slot = await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.result():
                give_back()  # the slot was taken for a request that is cancelled now
            raise
        finally:
            timer.cancel()
            self._waiting -= 1
            if not future.done() or future.cancelled() or not future.result():
                _remove(queue, future)
        if not has_slot:
            raise HttpError(error, _RETRY_AFTER)

    def _wake(self, caller: str) -> None:
        """Admit requests after something else than a request has ended."""
        if self._waiting:
            self._admit_requests(caller)
            self._admit_calls()


def _expire(future: Future[bool]) -> None:
    if not future.done():
        future.set_result(False)


def _remove(queue: deque[Future[bool]], future: Future[bool]) -> None:
    if future in queue:
        queue.remove(future)


def _too_many_bytes_error() -> TemporaryError:
    return TemporaryError(
        f"The open requests of the caller have {MAX_HELD_BYTES >> 20} MB, which is the limit.",
        suggestion=Suggestion("retry_later", "Wait for the answers of other calls."),
        details={"retry_after": 1},
    )
