"""Limits per caller: how many requests, connections and sessions one caller may have open.

Only servers over HTTP use this module.
"""

from __future__ import annotations


def caller_share(limit: int) -> int:
    """Return how much of a limit one caller may use: three quarters, so that others have room."""
    return max(1, limit - max(1, limit // 4))


class CallerLimit:
    """Counts what each caller has open, and limits it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._counts: dict[str, int] = {}

    def acquire(self, caller: str, others: int = 0) -> bool:
        """Count one more for a caller; return False if the caller is at the limit.

        `others` are open too, but they are counted elsewhere.
        """
        count = self._counts.get(caller, 0)
        if count + others >= self.limit:
            return False
        self._counts[caller] = count + 1
        return True

    def force_acquire(self, caller: str) -> None:
        """Count one more for a caller, even if the caller is at the limit."""
        self._counts[caller] = self._counts.get(caller, 0) + 1

    def release(self, caller: str) -> None:
        """Count one less for a caller."""
        count = self._counts[caller]
        if count > 1:
            self._counts[caller] = count - 1
        else:
            del self._counts[caller]
