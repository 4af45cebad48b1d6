"""A ledger that cannot be read: set aside, not repaired, and not forgotten.

As long as it may hold keys that somebody counts on, what must run but once does not run.
"""

from __future__ import annotations

import os
from time import time

from tooli.storage.idempotency_store import RETENTION_SECONDS, StoreUnavailable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def find_recent_quarantine(path: str) -> str | None:
    """A database that was set aside and may hold keys that somebody still counts on."""
    folder, name = os.path.split(path)
    prefix = f"{name}.damaged-"
    for found in os.listdir(folder):
        timestamp = found[len(prefix) :] if found.startswith(prefix) else ""
        if timestamp.isdigit() and int(timestamp) / 1000 > time() - RETENTION_SECONDS:
            return os.path.join(folder, found)
    return None


def quarantine_database(path: str) -> str:
    """Rename a database that cannot be read; of many who find it so, one does.

    Where it is left, for whoever can still make something of it.
    """
    with _ProcessLock(f"{path}.lock"):
        if _is_intact(path):  # another process was faster
            return find_recent_quarantine(path) or path
        quarantined = f"{path}.damaged-{int(time() * 1000)}"
        try:
            for suffix in ("-wal", "-shm", ""):  # a new database must not find an old one's log
                if os.path.exists(path + suffix):
                    os.rename(path + suffix, quarantined + suffix)
        except OSError:
            return path
        return quarantined


def _is_intact(path: str) -> bool:
    sqlite3 = load_sqlite()
    try:
        connection = sqlite3.connect(path, timeout=1.0)
        try:
            return connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        finally:
            connection.close()
    except sqlite3.Error as failure:
        return is_busy(failure)


def load_sqlite() -> Any:
    """SQLite as Python has it: the C half alone, for the other one imports `datetime`."""
    try:
        import _sqlite3 as module  # pyright: ignore
    except ImportError:
        import sqlite3 as module
    return module  # pyright: ignore


class _ProcessLock:
    """While it is held, no other process sets anything aside."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None

    def __enter__(self) -> None:
        try:
            import fcntl

            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except (ImportError, OSError):
            pass  # without it, two may try: the second finds a sound one

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)


def is_busy(failure: Exception) -> bool:
    """Whether SQLite only says that somebody else has a lock."""
    text = str(failure)
    return "locked" in text or "busy" in text


def make_damaged_error(quarantined_path: str, failure: Exception) -> StoreUnavailable:
    """What is said where a database turns out to be damaged."""
    return StoreUnavailable(
        f"The record of idempotency keys cannot be read ({failure}): see {quarantined_path}.",
        _recovery_hint(quarantined_path),
        damaged_path=quarantined_path,
    )


def make_quarantined_error(quarantined_path: str) -> StoreUnavailable:
    """What is said as long as that matters."""
    return StoreUnavailable(
        f"The record of idempotency keys was damaged, and what it held is not known: {quarantined_path}.",
        _recovery_hint(quarantined_path),
        damaged_path=quarantined_path,
    )


def _recovery_hint(quarantined_path: str) -> str:
    hours = int(RETENTION_SECONDS // 3600)
    return (
        f"Find out which calls of the last {hours} hours took effect; then delete {quarantined_path}, "
        "and keys are taken again."
    )
