"""Write the lines of a stream in groups when they come fast.

One write for each line wakes up the reader of the pipe for each line, which takes longer than to
make the line. The first lines are written at once. After that, a thread writes the lines that have
collected every few milliseconds, so a line never waits for the next one.
"""

from __future__ import annotations

import os
from threading import Event, Lock, Thread
from time import sleep

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DIRECT_LINES = 64
"""Number of lines at the start of a stream that are written one by one."""
MAX_BUFFERED_BYTES = 1 << 16
"""Lines of this size are written without a delay."""
MAX_DELAY_SECONDS = 0.005
"""Time after which a line is written, even if no other line follows."""
MAX_WAIT_SECONDS = 1.0
"""Time that an interrupted stream waits for its reader."""


class LineBuffer:
    """Collects lines and writes them with `write_data`, from one thread at a time.

    If writing fails in the thread, the next call of `write` or `close` raises the error.
    """

    def __init__(self, write_data: Callable[[bytes], None]) -> None:
        self._write_data = write_data
        self._lines: list[bytes] = []
        self._size = 0
        self._direct_count = 0
        self._lock = Lock()  # held while lines are written
        self._has_lines = Event()
        self._thread: Thread | None = None
        self._is_closed = False
        self._failure: Exception | None = None

    def write(self, line: bytes) -> None:
        """Write a line, now or a few milliseconds later."""
        if self._direct_count < MAX_DIRECT_LINES:
            self._direct_count += 1
            self._write_data(line + b"\n")
            return
        self._lines.append(line)
        self._size += len(line)
        if self._size >= MAX_BUFFERED_BYTES or self._failure is not None:
            self.flush()
        elif not self._has_lines.is_set():
            if self._thread is None:
                self._start_thread()
            self._has_lines.set()

    def flush(self) -> None:
        """Write the lines that have collected."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._write_collected()

    def close(self) -> None:
        """Write the remaining lines and stop the thread."""
        self._is_closed = True
        self._has_lines.set()
        self.flush()

    def discard(self) -> None:
        """Stop the thread. Write the remaining lines, unless the reader keeps it waiting."""
        self._is_closed = True
        self._has_lines.set()
        if self._lock.acquire(timeout=MAX_WAIT_SECONDS):
            try:
                if self._failure is None:
                    self._write_collected()
            finally:
                self._lock.release()

    def _write_collected(self) -> None:
        self._has_lines.clear()
        self._size = 0
        count = len(self._lines)  # `write` may add lines meanwhile
        lines = self._lines[:count]
        del self._lines[:count]
        if lines:
            lines.append(b"")
            self._write_data(b"\n".join(lines))

    # -------------------------------------------------------------- the thread

    def _start_thread(self) -> None:
        if hasattr(os, "register_at_fork"):
            _stop_at_fork(self)
        self._thread = Thread(target=self._run, daemon=True, name="tooli-lines")
        self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            self._has_lines.wait()
            if not self._is_closed:
                sleep(MAX_DELAY_SECONDS)
            with self._lock:
                try:
                    self._write_collected()
                except Exception as failure:
                    self._failure = failure
                    return

    def _stop_thread(self) -> None:
        """Write the lines and stop the thread, before the process forks.

        A process with several threads cannot be forked safely. The next line starts the thread
        again.
        """
        thread, self._thread = self._thread, None
        if thread is None or self._is_closed:
            return
        self._is_closed = True
        self._has_lines.set()
        thread.join()
        self._is_closed = False
        try:
            self.flush()
        except Exception as failure:
            self._failure = failure


_active: list[LineBuffer] = []


def _stop_at_fork(buffer: LineBuffer) -> None:
    if not _active:
        os.register_at_fork(before=lambda: _active[-1]._stop_thread())
    _active[:] = [buffer]
