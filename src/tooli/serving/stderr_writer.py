"""Write lines to stderr, and never wait for a reader that has stopped reading.

    write_line ──▶ stderr                          if there is room
               └─▶ queue ──▶ thread ──▶ stderr     if the write could wait

A parent process that starts a server with a pipe for stderr may stop reading it. Then the pipe
becomes full, and a write waits. Without the thread, the server would no longer answer requests.
When the queue is full as well, lines are dropped and counted.
"""

from __future__ import annotations

import atexit
import os
import select
import stat
import sys
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic, sleep

MAX_PENDING = 10_000
"""Maximum number of lines that wait for a reader."""

_HAS_PIPE_SIZE = sys.platform == "linux"

_PIPE_RESERVE = 16 << 10
"""Bytes of a pipe that are kept free, because other processes may write to it at the same time."""


def write_line(text: str) -> None:
    """Write a line to `sys.stderr`, now or as soon as it is read. A closed stderr is no error."""
    stream = sys.stderr
    try:
        if stream is sys.__stderr__:
            _current().write((text + "\n").encode("utf-8", "backslashreplace"))
        else:  # replaced by a test or by the app
            stream.write(text + "\n")
            stream.flush()
    except (OSError, ValueError, AttributeError):
        return


def flush(timeout: float) -> None:
    """Wait a limited time until all lines are written."""
    deadline = monotonic() + timeout
    while _writer is not None and _writer.pending and monotonic() < deadline:
        sleep(0.01)


class StderrWriter:
    """Writes to a descriptor. It starts its thread when a write could wait for the first time."""

    def __init__(self, descriptor: int, max_pending: int = MAX_PENDING) -> None:
        self.pid = os.getpid()
        self.pending = 0
        self._descriptor = descriptor
        self._max_pending = max_pending
        self._dropped = 0
        self._lock = Lock()
        self._queue: SimpleQueue[bytes] | None = None

    def write(self, data: bytes) -> None:
        """Write a line now if there is room; otherwise let the thread write it."""
        with self._lock:
            if not self.pending and has_room(self._descriptor, len(data)):
                _write_all(self._descriptor, data)
            elif self.pending >= self._max_pending:
                self._dropped += 1
            else:
                self.pending += 1
                self._start().put(data)

    def _start(self) -> SimpleQueue[bytes]:
        if self._queue is None:
            self._queue = SimpleQueue()
            atexit.register(flush, 1.0)
            Thread(target=self._run, args=(self._queue,), name="stderr", daemon=True).start()
        return self._queue

    def _run(self, queue: SimpleQueue[bytes]) -> None:
        while True:
            data = queue.get()
            with self._lock:
                dropped, self._dropped = self._dropped, 0
            if dropped:
                data += f"{dropped} lines were dropped, because nobody read them\n".encode()
            _write_all(self._descriptor, data)
            with self._lock:
                self.pending -= 1


_writer: StderrWriter | None = None


def _current() -> StderrWriter:
    """Return the writer of this process. A forked process has no thread of its parent."""
    global _writer
    if _writer is None or _writer.pid != os.getpid():
        _writer = StderrWriter(sys.__stderr__.fileno())  # pyright: ignore[reportOptionalMemberAccess]
    return _writer


def has_room(descriptor: int, size: int) -> bool:
    """True if a write certainly does not wait. Without `select.poll`, only files are certain."""
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return True
        if size > select.PIPE_BUF:
            return False
        if _HAS_PIPE_SIZE and stat.S_ISFIFO(mode):
            return _pipe_room(descriptor) >= size
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return any([event & select.POLLOUT for _, event in poll.poll(0)])
    except (AttributeError, OSError):
        return False


def _pipe_room(descriptor: int) -> int:
    """Return the number of bytes that this process may write to a pipe without waiting."""
    from fcntl import F_GETPIPE_SZ, fcntl, ioctl
    from termios import FIONREAD

    unread = int.from_bytes(ioctl(descriptor, FIONREAD, bytes(4)), sys.byteorder)
    capacity: int = fcntl(descriptor, F_GETPIPE_SZ)
    return capacity - unread - min(_PIPE_RESERVE, capacity // 2)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all data. A reader that has gone is no error of the server."""
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except OSError:
            return
