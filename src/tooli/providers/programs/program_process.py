"""Run a program as a process, with bounded output, until it ends or has to stop.

The process gets its own session, so that it has no terminal: nothing can ask for a password there.
Stopping it ends its descendants as well.
"""

from __future__ import annotations

import os
import subprocess
from threading import Event, Thread
from time import monotonic

from tooli.core import Record
from tooli.errors import DependencyError, FormatError, Suggestion
from tooli.execution.processes import (
    SIGTERM,
    find_descendants,
    kill_process_group,
    list_processes,
    send_signal,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Any

MAX_OUTPUT_BYTES = 16 << 20
"""How much of the output is kept. The rest is read and discarded."""
MAX_ERROR_BYTES = 1 << 20
"""How much of the end of stderr is kept."""
TERM_GRACE_SECONDS = 0.5
"""Seconds between SIGTERM and SIGKILL."""
_DRAIN_SECONDS = 0.5
"""Seconds for which a process that has ended may still be read: a child may hold the pipe open."""
_CHUNK_BYTES = 1 << 16


class FinishedProcess(Record):
    """The exit code and the output of a process."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    discarded_bytes: int  # of stdout
    timed_out: bool
    stopped: bool  # `stop` ended it


class RunningProcess:
    """A process whose output is read in threads."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        stdin: bytes | None = None,
        holds_stdin: bool = False,
    ) -> None:
        """Start the process. `holds_stdin` keeps its stdin open without writing to it."""
        self._ended = Event()
        self._stopped = False
        has_stdin = stdin is not None or holds_stdin
        is_windows = os.name == "nt"
        options: dict[str, Any] = (
            {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
            if is_windows
            else {"start_new_session": True}
        )
        try:
            self._process = subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                **options,
            )
        except OSError as failure:
            raise _start_error(argv, cwd, failure) from None
        assert self._process.stdout is not None and self._process.stderr is not None
        self._out = _Collector(self._process.stdout, MAX_OUTPUT_BYTES, keeps_end=False)
        self._err = _Collector(self._process.stderr, MAX_ERROR_BYTES, keeps_end=True)
        if stdin is not None:
            Thread(target=self._feed, args=(stdin,), name="tooli-stdin", daemon=True).start()

    def _feed(self, data: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(data)
            pipe.close()
        except OSError:  # the program does not read its input
            pass

    def wait(self, timeout: float | None = None) -> FinishedProcess:
        """Wait until the process has ended. After `timeout` seconds it is killed."""
        timed_out = False
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.stop()
            self._process.wait()
        finally:
            if self._process.returncode is None:  # an interrupt
                self.stop()
        self._ended.set()
        deadline = monotonic() + _DRAIN_SECONDS
        for collector in (self._out, self._err):
            collector.join(max(0.0, deadline - monotonic()))
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                pass
        return FinishedProcess(
            exit_code=self._process.wait(),
            stdout=self._out.data(),
            stderr=self._err.data(),
            discarded_bytes=self._out.discarded_bytes,
            timed_out=timed_out,
            stopped=self._stopped,
        )

    def stop(self) -> None:
        """End the process and its descendants: SIGTERM first, SIGKILL soon after."""
        if self._process.poll() is not None:
            return
        self._stopped = True
        if os.name == "nt":
            _kill_tree_on_windows(self._process.pid)
            self._process.kill()
            return
        pid = self._process.pid
        _signal_group(pid, SIGTERM)
        try:
            self._process.wait(TERM_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            descendants = find_descendants(pid, list_processes())
            kill_process_group(pid)
            for descendant in descendants:
                send_signal(descendant, 9)
        else:
            kill_process_group(pid) if _group_exists(pid) else None


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        send_signal(pid, number)


def _group_exists(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except OSError:
        return False
    return True


def _kill_tree_on_windows(pid: int) -> None:
    try:
        subprocess.run(
            ["taskkill", "/F", "/T", "/PID", str(pid)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        pass


def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    stdin: bytes | None = None,
    timeout: float | None = None,
    on_start: Callable[[Callable[[], None]], object] | None = None,
    holds_stdin: bool = False,
) -> FinishedProcess:
    """Run a process to its end. `on_start` gets the function that stops it."""
    process = RunningProcess(argv, env=env, cwd=cwd, stdin=stdin, holds_stdin=holds_stdin)
    try:
        if on_start is not None:
            on_start(process.stop)
        return process.wait(timeout)
    except BaseException:
        process.stop()
        raise


class _Collector:
    """Reads a stream to its end in a thread, and keeps a part of it."""

    def __init__(self, stream: IO[bytes], max_bytes: int, *, keeps_end: bool) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._keeps_end = keeps_end
        self._data = bytearray()
        self.discarded_bytes = 0
        self._thread = Thread(target=self._read, name="tooli-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while chunk := os.read(self._stream.fileno(), _CHUNK_BYTES):
                self._keep(chunk)
        except (OSError, ValueError):
            pass
        finally:
            self._stream.close()

    def _keep(self, chunk: bytes) -> None:
        room = self._max_bytes - len(self._data)
        if self._keeps_end:
            self._data += chunk
            self.discarded_bytes += max(0, len(self._data) - self._max_bytes)
            del self._data[: -self._max_bytes]
        else:
            self._data += chunk[:room]
            self.discarded_bytes += len(chunk) - len(chunk[:room])

    def join(self, timeout: float) -> None:
        """Wait for the end of the stream."""
        self._thread.join(timeout)

    def data(self) -> bytes:
        """Return what was kept so far."""
        return bytes(self._data)


def _start_error(argv: Sequence[str], cwd: str | None, failure: OSError) -> Exception:
    if getattr(failure, "errno", None) == 7:  # E2BIG
        return FormatError(
            "The arguments are too long for a command line of this system.", code="E1034"
        )
    if cwd is not None and not os.path.isdir(cwd):
        return DependencyError(f"The program cannot be started: the folder {cwd} does not exist.")
    return DependencyError(
        f"The program {argv[0]} cannot be started: {failure.strerror or failure}.",
        suggestion=Suggestion("ask_human", "Check that the program is installed."),
    )
