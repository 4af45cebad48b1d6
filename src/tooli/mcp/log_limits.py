"""Limit how many lines the SDK logs, because clients can trigger them without end."""

from __future__ import annotations

import logging
from threading import Lock
from time import monotonic

MAX_LINES = 10
"""Maximum number of lines per minute that one statement of the SDK logs."""
_SECONDS = 60


class LogLimit(logging.Filter):
    """A filter for records. The first record of the next minute has the number of dropped ones."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._counts: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is logged."""
        statement = (record.pathname, record.lineno)
        with self._lock:
            now = monotonic()
            started, count = self._counts.get(statement, (now, 0))
            dropped = 0
            if now - started >= _SECONDS:
                dropped, started, count = max(0, count - MAX_LINES), now, 0
            self._counts[statement] = started, count + 1
        if dropped:
            record.msg = f"{record.getMessage()} (and {dropped} more lines were not logged)"
            record.args = None
        return count < MAX_LINES


_limit = LogLimit()


def limit_sdk_logs() -> None:
    """Limit the lines of all loggers of the SDK. Several calls have the effect of one."""
    for name in list(logging.root.manager.loggerDict):
        if name == "mcp" or name.startswith("mcp."):
            logging.getLogger(name).addFilter(_limit)
