"""Rates: how often each caller has run each command lately, in this process.

`limits` knows what a moving window is; it comes with tooli[http] and tooli[mcp]. The windows are
kept here, because its own store in memory forgets no caller that ever came: ours has room for so
many, and where it is full of those that still count, lets go of who was away the longest.
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

MAX_WINDOWS = 65_536
MAX_RECORDED_CALLS = 500_000
"""How many windows are kept, one for each caller and command, and how many calls in all of them."""
_EVICTION_DIVISOR = (
    8  # of all windows: so many go at a time, so that not every call looks through them
)


class RateWindow:
    """When a caller made its calls, oldest first, and for how many seconds each counts."""

    __slots__ = ("expiry", "timestamps")

    def __init__(self, expiry: int) -> None:
        self.expiry = expiry
        self.timestamps: array[float] = array("d")

    def discard_expired(self, now: float) -> int:
        """Forget what does not count any more; how many these were."""
        expired = bisect_right(self.timestamps, now - self.expiry)
        del self.timestamps[:expired]
        return expired


class RateWindowStorage:
    """When calls were made, by caller and command: the part of a store that moving windows need."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: dict[str, RateWindow] = {}
        self._count = 0

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Write a call down, where there may be one more."""
        with self._lock:
            window = self._windows.pop(key, None) or RateWindow(expiry)
            self._windows[key] = window  # the last one: it was here just now
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
        """When the oldest call of a window was made, and how many there are."""
        with self._lock:
            window, now = self._windows.get(key), monotonic()
            if window is None:
                return now, 0
            self._count -= window.discard_expired(now)
            return (window.timestamps[0], len(window.timestamps)) if window.timestamps else (now, 0)

    def _evict(self, now: float) -> None:
        """Let go of windows that count for nothing; then, if need be, of those unused the longest,
        but never of the one that was used last."""
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
        """Forget a caller."""
        with self._lock:
            window = self._windows.pop(key, None)
            self._count -= len(window.timestamps) if window is not None else 0

    def reset(self) -> int | None:
        """Forget everybody."""
        with self._lock:
            count = len(self._windows)
            self._windows.clear()
            self._count = 0
        return count


class RateLimiter:
    """Says to whom a call is one too many, and for how long."""

    def __init__(self) -> None:
        from limits.strategies import MovingWindowRateLimiter

        self._windows: Any = MovingWindowRateLimiter(_make_storage())
        self._rates: dict[str, Any] = {}
        self._lock = Lock()

    def hit(self, rates: Sequence[str], *identifiers: str) -> tuple[float, str]:
        """Count a call where every rate lets it pass, and else by none of them.

        0 where it may be made; otherwise the seconds until one may, and the rate that says so.
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
                self._windows.hit(self._parse_rate(rate), *identifiers)
        return 0.0, ""

    def _parse_rate(self, rate: str) -> Any:
        item = self._rates.get(rate)
        if item is None:
            from limits import parse

            item = self._rates[rate] = parse(rate)
        return item

    def _seconds_until_allowed(self, item: Any, identifiers: tuple[str, ...]) -> float:
        if self._windows.test(item, *identifiers):
            return 0.0
        return max(
            self._windows.get_window_stats(item, *identifiers).reset_time - monotonic(), 0.001
        )


def _make_storage() -> Any:
    """The windows, as a store that `limits` takes."""
    from limits.storage import MovingWindowSupport, Storage

    class Store(RateWindowStorage, Storage, MovingWindowSupport):
        """Moving windows and nothing else: counters of fixed ones are not kept."""

        @property
        def base_exceptions(self) -> Any:
            return ()

        def incr(self, key: str, expiry: int, amount: int = 1) -> int:
            raise NotImplementedError("there are moving windows only")

        def get(self, key: str) -> int:
            return self.get_moving_window(key, 0, 0)[1]

        def get_expiry(self, key: str) -> float:
            return self.get_moving_window(key, 0, 0)[0]

        def check(self) -> bool:
            return True

    return Store()
