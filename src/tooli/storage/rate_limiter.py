"""Rate limits: count the recent calls of each caller to each command, in this process.

The package `limits`, which comes with tooli[http] and tooli[mcp], implements moving windows. This
module stores the timestamps, because the memory storage of `limits` never forgets a caller. The
storage has a maximum size and drops the callers that have been idle the longest.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from threading import Lock
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from limits import RateLimitItem

MAX_WINDOWS = 65_536
MAX_RECORDED_CALLS = 500_000
"""Maximum number of windows, one per caller and command, and of calls in all of them."""
_EVICTION_DIVISOR = 8  # one eighth is dropped at a time, so that eviction is rare


class RateWindow:
    """The times of a caller's calls, oldest first, and the seconds for which they count."""

    __slots__ = ("expiry", "timestamps")

    def __init__(self, expiry: int) -> None:
        self.expiry = expiry
        self.timestamps: array[float] = array("d")

    def discard_expired(self, now: float) -> int:
        """Drop expired calls; return how many there were."""
        expired = bisect_right(self.timestamps, now - self.expiry)
        del self.timestamps[:expired]
        return expired


class RateWindowStorage:
    """Moving windows of call times, one for each caller and command."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: dict[str, RateWindow] = {}
        self._count = 0

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Record `amount` calls if the limit allows them; return False if it does not."""
        with self._lock:
            window = self._windows.pop(key, None) or RateWindow(expiry)
            self._windows[key] = window  # the last one is the most recently used
            now = monotonic()
            self._count -= window.discard_expired(now)
            fits = len(window.timestamps) + amount <= limit
            if fits:
                window.timestamps.extend([now] * amount)
                self._count += amount
            if len(self._windows) > MAX_WINDOWS or self._count > MAX_RECORDED_CALLS:
                self._evict(now)
        return fits

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Return the time of the oldest call in a window, and the number of calls."""
        with self._lock:
            window, now = self._windows.get(key), monotonic()
            if window is None:
                return now, 0
            self._count -= window.discard_expired(now)
            return (window.timestamps[0], len(window.timestamps)) if window.timestamps else (now, 0)

    def _evict(self, now: float) -> None:
        """Drop empty windows, then the least recently used ones, but never the latest one."""
        for key, window in list(self._windows.items()):
            self._count -= window.discard_expired(now)
            if not window.timestamps:
                del self._windows[key]
        max_windows = MAX_WINDOWS - MAX_WINDOWS // _EVICTION_DIVISOR
        max_calls = MAX_RECORDED_CALLS - MAX_RECORDED_CALLS // _EVICTION_DIVISOR
        for key in list(self._windows)[:-1]:
            if len(self._windows) <= max_windows and self._count <= max_calls:
                break
            self._count -= len(self._windows.pop(key).timestamps)

    def clear(self, key: str) -> None:
        """Drop the window of a caller."""
        with self._lock:
            window = self._windows.pop(key, None)
            self._count -= len(window.timestamps) if window is not None else 0

    def reset(self) -> int | None:
        """Drop all windows; return how many there were."""
        with self._lock:
            count = len(self._windows)
            self._windows.clear()
            self._count = 0
        return count


class RateLimiter:
    """Decides whether a caller has reached a rate limit."""

    def __init__(self) -> None:
        from limits.strategies import MovingWindowRateLimiter

        self._strategy: Any = MovingWindowRateLimiter(_make_storage())
        self._rates: dict[str, RateLimitItem] = {}
        self._lock = Lock()

    def hit(self, rates: Sequence[str], *identifiers: str) -> tuple[float, str]:
        """Count a call if every rate allows it.

        Returns 0 and "" if the call is allowed; otherwise the seconds to wait and the rate that
        requires it. A call that is not allowed counts for no rate.
        """
        with self._lock:
            waits = [
                (self._seconds_until_allowed(self._parse_rate(rate), identifiers), rate)
                for rate in rates
            ]
            longest = max(waits, default=(0.0, ""))
            if longest[0]:
                return longest
            for rate in rates:
                self._strategy.hit(self._parse_rate(rate), *identifiers)
        return 0.0, ""

    def _parse_rate(self, rate: str) -> RateLimitItem:
        item = self._rates.get(rate)
        if item is None:
            from limits import parse

            item = self._rates[rate] = parse(rate)
        return item

    def _seconds_until_allowed(self, item: RateLimitItem, identifiers: tuple[str, ...]) -> float:
        if self._strategy.test(item, *identifiers):
            return 0.0
        return max(
            self._strategy.get_window_stats(item, *identifiers).reset_time - monotonic(), 0.001
        )


def _make_storage() -> Any:
    """Return a RateWindowStorage that implements the storage interface of `limits`."""
    from limits.storage import MovingWindowSupport, Storage

    class LimitsStorage(RateWindowStorage, Storage, MovingWindowSupport):
        """A storage that supports moving windows only."""

        @property
        def base_exceptions(self) -> Any:
            return ()

        def incr(self, key: str, expiry: int, amount: int = 1) -> int:
            raise NotImplementedError("only moving windows are supported")

        def get(self, key: str) -> int:
            return self.get_moving_window(key, 0, 0)[1]

        def get_expiry(self, key: str) -> float:
            return self.get_moving_window(key, 0, 0)[0]

        def check(self) -> bool:
            return True

    return LimitsStorage()
