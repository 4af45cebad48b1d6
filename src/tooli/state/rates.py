"""Rates: how often each caller has run each command lately, in this process.

`limits` knows what a moving window is; it comes with tooli[http] and tooli[mcp]. The windows are
kept here, because its own store in memory forgets no caller that ever came: ours has room for so
many calls, and lets go of those that were away the longest.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections import deque
    from typing import Any

MOST_CALLERS = 4096
MOST_CALLS = 500_000
"""How many callers' windows are kept, and how many calls in all of them."""


class Windows:
    """When calls were made, by caller and command: the part of a store that moving windows need."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[str, deque[float]] = {}
        self._count = 0

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Write a call down, where there may be one more."""
        from collections import deque

        with self._lock:
            made = self._made.pop(key, None) or deque[float]()
            self._made[key] = made  # the last one: it was here just now
            self._drop(made, expiry)
            fits = len(made) + amount <= limit
            if fits:
                made.extend([monotonic()] * amount)
                self._count += amount
            self._make_room()
        return fits

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest call of a window was made, and how many there are."""
        with self._lock:
            made = self._made.get(key)
            if made:
                self._drop(made, expiry)
            return (made[0], len(made)) if made else (monotonic(), 0)

    def _drop(self, made: deque[float], expiry: int) -> None:
        oldest = monotonic() - expiry
        while made and made[0] <= oldest:
            made.popleft()
            self._count -= 1

    def _make_room(self) -> None:
        while len(self._made) > MOST_CALLERS or (self._count > MOST_CALLS and len(self._made) > 1):
            self._count -= len(self._made.pop(next(iter(self._made))))

    def clear(self, key: str) -> None:
        """Forget a caller."""
        with self._lock:
            self._count -= len(self._made.pop(key, ()))

    def reset(self) -> int | None:
        """Forget everybody."""
        with self._lock:
            held = len(self._made)
            self._made.clear()
            self._count = 0
        return held


class Limiter:
    """Says to whom a call is one too many, and for how long."""

    def __init__(self) -> None:
        from limits.strategies import MovingWindowRateLimiter

        self._windows: Any = MovingWindowRateLimiter(_store())
        self._rates: dict[str, Any] = {}

    def hit(self, rate: str, *names: str) -> float:
        """Count a call; 0 where it may be made, else the seconds until one may."""
        item = self._rates.get(rate)
        if item is None:
            from limits import parse

            item = self._rates[rate] = parse(rate)
        if self._windows.hit(item, *names):
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
            return len(self._made.get(key, ()))

        def get_expiry(self, key: str) -> float:
            return self._made[key][0] if self._made.get(key) else monotonic()

        def check(self) -> bool:
            return True

    return Store()
