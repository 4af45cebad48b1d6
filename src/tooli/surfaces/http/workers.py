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

TOO_SOON = 1.0
"""A worker that ends by itself within so many seconds has not served at all."""
PATIENCE = 5.0
"""Seconds beyond the grace before a worker is killed."""
_ENDING = (signal.SIGINT, signal.SIGTERM)


def supervise(run: Callable[[int | None], None], count: int, grace: float) -> None:
    """Keep as many workers running until asked to end; then let them finish.

    They are forked from this process, after the app was loaded: any app can be served, and
    what it has loaded is shared.
    """
    crew = _Workers(run, grace)
    kept = {sig: signal.signal(sig, crew.end) for sig in _ENDING}
    try:
        for _ in range(count):
            crew.start()
        crew.look_after()
    finally:
        crew.close()
        for sig, handler in kept.items():
            signal.signal(sig, handler)


class _Workers:
    def __init__(self, run: Callable[[int | None], None], grace: float) -> None:
        self._run = run
        self._grace = grace
        self._alive: dict[int, float] = {}  # by process id: when it was started
        self._leash, self._hand = os.pipe()
        self._ending = False
        self._failed = 0

    def start(self) -> None:
        """One more worker; a signal that comes meanwhile waits until it is known."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            if not self._ending:
                pid = os.fork()
                if pid == 0:
                    self._work()
                self._alive[pid] = monotonic()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def _work(self) -> None:
        """Be a worker; does not return."""
        code = 1
        try:
            for sig in _ENDING:
                signal.signal(sig, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            os.close(self._hand)
            self._run(self._leash)
            code = 0
        except BaseException:
            from traceback import print_exc

            print_exc(file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def look_after(self) -> None:
        """Wait for the workers; replace one that dies, unless it cannot even start."""
        while self._alive:
            try:
                pid, _ = os.waitpid(-1, 0)
            except InterruptedError:
                continue
            except ChildProcessError:
                return
            born = self._alive.pop(pid, None)
            if born is None or self._ending:
                continue
            self._failed = self._failed + 1 if monotonic() - born < TOO_SOON else 0
            if self._failed > 3:
                print("The workers cannot start; see above.", file=sys.stderr)
                self.end(signal.SIGTERM, None)
            else:
                self.start()

    def end(self, sig: int, frame: FrameType | None) -> None:
        """Ask every worker to end; those that do not are killed in the end."""
        if not self._ending:
            self._ending = True
            signal.signal(signal.SIGALRM, self._kill)
            signal.setitimer(signal.ITIMER_REAL, self._grace + PATIENCE)
        self._tell_all(signal.SIGTERM)

    def _kill(self, sig: int, frame: FrameType | None) -> None:
        self._tell_all(signal.SIGKILL)

    def _tell_all(self, sig: signal.Signals) -> None:
        for pid in self._alive:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                continue  # it has just ended

    def close(self) -> None:
        """Nothing is left behind."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.close(self._leash)
        os.close(self._hand)
