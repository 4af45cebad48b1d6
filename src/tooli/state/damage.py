"""A ledger that cannot be read: set aside, not repaired, and not forgotten.

As long as it may hold keys that somebody counts on, what must run but once does not run.
"""

from __future__ import annotations

import os
from time import time

from tooli.state.ledger import KEPT, Unavailable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def recent_gap(path: str) -> str | None:
    """A database that was set aside and may hold keys that somebody still counts on."""
    home, name = os.path.split(path)
    start = f"{name}.damaged-"
    for found in os.listdir(home):
        when = found[len(start) :] if found.startswith(start) else ""
        if when.isdigit() and int(when) / 1000 > time() - KEPT:
            return os.path.join(home, found)
    return None


def set_aside(path: str) -> str:
    """Rename a database that cannot be read; of many who find it so, one does.

    Where it is left, for whoever can still make something of it.
    """
    with _Alone(f"{path}.lock"):
        if _is_sound(path):  # another process was faster
            return recent_gap(path) or path
        aside = f"{path}.damaged-{int(time() * 1000)}"
        try:
            for end in ("-wal", "-shm", ""):  # a new database must not find an old one's log
                if os.path.exists(path + end):
                    os.rename(path + end, aside + end)
        except OSError:
            return path
        return aside


def _is_sound(path: str) -> bool:
    sqlite3 = sqlite()
    try:
        base = sqlite3.connect(path, timeout=1.0)
        try:
            return base.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        finally:
            base.close()
    except sqlite3.Error as failure:
        return is_busy(failure)


def sqlite() -> Any:
    """SQLite as Python has it: the C half alone, for the other one imports `datetime`."""
    try:
        import _sqlite3 as module  # pyright: ignore
    except ImportError:
        import sqlite3 as module
    return module  # pyright: ignore


class _Alone:
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


def damaged(aside: str, failure: Exception) -> Unavailable:
    """What is said where a database turns out to be damaged."""
    return Unavailable(
        f"The record of idempotency keys cannot be read ({failure}): see {aside}.",
        _settle(aside),
        damaged=aside,
    )


def gap(aside: str) -> Unavailable:
    """What is said as long as that matters."""
    return Unavailable(
        f"The record of idempotency keys was damaged, and what it held is not known: {aside}.",
        _settle(aside),
        damaged=aside,
    )


def _settle(aside: str) -> str:
    hours = int(KEPT // 3600)
    return (
        f"Find out which calls of the last {hours} hours took effect; then delete {aside}, "
        "and keys are taken again."
    )
