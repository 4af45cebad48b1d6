"""The head of an audit log: where the log begins and ends, in a file of its own, under a lock.

    NUMBER SUM NUMBER PREV SEAL
    └ of the last line ┘└ of the oldest that is kept, and the sum of the one before it ┘

So lines are missed that were cut off at either end: what was dropped because a new file was begun
is told from what somebody removed.
"""

from __future__ import annotations

import os
from time import monotonic, sleep

from tooli.core.call_fingerprint import digest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import TypeAlias

    ChainLink: TypeAlias = tuple[int, str]
    """The number of a line, and its sum or that of the line before it."""

LOCK_TIMEOUT_SECONDS, EVENT_LOOP_LOCK_TIMEOUT_SECONDS = 5.0, 0.5
"""Seconds to wait for others to finish their lines; a loop has others to serve meanwhile."""
_SUM_BYTES = 16  # bytes of a sum
_EMPTY_SUM = "-" * 2 * _SUM_BYTES  # as wide as any other: a head is written over the one before
FIRST_LINK = (1, "")
"""How a log begins of which nothing was dropped."""


class AuditHead:
    """The last line of a log and its first one; locked while it is open."""

    def __init__(
        self, path: str, lock_timeout: float = LOCK_TIMEOUT_SECONDS, *, read_only: bool = False
    ) -> None:
        self._path = f"{path}.head"
        self._lock_timeout = lock_timeout
        self._file = -1  # there is none
        self._flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
        self._flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

    def __enter__(self) -> AuditHead:
        try:
            self._file = os.open(self._path, self._flags, 0o600)
        except FileNotFoundError:
            if self._flags & os.O_CREAT:
                raise
            return self
        try:
            _lock(self._file, self._lock_timeout)
        except OSError:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file < 0:
            return
        _unlock(self._file)  # said, not left to closing: a forked child has the file open, too
        os.close(self._file)

    def read(self, key: bytes) -> tuple[ChainLink, ChainLink] | None:
        """Where the log ends and begins; None where nothing can be trusted that says so."""
        fields = read_at(self._file, 200, 0).split() if self._file >= 0 else []
        if (
            len(fields) != 5
            or digest(b" ".join(fields[:4]), _SUM_BYTES, key).hex().encode() != fields[4]
        ):
            return None
        last, last_sum, first, prev = [field.decode() for field in fields[:4]]
        return (int(last), last_sum), (int(first), "" if prev == _EMPTY_SUM else prev)

    def write(self, last: ChainLink, first: ChainLink, key: bytes) -> None:
        """Go on to the next line."""
        body = f"{last[0]:020d} {last[1] or _EMPTY_SUM} {first[0]:020d} {first[1] or _EMPTY_SUM}".encode()
        data = body + b" " + digest(body, _SUM_BYTES, key).hex().encode() + b"\n"
        os.lseek(self._file, 0, os.SEEK_SET)
        if os.write(self._file, data) != len(data):
            raise OSError(28, "No space left for the head")


def read_at(file: int, length: int, offset: int) -> bytes:
    """Some bytes of a file, from there on."""
    if hasattr(os, "pread"):
        return os.pread(file, length, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, length)


# ------------------------------------------------------------------ the lock


def _lock(file: int, timeout: float) -> None:
    """Wait for the lock, but not for ever: a stopped process may hold it."""
    deadline = monotonic() + timeout
    while True:
        try:
            return _try_lock(file)
        except (BlockingIOError, PermissionError):
            if monotonic() >= deadline:
                raise OSError(11, "another process keeps it locked") from None
            sleep(0.001)


def _try_lock(file: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: a byte far behind the end is locked instead of the file
        import msvcrt

        os.lseek(file, 4096, os.SEEK_SET)
        getattr(msvcrt, "locking")(file, getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(file: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        os.lseek(file, 4096, os.SEEK_SET)
        getattr(msvcrt, "locking")(file, getattr(msvcrt, "LK_UNLCK"), 1)  # noqa: B009
        return
    fcntl.flock(file, fcntl.LOCK_UN)
