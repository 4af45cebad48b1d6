"""The supervisor: a small process between the caller and the worker process.

    caller ── control ──▶ supervisor ── fork ──▶ worker and its descendants
    caller ◀── report ─── supervisor ◀── adopts their orphans

The supervisor adopts orphans, so it finds every descendant of the worker. If the caller is killed,
the supervisor ends the worker and then itself. It runs no code of the app and imports nothing after
the fork, because another thread of the caller may have held an import lock. Without /proc it can
only kill the process group of the worker.
"""

from __future__ import annotations

import os
from marshal import dumps
from select import POLLIN, poll
from time import monotonic

from tooli.execution.processes import (
    SIGINT,
    SIGTERM,
    adopt_orphans,
    close_descriptors_except,
    kill_descendants,
    kill_process_group,
    reap_children,
    reset_after_fork,
    send_signal,
    signals,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, NoReturn, TypedDict

    from typing_extensions import NotRequired

    from tooli.execution.worker import Worker

    class SupervisorReport(TypedDict):
        """What the supervisor reports at the end of a call."""

        status: int | None  # of the worker, as os.waitpid() returns it
        timed_out: bool
        killed: list[str]  # names of the processes that were killed
        error: NotRequired[str]  # why the supervisor itself failed


TERM_GRACE_SECONDS = 0.3
"""Seconds between SIGTERM and SIGKILL."""
LIVENESS_INTERVAL, REAP_INTERVAL = 0.5, 0.02
"""Seconds between two checks that the caller lives, and (without pidfd) that the worker does."""
EMPTY_REPORT: SupervisorReport = {"status": None, "timed_out": False, "killed": []}
"""The report that is assumed if the supervisor sent none."""
INTERRUPT_FORWARD_DELAY = 0.05
"""Seconds before an interrupt of the caller is forwarded to the worker.

The terminal usually sends SIGINT to the worker itself within this time.
"""


class Supervisor:
    """Supervises one worker process until it and its descendants have ended."""

    def __init__(self, worker_pid: int, parent: int, control: int, deadline: float | None) -> None:
        self.worker_pid = worker_pid
        self.parent = parent
        self.control = control
        self.deadline = deadline  # when the worker must have ended
        self.has_timed_out = False
        self.kill_at: float | None = None  # when to send SIGKILL, after SIGTERM
        self.forward_interrupt_at: float | None = None  # when to forward an interrupt of the caller
        self.is_interrupted = False  # the terminal has sent SIGINT to the whole group
        self.status: int | None = None

    def note_interrupt(self, *_: object) -> None:
        """Note that the terminal has sent SIGINT, which the worker has received as well."""
        self.is_interrupted = True

    def supervise(self) -> SupervisorReport:
        """Wait until the worker has ended or was killed, and return the report."""
        poller = poll()
        poller.register(self.control, POLLIN)
        pidfd = _open_pidfd(self.worker_pid)
        if pidfd is not None:
            poller.register(pidfd, POLLIN)
        while True:
            events = poller.poll(self._poll_timeout(pidfd is not None) * 1000)
            reaped = reap_children()
            if self.worker_pid in reaped:
                self.status = reaped[self.worker_pid]
                break
            if any(fd == self.control for fd, _ in events):
                self._handle_control()
            if self._check_due():
                break
        killed = self._kill_all() if self.kill_at is not None else []
        return {"status": self.status, "timed_out": self.has_timed_out, "killed": killed}

    def _poll_timeout(self, has_pidfd: bool) -> float:
        times = [
            t for t in (self.deadline, self.kill_at, self.forward_interrupt_at) if t is not None
        ]
        now = monotonic()
        return max(
            0.0, min([LIVENESS_INTERVAL if has_pidfd else REAP_INTERVAL, *[t - now for t in times]])
        )

    def _handle_control(self) -> None:
        """Handle commands of the caller; end of file means that the caller has ended."""
        command = os.read(self.control, 64)
        if b"i" in command and self.forward_interrupt_at is None:
            self.forward_interrupt_at = monotonic() + INTERRUPT_FORWARD_DELAY
        if b"s" in command or not command:
            self._request_stop()

    def _check_due(self) -> bool:
        """Forward interrupts and enforce the deadline; return True if it is time for SIGKILL."""
        now = monotonic()
        if self.forward_interrupt_at is not None and now >= self.forward_interrupt_at:
            if not self.is_interrupted:
                send_signal(self.worker_pid, SIGINT)
            self.is_interrupted, self.forward_interrupt_at = False, None
        if self.deadline is not None and now >= self.deadline:
            self.deadline, self.has_timed_out = None, True
            self._request_stop()
        if os.getppid() != self.parent:
            self._request_stop()
        return self.kill_at is not None and monotonic() >= self.kill_at

    def _request_stop(self) -> None:
        if self.kill_at is None:
            send_signal(self.worker_pid, SIGTERM)
            self.kill_at = monotonic() + TERM_GRACE_SECONDS

    def _kill_all(self) -> list[str]:
        """Kill the worker and its descendants; return the names of killed processes."""
        if self.status is None and not os.path.exists("/proc/self/stat"):
            kill_process_group(self.worker_pid)
        elif self.status is None:
            send_signal(self.worker_pid, 9)
        return kill_descendants(os.getpid(), reaps=True)


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends, if the system has one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _send_report(fd: int, report: Any) -> None:
    os.write(fd, dumps(report))


def run_supervisor(
    worker: Worker,
    caller_pid: int,
    caller_ends: Sequence[int],
    control_fd: int,
    report_fd: int,
    deadline: float | None,
    signal_mask: Iterable[int],
) -> NoReturn:
    """Fork the worker and supervise it; does not return.

    Args:
        worker: Runs the call in the forked process.
        caller_pid: The process that waits for the result.
        caller_ends: Descriptors of the pipes that belong to the caller.
        control_fd: Commands of the caller are read from it.
        report_fd: The report is written to it.
        deadline: When the worker must have ended (monotonic clock).
        signal_mask: The signal mask to restore.
    """
    try:
        reset_after_fork(caller_ends)
        signals.set_wakeup_fd(-1)
        adopt_orphans()
        own_pid = os.getpid()
        # If the app ignores SIGCHLD, the kernel discards exit statuses.
        previous_handler = signals.signal(signals.SIGCHLD, signals.SIG_DFL)
        worker_pid = os.fork()
        if worker_pid == 0:
            signals.signal(
                signals.SIGCHLD, signals.SIG_DFL if previous_handler is None else previous_handler
            )
            os.close(control_fd)
            os.close(report_fd)
            worker.run_and_exit(own_pid, signal_mask)  # does not return
        supervisor = Supervisor(worker_pid, caller_pid, control_fd, deadline)
        signals.signal(
            SIGINT, signals.SIG_IGN if worker.has_own_session else supervisor.note_interrupt
        )
        for number in (1, 3, SIGTERM, 13, 14):
            signals.signal(number, signals.SIG_IGN)
        close_descriptors_except((control_fd, report_fd))
        signals.pthread_sigmask(signals.SIG_SETMASK, signal_mask)
        _send_report(report_fd, supervisor.supervise())
    except BaseException as failure:
        reason = str(failure) or type(failure).__name__
        _send_report(report_fd, {**EMPTY_REPORT, "error": reason})
    finally:
        os._exit(0)
