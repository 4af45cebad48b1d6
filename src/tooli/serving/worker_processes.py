"""WorkerProcesses: forks processes that each run a server, and replaces those that end.

    parent ── fork ──▶ worker ── started ──▶ status pipe ──▶ parent
      │  ▲               │
      │  └── SIGCHLD ────┘      the worker is replaced, with a growing delay if it ended soon
      └── SIGTERM ──▶ all workers

A worker that ends before it has started to serve counts as a failed start. If the first starts of
all workers fail, the server ends with an error. A worker that served is always replaced.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from time import monotonic
from traceback import print_exc
from typing import TYPE_CHECKING

from tooli.errors import Interrupted, ToolRuntimeError
from tooli.serving.server_log import report

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    RunWorker = Callable[[int, Callable[[], None]], None]
    """Runs a server until the parent process ends. Calls the function when it has started.

    The parent has ended if the pipe, whose descriptor is the first argument, is at its end.
    """

MAX_FAILED_STARTS = 4
"""Number of failed starts in a row after which a server without a running worker ends."""

MIN_WORKER_UPTIME = 5.0
"""Seconds; a worker that ends sooner is replaced after a delay."""

FIRST_DELAY, MAX_DELAY = 0.1, 2.0
"""Seconds until a worker is replaced that ended soon. The delay doubles each time."""

KILL_DELAY = 5.0
"""Seconds after the grace period before a worker is killed."""

_EXIT_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_workers(
    run: RunWorker, count: int, grace: float, stop_listening: Callable[[], None]
) -> None:
    """Keep `count` workers running until a signal arrives; then let them finish.

    The workers are forked after the app is loaded, so they share its memory. `stop_listening`
    closes the listening socket of this process when the workers end. Otherwise the system would
    accept connections that nobody serves. Raises an error if the workers do not start, or if a
    worker had to be killed at the end.
    """
    workers = WorkerProcesses(run, count, grace, stop_listening)
    handled = {**dict.fromkeys(_EXIT_SIGNALS, workers.shut_down), signal.SIGCHLD: _ignore_signal}
    previous_handlers = {sig: signal.signal(sig, handler) for sig, handler in handled.items()}
    previous_wakeup = signal.set_wakeup_fd(workers.wakeup_writer, warn_on_full_buffer=False)
    try:
        workers.supervise()
    finally:
        signal.set_wakeup_fd(previous_wakeup)
        for sig, handler in previous_handlers.items():
            signal.signal(sig, handler)
        workers.close()
    if workers.have_failed:
        raise ToolRuntimeError("The workers failed to start; see the errors above.")
    if workers.were_killed:
        raise Interrupted("A worker did not end in time and was killed.", code="E4143")


def _ignore_signal(sig: int, frame: FrameType | None) -> None:
    """Do nothing: the wakeup descriptor reports the signal."""


class ServerWorker:
    """A worker process."""

    def __init__(self, status_pipe: int) -> None:
        os.set_blocking(status_pipe, False)
        self.status_pipe = status_pipe  # contains one byte if the worker has started
        self.started_at = monotonic()

    def has_served(self) -> bool:
        """True if the worker has started to serve. Call it once, after the worker has ended."""
        try:
            return os.read(self.status_pipe, 1) != b""
        except BlockingIOError:  # a process that the worker has forked still has the other end
            return False
        finally:
            os.close(self.status_pipe)


class WorkerProcesses:
    """The worker processes of this process."""

    def __init__(
        self, run: RunWorker, count: int, grace: float, stop_listening: Callable[[], None]
    ) -> None:
        self._stop_listening = stop_listening
        self._run = run
        self._count = count
        self._grace = grace
        self._workers: dict[int, ServerWorker] = {}  # by process id
        self._parent_pipe, self._parent_pipe_writer = os.pipe()
        self._wakeup, self.wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(self.wakeup_writer, False)
        self._is_ending = False
        self._kill_at: float | None = None
        self._signals: set[int] = set()  # those that have arrived
        self._next_start = 0.0
        self._failed_starts = 0  # in a row
        self._early_ends = 0  # in a row: workers that ended soon after their start
        self.have_failed = False
        self.were_killed = False

    def supervise(self) -> None:
        """Start the workers, and replace each that ends, until all have ended."""
        while self._workers or not self._is_ending:
            while not self._is_ending and len(self._workers) < self._count:
                if monotonic() < self._next_start:
                    break
                self._start()
            self._wait()
            self._reap()

    # -------------------------------------------------------------- starting

    def _start(self) -> None:
        """Start a worker. Signals are blocked until its process id is stored."""
        status_pipe, status_writer = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, _EXIT_SIGNALS)
        try:
            if self._is_ending:
                os.close(status_pipe)
                return
            pid = os.fork()
            if pid == 0:
                os.close(status_pipe)
                self._run_worker(status_writer)
            self._workers[pid] = ServerWorker(status_pipe)
        except OSError as failure:  # too many processes, or too little memory
            os.close(status_pipe)
            report(f"A worker cannot be started: {failure.strerror}.")
            self._count_end(has_served=False, uptime=0)
        finally:
            os.close(status_writer)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _EXIT_SIGNALS)

    def _run_worker(self, status_writer: int) -> None:
        """Run a worker in this process; does not return."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for sig in (*_EXIT_SIGNALS, signal.SIGCHLD):
                signal.signal(sig, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _EXIT_SIGNALS)
            for pipe in (self._parent_pipe_writer, self._wakeup, self.wakeup_writer):
                os.close(pipe)
            for other in self._workers.values():
                os.close(other.status_pipe)

            def report_start() -> None:
                os.write(status_writer, b"1")
                os.close(status_writer)

            self._run(self._parent_pipe, report_start)
            code = 0
        except BaseException:
            print_exc(file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)

    # -------------------------------------------------------------- waiting

    def _wait(self) -> None:
        """Wait for a signal, or until a worker must be started or killed."""
        times = [self._kill_at] if self._kill_at is not None else []
        if not self._is_ending and len(self._workers) < self._count:
            times.append(self._next_start)
        timeout = max(0.0, min(times) - monotonic()) if times else None
        if select.select([self._wakeup], [], [], timeout)[0]:
            os.read(self._wakeup, 4096)
        if self._kill_at is not None and monotonic() >= self._kill_at:
            self._kill_at = None
            self.were_killed = bool(self._workers)
            self._signal_all(signal.SIGKILL)

    def _reap(self) -> None:
        """Remove the workers that have ended."""
        for pid, worker in list(self._workers.items()):
            try:
                ended, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # the app has waited for it
                ended, status = pid, 0
            if ended == 0:
                continue
            del self._workers[pid]
            has_served = worker.has_served()
            if not self._is_ending:
                reason = _describe_status(status)
                report(f"Worker {pid} {reason}; it is replaced.")
                self._count_end(has_served=has_served, uptime=monotonic() - worker.started_at)

    def _count_end(self, *, has_served: bool, uptime: float) -> None:
        """Count the end of a worker, and decide when or whether the next one starts."""
        self._failed_starts = 0 if has_served else self._failed_starts + 1
        self._early_ends = self._early_ends + 1 if uptime < MIN_WORKER_UPTIME else 0
        delay = 0.0
        if self._early_ends > 1:
            delay = min(MAX_DELAY, FIRST_DELAY * 2.0 ** min(self._early_ends - 2, 10))
        self._next_start = monotonic() + delay
        if self._failed_starts >= MAX_FAILED_STARTS and not self._workers:
            self.have_failed = True
            self.shut_down(signal.SIGTERM, None)

    # -------------------------------------------------------------- ending

    def shut_down(self, sig: int, frame: FrameType | None) -> None:
        """Send SIGTERM to every worker, and close the listening socket.

        Workers that still run after the grace period, or at a repeated signal, are killed.
        """
        if not self._is_ending:
            self._is_ending = True
            self._kill_at = monotonic() + self._grace + KILL_DELAY
        elif self._kill_at is not None and is_repeated_signal(sig, self._signals):
            self._kill_at = monotonic()
        self._signals.add(sig)
        self._signal_all(signal.SIGTERM)
        self._stop_listening()

    def _signal_all(self, sig: signal.Signals) -> None:
        for pid in list(self._workers):
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                continue  # it has already ended

    def close(self) -> None:
        """Close the pipes."""
        for worker in self._workers.values():
            os.close(worker.status_pipe)
        for pipe in (
            self._parent_pipe,
            self._parent_pipe_writer,
            self._wakeup,
            self.wakeup_writer,
        ):
            os.close(pipe)


def is_repeated_signal(sig: int, earlier: set[int]) -> bool:
    """True if a process should end at once: Ctrl-C after another signal, or the same one again.

    Ctrl-C reaches a whole process group, and a parent may then send SIGTERM as well.
    """
    return sig in earlier or (sig == signal.SIGINT and bool(earlier))


def _describe_status(status: int) -> str:
    """Return how a process ended."""
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    return f"exited with code {os.WEXITSTATUS(status)}"
