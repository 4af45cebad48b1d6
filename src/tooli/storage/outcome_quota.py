"""OutcomeQuota: how much of the idempotency store the remote callers of a server use.

Each process counts in its own memory what its callers have stored within the retention time, in
intervals of one hour.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic

from tooli.storage.idempotency_store import RETENTION_SECONDS

MAX_BYTES_PER_CALLER = 256 << 20
"""Maximum size of the outcomes of one caller that a process stores. Further ones are not stored."""
MAX_KEYS_PER_CALLER = 100_000
"""Maximum number of keys of one caller that a process stores. Further calls are refused."""
MAX_READ_ONLY_BYTES = 1 << 16
"""A larger outcome of a read-only command is not stored: the command may run again."""
_INTERVAL_SECONDS = 3600


class OutcomeQuota:
    """Counts the keys and bytes that each caller has stored."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stored: dict[str, dict[int, tuple[int, int]]] = {}  # caller → hour → keys and bytes

    def has_key_left(self, caller: str) -> bool:
        """True if the caller may use one more key."""
        with self._lock:
            return self._usage(caller)[0] < MAX_KEYS_PER_CALLER

    def count(self, caller: str, size: int) -> bool:
        """Count a key. Return False if its outcome, which is then not counted, is too large."""
        with self._lock:
            _, byte_count = self._usage(caller)
            is_stored = byte_count + size <= MAX_BYTES_PER_CALLER
            hours, hour = self._stored.setdefault(caller, {}), self._hour()
            keys, stored_bytes = hours.get(hour, (0, 0))
            hours[hour] = keys + 1, stored_bytes + (size if is_stored else 0)
            return is_stored

    def _usage(self, caller: str) -> tuple[int, int]:
        """Return the number of keys and bytes of a caller that are still stored."""
        hours = self._stored.get(caller, {})
        oldest = self._hour() - RETENTION_SECONDS // _INTERVAL_SECONDS
        for hour in [hour for hour in hours if hour < oldest]:
            del hours[hour]
        counts = hours.values()
        return sum([keys for keys, _ in counts]), sum([size for _, size in counts])

    def _hour(self) -> int:
        return int(monotonic() // _INTERVAL_SECONDS)


remote_quota = OutcomeQuota()
"""The quota of this process."""
