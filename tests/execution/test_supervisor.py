"""The supervisor: deadline, stop, interrupts, killed descendants, and its own failures."""

from __future__ import annotations

import marshal
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.execution.forked import refuse, run_in_child, wait_until

from tooli.execution import supervisor
from tooli.execution.processes import adopt_orphans, list_processes
from tooli.execution.supervisor import Supervisor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def start(work: Callable[[], object]) -> int:
    """Fork a process that does some work; return when it runs."""
    ready, started = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(started, b"x")
            work()
        finally:
            os._exit(0)
    os.read(ready, 1)
    os.close(ready)
    os.close(started)
    return pid


def sleep() -> None:
    """Sleep until a signal ends the process."""
    time.sleep(600)


def supervise(
    work: Callable[[], object],
    commands: bytes = b"",
    *,
    seconds: float | None = None,
    parent: int | None = None,
    prepare: Callable[[Supervisor], object] = lambda _: None,
) -> dict[str, Any]:
    """Supervise a process in this process, which has no other children."""
    assert adopt_orphans()
    control, ours = os.pipe()
    pid = start(work)
    deadline = None if seconds is None else time.monotonic() + seconds
    monitored = Supervisor(pid, os.getppid() if parent is None else parent, control, deadline)
    prepare(monitored)
    os.write(ours, commands)
    report = monitored.supervise()
    os.close(control)
    os.close(ours)
    return dict(report)


def test_worker_that_ends() -> None:
    def check() -> None:
        report = supervise(lambda: os._exit(3))
        assert os.waitstatus_to_exitcode(report["status"]) == 3
        assert (report["timed_out"], report["killed"]) == (False, [])

    assert run_in_child(check) == 0


def test_no_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        monkeypatch.setattr(os, "pidfd_open", refuse)
        assert os.waitstatus_to_exitcode(supervise(lambda: os._exit(3))["status"]) == 3

    assert run_in_child(check) == 0


def test_deadline_stops_the_worker() -> None:
    def check() -> None:
        report = supervise(sleep, seconds=0.01)
        assert report["timed_out"]
        assert os.waitstatus_to_exitcode(report["status"]) == -signal.SIGTERM

    assert run_in_child(check) == 0


def test_worker_that_ignores_sigterm_is_killed() -> None:
    def check() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the worker inherits it
        report = supervise(sleep, b"s")
        assert (report["status"], report["timed_out"]) == (None, False)
        assert list_processes()[os.getpid()]

    assert run_in_child(check) == 0


def test_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        exists = os.path.exists
        monkeypatch.setattr(
            os.path, "exists", lambda path: path != "/proc/self/stat" and exists(path)
        )
        assert supervise(sleep, b"s")["status"] is None

    assert run_in_child(check) == 0


def test_caller_that_has_ended() -> None:
    def check() -> None:
        report = supervise(sleep, parent=1 if os.getppid() != 1 else 2)
        assert os.waitstatus_to_exitcode(report["status"]) == -signal.SIGTERM

    assert run_in_child(check) == 0


def test_closed_control_pipe_stops_the_worker() -> None:
    def check() -> None:
        control, ours = os.pipe()
        pid = start(lambda: (os.close(ours), sleep()))
        os.close(ours)
        report = Supervisor(pid, os.getppid(), control, None).supervise()
        assert report["status"] is not None
        assert os.waitstatus_to_exitcode(report["status"]) == -signal.SIGTERM

    assert run_in_child(check) == 0


def test_interrupt_is_forwarded() -> None:
    def check() -> None:
        report = supervise(sleep, b"i")
        assert os.waitstatus_to_exitcode(report["status"]) == 0  # KeyboardInterrupt ended it

    assert run_in_child(check) == 0


def test_interrupt_of_the_terminal_is_not_forwarded() -> None:
    def check() -> None:
        signals: list[tuple[int, int]] = []

        def prepare(monitored: Supervisor) -> None:
            monitored.note_interrupt()
            monitored.deadline = time.monotonic() + 2 * supervisor.INTERRUPT_FORWARD_DELAY
            send = supervisor.send_signal
            supervisor.send_signal = lambda pid, number: (  # type: ignore[assignment]
                signals.append((pid, number)) or send(pid, number)
            )

        report = supervise(sleep, b"ii", prepare=prepare)
        assert report["timed_out"]
        assert signal.SIGINT not in [number for _, number in signals]

    assert run_in_child(check) == 0


def test_failure_of_the_supervisor_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    report_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(supervisor, "reset_after_fork", refuse)
        supervisor.run_supervisor(None, 0, (), -1, write_end, None, ())  # type: ignore[arg-type]
    os.close(write_end)
    with os.fdopen(report_end, "rb") as file:
        report = marshal.loads(file.read())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (report["status"], report["error"]) == (None, "not available")
    wait_until(lambda: pid not in list_processes())
