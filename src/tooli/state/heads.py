"""The head of an audit log: where the log begins and ends, in a file of its own, under a lock.

    NUMBER SUM NUMBER PREV SEAL
    └ of the last line ┘└ of the oldest that is kept, and the sum of the one before it ┘

So lines are missed that were cut off at either end: what was dropped because a new file was begun
is told from what somebody removed.
"""

from __future__ import annotations

import os
from time import monotonic, sleep

from tooli.call.canonical import digest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import TypeAlias

    Link: TypeAlias = tuple[int, str]
    """The number of a line, and its sum or that of the line before it."""

PATIENCE, PATIENCE_ON_A_LOOP = 5.0, 0.5
"""Seconds to wait for others to finish their lines; a loop has others to serve meanwhile."""
_SIZE = 16  # bytes of a sum
_NONE = "-" * 2 * _SIZE  # as wide as any other: a head is written over the one before
START = (1, "")
"""How a log begins of which nothing was dropped."""


class Head:
    """The last line of a log and its first one; locked while it is open."""

    def __init__(self, path: str, patience: float = PATIENCE, *, reading: bool = False) -> None:
        self._path = f"{path}.head"
        self._patience = patience
        self._file = -1  # there is none
        self._flags = os.O_RDONLY if reading else os.O_RDWR | os.O_CREAT
        self._flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

    def __enter__(self) -> Head:
        try:
            self._file = os.open(self._path, self._flags, 0o600)
        except FileNotFoundError:
            if self._flags & os.O_CREAT:
                raise
            return self
        try:
            _lock(self._file, self._patience)
        except OSError:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file < 0:
            return
        _unlock(self._file)  # said, not left to closing: a forked child has the file open, too
        os.close(self._file)

    def read(self, key: bytes) -> tuple[Link, Link] | None:
        """Where the log ends and begins; None where nothing can be trusted that says so."""
        words = read_at(self._file, 200, 0).split() if self._file >= 0 else []
        if len(words) != 5 or digest(b" ".join(words[:4]), _SIZE, key).hex().encode() != words[4]:
            return None
        last, total, first, prev = [word.decode() for word in words[:4]]
        return (int(last), total), (int(first), "" if prev == _NONE else prev)

    def write(self, last: Link, first: Link, key: bytes) -> None:
        """Go on to the next line."""
        said = f"{last[0]:020d} {last[1] or _NONE} {first[0]:020d} {first[1] or _NONE}".encode()
        data = said + b" " + digest(said, _SIZE, key).hex().encode() + b"\n"
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


def _lock(file: int, patience: float) -> None:
    """Wait for the lock, but not for ever: a stopped process may hold it."""
    until = monotonic() + patience
    while True:
        try:
            return _try_lock(file)
        except (BlockingIOError, PermissionError):
            if monotonic() >= until:
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
