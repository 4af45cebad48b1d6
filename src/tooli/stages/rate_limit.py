"""Limit how often a caller may run a command on a server.

The recent calls of each caller to each command are counted in this process, in moving windows. The
total size of the windows is limited. Beyond the limit, the least recently used ones are dropped.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from math import ceil
from threading import Lock
from time import monotonic

from tooli.core.caller_key import caller_key
from tooli.errors import Suggestion, TemporaryError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.core import AppState
    from tooli.core.call import Call, Caller, Stage, StageRun
    from tooli.core.tool import Tool
    from tooli.pipeline import StageContext

MAX_WINDOWS = 65_536
MAX_RECORDED_CALLS = 500_000
"""Maximum number of windows, one per rate, caller and command, and of calls in all of them."""
_EVICTION_DIVISOR = 8  # one eighth is dropped at a time, so that eviction is rare
_UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


class _RateWindow:
    """The times of a caller's calls, oldest first, and how many are allowed in how many seconds."""

    __slots__ = ("limit", "seconds", "timestamps")

    def __init__(self, rate: str) -> None:
        count, _, unit = rate.partition("/")
        self.limit, self.seconds = int(count), _UNIT_SECONDS[unit]
        self.timestamps: array[float] = array("d")

    def discard_expired(self, now: float) -> int:
        """Drop expired calls; return how many there were."""
        expired = bisect_right(self.timestamps, now - self.seconds)
        del self.timestamps[:expired]
        return expired

    def seconds_until_allowed(self, now: float) -> float:
        """Return the seconds to wait before the next call; 0 if it is allowed now."""
        if len(self.timestamps) < self.limit:
            return 0.0
        return max(self.timestamps[0] + self.seconds - now, 0.001)


class RateLimiter:
    """Decides whether a caller has reached a rate limit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: dict[tuple[str, ...], _RateWindow] = {}  # the most recently used last
        self._count = 0

    def hit(self, counters: Iterable[tuple[str, str]], caller: str) -> tuple[float, str]:
        """Count a call of a caller if every rate allows it.

        A counter is a rate and the key under which it counts, such as the id of the command.
        Returns 0 and "" if the call is allowed; otherwise the seconds to wait and the rate that
        requires it. A call that is not allowed is not counted.
        """
        with self._lock:
            now = monotonic()
            keys = [(rate, caller, key) for rate, key in counters]
            windows = {key: self._get_window(key, now) for key in keys}
            waits = [(window.seconds_until_allowed(now), key[0]) for key, window in windows.items()]
            longest = max(waits, default=(0.0, ""))
            if longest[0]:
                return longest
            for key, window in windows.items():
                self._windows.pop(key, None)
                self._windows[key] = window
                window.timestamps.append(now)
                self._count += 1
            if len(self._windows) > MAX_WINDOWS or self._count > MAX_RECORDED_CALLS:
                self._evict(now)
        return 0.0, ""

    def is_exhausted(self, counters: Iterable[tuple[str, str]], caller: str) -> bool:
        """True if the next call would not be allowed. Counts nothing."""
        with self._lock:
            now = monotonic()
            windows = [self._get_window((rate, caller, name), now) for rate, name in counters]
        return any([window.seconds_until_allowed(now) for window in windows])

    def _get_window(self, key: tuple[str, ...], now: float) -> _RateWindow:
        window = self._windows.get(key) or _RateWindow(key[0])
        self._count -= window.discard_expired(now)
        return window

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


_limiter = RateLimiter()


def limit_rate(context: StageContext) -> Stage | None:
    """Reject calls to a server that exceed a rate limit.

    Both the rate limit of the command and that of the settings apply. The calls of a command count
    together, by whichever path and as whichever resource it is called. Rejected calls do not count.
    """
    if not context.caller.is_remote:
        return None
    counters = _read_counters(context.tool, context.state)

    def check_rate(call: Call) -> StageRun:
        wait, rate = _limiter.hit(counters, caller_key(call.caller.principal, call.caller.address))
        if wait:
            raise _rate_limit_error(call, rate, wait)
        return (yield call)

    return check_rate


def is_rate_limited(tool: Tool, state: AppState, caller: Caller) -> bool:
    """True if the next call of a remote caller would exceed a rate limit."""
    counters = _read_counters(tool, state)
    return bool(counters) and _limiter.is_exhausted(
        counters, caller_key(caller.principal, caller.address)
    )


def _read_counters(tool: Tool, state: AppState) -> list[tuple[str, str]]:
    """Return the rate limits that apply to a command, each with the name it is counted under."""
    counters = [*tool.limits.rate_counters]
    if tool.limits.rate_limit is not None and not counters:
        counters = [(tool.limits.rate_limit, tool.id)]
    rate_setting = state.security_settings.get("rate_limit")
    if rate_setting is not None:
        counters.append((rate_setting, tool.id))
    return counters


def _rate_limit_error(call: Call, rate: str, wait: float) -> Exception:
    seconds = max(ceil(wait), 1)
    return TemporaryError(
        f"{call.tool.name} may be called {rate.replace('/', ' times a ')}. The limit is reached.",
        code="E4029",
        suggestion=Suggestion("retry_later", f"Wait {seconds} s, then call it again."),
        details={"retry_after": seconds, "rate_limit": rate},
    )
