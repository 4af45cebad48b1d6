"""Relay the output of a sandboxed process, which gets pipes instead of the caller's stdout.

    worker: stdout, stderr ──▶ pipes ──▶ OutputRelay ──▶ stdout, stderr of the caller

With the descriptors of the caller, the process could truncate a log file, change the mode of a
terminal or read what is typed there.
"""

from __future__ import annotations

import _io
import os
import select
import sys
from stat import S_ISREG, S_ISSOCK
from time import monotonic

try:
    import fcntl
except ImportError:  # Windows, which has no sandbox
    fcntl = None

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

_CHUNK_BYTES = 4096
"""A pipe that poll() reports as writable accepts this many bytes without blocking."""
_CHUNKS_PER_TURN = 16
_MAX_PIPE_BYTES = 1 << 20
_CANCEL_CHECK_SECONDS = 0.1


def group_outputs() -> list[list[int]]:
    """Return the open descriptors of 1 and 2, grouped by the file that they refer to.

    Each group needs one pipe. If both are the same file or terminal, one pipe keeps the order of
    what is written to them.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for number in (1, 2):
        try:
            found = os.fstat(number)
        except OSError:  # it is closed
            continue
        groups.setdefault((found.st_dev, found.st_ino), []).append(number)
    return list(groups.values())


class OutputRelay:
    """Copies the output of a process from a pipe to a descriptor of this process.

    It never blocks, so that a reader who stops reading does not delay a timeout. Without a target
    the output is discarded.
    """

    def __init__(self, source_fd: int, target_fd: int | None) -> None:
        os.set_blocking(source_fd, False)
        self.source_fd = source_fd
        self.target_fd = target_fd
        self.is_closed = False  # the process has closed the pipe, or the target accepts no data
        self._pending = b""  # read, but not yet written

    def copy(self) -> None:
        """Copy what is available and can be written now, up to a limit."""
        for _ in range(_CHUNKS_PER_TURN):
            if not (self._pending or self._read(_CHUNK_BYTES)) or not self._write(0):
                return

    def drain(self, deadline: float | None, is_cancelled: Callable[[], bool]) -> None:
        """Copy everything that is in the pipe now; wait for the target until the deadline.

        A process that the command left running may write for ever, so the number of bytes is
        limited to the maximum size of a pipe.
        """
        remaining = _MAX_PIPE_BYTES
        while self._pending or remaining > 0:
            if not self._pending:
                if not self._read(min(remaining, _CHUNK_BYTES)):
                    return
                remaining -= len(self._pending)
            wait = _CANCEL_CHECK_SECONDS
            if deadline is not None:
                wait = min(wait, max(0.0, deadline - monotonic()))
            if not self._write(wait) and (wait <= 0 or is_cancelled()):
                return

    def update_poller(self, poller: select.poll) -> None:
        """Register what this relay waits for: data, or a target that accepts data."""
        for fd in (self.source_fd, self.target_fd):
            try:
                if fd is not None:
                    poller.unregister(fd)
            except KeyError:
                pass
        if self._pending and self.target_fd is not None:
            poller.register(self.target_fd, select.POLLOUT)
        elif not self.is_closed:
            poller.register(self.source_fd, select.POLLIN)

    def _read(self, size: int) -> bool:
        """Read a chunk; return False if there is none."""
        if not self.is_closed:
            try:
                self._pending = os.read(self.source_fd, size)
                self.is_closed = not self._pending
            except BlockingIOError:
                return False
        return bool(self._pending)

    def _write(self, timeout: float) -> bool:
        """Write the chunk if the target accepts data within `timeout` seconds."""
        if self.target_fd is None:
            self._pending = b""
            return True
        poller = select.poll()
        poller.register(self.target_fd, select.POLLOUT)
        if not poller.poll(timeout * 1000):
            return False
        try:
            self._pending = self._pending[os.write(self.target_fd, self._pending) :]
        except BlockingIOError:
            return False
        except OSError:  # nobody reads the target any more
            self._close_source()
        return True

    def _close_source(self) -> None:
        """Make the process get EPIPE when it writes. The number of the descriptor stays in use."""
        self._pending, self.is_closed = b"", True
        devnull = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(devnull, self.source_fd, inheritable=False)
        os.close(devnull)


# ------------------------------------------------------------------ in the sandboxed process


class TerminalOutput(_io.FileIO):
    """A pipe whose text is shown on a terminal."""

    def isatty(self) -> bool:
        """True, so that the command formats its output for a terminal."""
        return True


def redirect_streams(
    groups: Iterable[list[int]], pipe_ends: Sequence[int], has_stdin: bool
) -> None:
    """Replace stdin, stdout and stderr of this process."""
    redirect_output(groups, pipe_ends)
    reopen_stdin(is_available=has_stdin)


def redirect_output(groups: Iterable[list[int]], pipe_ends: Sequence[int]) -> None:
    """Replace stdout and stderr of this process by pipes, one for each group."""
    terminals = [name for name in ("stdout", "stderr") if is_terminal(getattr(sys, name))]
    if terminals:
        _keep_terminal_size()
    for numbers, pipe_end in zip(groups, pipe_ends, strict=True):
        for number in numbers:
            os.dup2(pipe_end, number)
        os.close(pipe_end)
    for name in terminals:
        wrap_terminal_stream(name)


def is_terminal(stream: Any) -> bool:
    """True if a stream is stdout or stderr of the process, and a terminal."""
    try:
        return stream.fileno() in (1, 2) and stream.isatty()
    except (OSError, ValueError, AttributeError):
        return False


def wrap_terminal_stream(name: str) -> None:
    """Replace sys.stdout or sys.stderr by a stream that says that it is a terminal."""
    stream = getattr(sys, name)
    raw: Any = TerminalOutput(stream.fileno(), "wb", closefd=False)
    wrapped = _io.TextIOWrapper(
        _io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )
    setattr(sys, name, wrapped)


def _keep_terminal_size() -> None:
    """Put the size of the terminal into the environment. A pipe has no size."""
    for number in (1, 2):
        try:
            size = os.get_terminal_size(number)
        except OSError:
            continue
        os.environ.setdefault("COLUMNS", str(size.columns))
        os.environ.setdefault("LINES", str(size.lines))
        return


def reopen_stdin(is_available: bool) -> None:
    """Replace stdin by a read-only descriptor that no other process shares.

    Otherwise the process could write to a file or terminal that was opened for both, or change
    the position and the flags of the caller's descriptor. A socket cannot be opened again. A file
    or terminal that cannot be opened again is replaced by /dev/null if it is open for writing: the
    terminal of another user, for example, with `su` or `sudo -u`.
    """
    try:
        source = "/proc/self/fd/0" if is_available else os.devnull
        # O_NONBLOCK: a named pipe without a writer must not block.
        fd = os.open(source, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        if not _is_writable(0):
            return
        fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if S_ISREG(os.fstat(fd).st_mode):
            os.lseek(fd, os.lseek(0, 0, os.SEEK_CUR), os.SEEK_SET)
        os.set_blocking(fd, True)
        os.dup2(fd, 0)
    finally:
        os.close(fd)


def _is_writable(fd: int) -> bool:
    """True if a descriptor can be written, and is not a socket."""
    assert fcntl is not None
    try:
        is_read_only = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        return not is_read_only and not S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:  # it is closed
        return False
