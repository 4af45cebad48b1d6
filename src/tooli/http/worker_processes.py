"""Workers: several processes that serve from one socket, and the one that looks after them.

supervise ── fork ──▶ worker, worker, …      each takes connections from the same socket
    │                    ▲
    └─ a pipe ───────────┘   closed when we are gone, however that happens: then they end
"""

from __future__ import annotations

import os
import signal
import sys
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

MIN_WORKER_UPTIME = 1.0
"""A worker that ends by itself within so many seconds has not served at all."""
KILL_DELAY = 5.0
"""Seconds beyond the grace before a worker is killed."""
_EXIT_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_workers(run: Callable[[int | None], None], count: int, grace: float) -> None:
    """Keep as many workers running until asked to end; then let them finish.

    They are forked from this process, after the app was loaded: any app can be served, and
    what it has loaded is shared.
    """
    workers = _WorkerProcesses(run, grace)
    previous_handlers = {sig: signal.signal(sig, workers.shut_down) for sig in _EXIT_SIGNALS}
    try:
        for _ in range(count):
            workers.start()
        workers.wait_and_restart()
    finally:
        workers.close()
        for sig, handler in previous_handlers.items():
            signal.signal(sig, handler)


class _WorkerProcesses:
    def __init__(self, run: Callable[[int | None], None], grace: float) -> None:
        self._run = run
        self._grace = grace
        self._workers: dict[int, float] = {}  # by process id: when it was started
        self._parent_pipe, self._parent_pipe_writer = os.pipe()
        self._is_ending = False
        self._failed_starts = 0

    def start(self) -> None:
        """One more worker; a signal that comes meanwhile waits until it is known."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _EXIT_SIGNALS)
        try:
            if not self._is_ending:
                pid = os.fork()
                if pid == 0:
                    self._run_worker()
                self._workers[pid] = monotonic()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _EXIT_SIGNALS)

    def _run_worker(self) -> None:
        """Be a worker; does not return."""
        code = 1
        try:
            for sig in _EXIT_SIGNALS:
                signal.signal(sig, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _EXIT_SIGNALS)
            os.close(self._parent_pipe_writer)
            self._run(self._parent_pipe)
            code = 0
        except BaseException:
            from traceback import print_exc

            print_exc(file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def wait_and_restart(self) -> None:
        """Wait for the workers; replace one that dies, unless it cannot even start."""
        while self._workers:
            try:
                pid, _ = os.waitpid(-1, 0)
            except InterruptedError:
                continue
            except ChildProcessError:
                return
            started_at = self._workers.pop(pid, None)
            if started_at is None or self._is_ending:
                continue
            self._failed_starts = (
                self._failed_starts + 1 if monotonic() - started_at < MIN_WORKER_UPTIME else 0
            )
            if self._failed_starts > 3:
                print("The workers cannot start; see above.", file=sys.stderr)
                self.shut_down(signal.SIGTERM, None)
            else:
                self.start()

    def shut_down(self, sig: int, frame: FrameType | None) -> None:
        """Ask every worker to end; those that do not are killed in the end."""
        if not self._is_ending:
            self._is_ending = True
            signal.signal(signal.SIGALRM, self._kill)
            signal.setitimer(signal.ITIMER_REAL, self._grace + KILL_DELAY)
        self._signal_all(signal.SIGTERM)

    def _kill(self, sig: int, frame: FrameType | None) -> None:
        self._signal_all(signal.SIGKILL)

    def _signal_all(self, sig: signal.Signals) -> None:
        for pid in self._workers:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                continue  # it has just ended

    def close(self) -> None:
        """Nothing is left behind."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.close(self._parent_pipe)
        os.close(self._parent_pipe_writer)
