"""CallSlots: how many calls run at a time, and how many requests one caller may have open.

    request ─▶ enter ─▶ body ─▶ start ─▶ call ─▶ end ─▶ response ─▶ leave

A call takes its slot after the body is read, and frees it before the response is sent. A client
that sends or reads slowly therefore does not keep others from calling.
"""

from __future__ import annotations

from tooli.errors import Suggestion, TemporaryError
from tooli.http.http_request import HttpError
from tooli.serving.caller_limits import CallerLimit, caller_share
from tooli.serving.dispatcher import too_busy_error, too_many_requests_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.http.stream_response import StreamSource
    from tooli.serving.thread_pool import ThreadPool

_RETRY_AFTER = (b"retry-after", b"1")


MAX_HELD_BYTES = 64 << 20
"""Maximum size of the request bodies of one caller whose calls wait or run."""


class CallSlots:
    """The slots of one server."""

    def __init__(self, limit: int, thread_pool: ThreadPool) -> None:
        self._limit = limit
        self._thread_pool = thread_pool
        self._running_calls = 0  # running calls, except open streams
        self.open_streams: set[StreamSource] = set()
        self._open_requests = CallerLimit(caller_share(limit))
        self._held_bytes: dict[str, int] = {}

    def enter(self, caller: str) -> None:
        """Count an open request of a caller. Raises an HttpError if the caller has too many."""
        others = self._thread_pool.abandoned_by(caller)
        if self.open_streams:  # a stream whose client has disconnected may still run
            others += sum([source.caller == caller for source in list(self.open_streams)])
        if not self._open_requests.acquire(caller, others):
            raise HttpError(too_many_requests_error(self._open_requests.limit), _RETRY_AFTER)

    def leave(self, caller: str) -> None:
        """Count the end of a request of a caller."""
        self._open_requests.release(caller)

    def hold_body(self, caller: str, size: int) -> None:
        """Count the bytes of a body. Raises an HttpError if the caller has too many."""
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

    def check(self) -> None:
        """Raise an HttpError if no slot is free."""
        abandoned = self._thread_pool.abandoned  # calls whose requests were cancelled
        if self._running_calls + len(self.open_streams) + abandoned >= self._limit:
            raise HttpError(too_busy_error(), _RETRY_AFTER)

    def start(self) -> None:
        """Take a slot for a call. Raises an HttpError if no slot is free."""
        self.check()
        self._running_calls += 1

    def end(self) -> None:
        """Free the slot of a call."""
        self._running_calls -= 1


def _too_many_bytes_error() -> TemporaryError:
    return TemporaryError(
        f"The open requests of the caller have {MAX_HELD_BYTES >> 20} MB, which is the limit.",
        suggestion=Suggestion("retry_later", "Wait for the answers of other calls."),
        details={"retry_after": 1},
    )
