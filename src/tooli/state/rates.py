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

MOST_WINDOWS = 65_536
MOST_CALLS = 500_000
"""How many windows are kept, one for each caller and command, and how many calls in all of them."""
_PART = 8  # of all windows: so many go at a time, so that not every call looks through them


class Window:
    """When a caller made its calls, oldest first, and for how many seconds each counts."""

    __slots__ = ("expiry", "made")

    def __init__(self, expiry: int) -> None:
        self.expiry = expiry
        self.made: array[float] = array("d")

    def drop(self, now: float) -> int:
        """Forget what does not count any more; how many these were."""
        gone = bisect_right(self.made, now - self.expiry)
        del self.made[:gone]
        return gone


class Windows:
    """When calls were made, by caller and command: the part of a store that moving windows need."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: dict[str, Window] = {}
        self._count = 0

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Write a call down, where there may be one more."""
        with self._lock:
            window = self._windows.pop(key, None) or Window(expiry)
            self._windows[key] = window  # the last one: it was here just now
            now = monotonic()
            self._count -= window.drop(now)
            fits = len(window.made) + amount <= limit
            if fits:
                window.made.extend([now] * amount)
                self._count += amount
            if len(self._windows) > MOST_WINDOWS or self._count > MOST_CALLS:
                self._make_room(now)
        return fits

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest call of a window was made, and how many there are."""
        with self._lock:
            window, now = self._windows.get(key), monotonic()
            if window is None:
                return now, 0
            self._count -= window.drop(now)
            return (window.made[0], len(window.made)) if window.made else (now, 0)

    def _make_room(self, now: float) -> None:
        """Let go of windows that count for nothing; then, if need be, of those unused the longest,
        but never of the one that was used last."""
        for key, window in list(self._windows.items()):
            self._count -= window.drop(now)
            if not window.made:
                del self._windows[key]
        most = MOST_WINDOWS - MOST_WINDOWS // _PART
        calls = MOST_CALLS - MOST_CALLS // _PART
        for key in list(self._windows)[:-1]:
            if len(self._windows) <= most and self._count <= calls:
                break
            self._count -= len(self._windows.pop(key).made)

    def clear(self, key: str) -> None:
        """Forget a caller."""
        with self._lock:
            window = self._windows.pop(key, None)
            self._count -= len(window.made) if window is not None else 0

    def reset(self) -> int | None:
        """Forget everybody."""
        with self._lock:
            held = len(self._windows)
            self._windows.clear()
            self._count = 0
        return held


class Limiter:
    """Says to whom a call is one too many, and for how long."""

    def __init__(self) -> None:
        from limits.strategies import MovingWindowRateLimiter

        self._windows: Any = MovingWindowRateLimiter(_store())
        self._rates: dict[str, Any] = {}
        self._lock = Lock()

    def hit(self, rates: Sequence[str], *names: str) -> tuple[float, str]:
        """Count a call where every rate lets it pass, and else by none of them.

        0 where it may be made; otherwise the seconds until one may, and the rate that says so.
        """
        with self._lock:
            waits = [(self._wait(self._read(rate), names), rate) for rate in rates]
            longest = max(waits, default=(0.0, ""))
            if longest[0]:
                return longest
            for rate in rates:
                self._windows.hit(self._read(rate), *names)
        return 0.0, ""

    def _read(self, rate: str) -> Any:
        item = self._rates.get(rate)
        if item is None:
            from limits import parse

            item = self._rates[rate] = parse(rate)
        return item

    def _wait(self, item: Any, names: tuple[str, ...]) -> float:
        if self._windows.test(item, *names):
            return 0.0
        return max(self._windows.get_window_stats(item, *names).reset_time - monotonic(), 0.001)


def _store() -> Any:
    """The windows, as a store that `limits` takes."""
    from limits.storage import MovingWindowSupport, Storage

    class Store(Windows, Storage, MovingWindowSupport):
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
