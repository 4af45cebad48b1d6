"""Processes: descriptors, signals, descendants, the supervisor, systems that lack a feature."""

from __future__ import annotations

import importlib
import marshal
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.execution.forked import WAIT_SECONDS, refuse, run_in_child, wait_until

from tooli import Tooli
from tooli.execution import processes
from tooli.execution.processes import Supervisor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_descendants_are_killed_and_reaped() -> None:
    def work() -> None:
        assert processes.adopt_orphans()
        child = "import subprocess, sys; subprocess.run(['sleep', '600'])"
        subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
        own = os.getpid()
        wait_until(
            lambda: "sleep" in processes.find_descendants(own, processes.list_processes()).values()
        )
        killed = processes.kill_descendants(own, reaps=True)
        assert "sleep" in killed
        assert processes.find_descendants(own, processes.list_processes()) == {}

    assert run_in_child(work) == 0


def test_process_group_is_killed() -> None:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    processes.kill_process_group(child.pid)
    assert child.wait(WAIT_SECONDS) == -signal.SIGKILL


def test_process_that_leads_no_group_is_killed() -> None:
    child = subprocess.Popen(["sleep", "600"])
    processes.kill_process_group(child.pid)
    assert child.wait(WAIT_SECONDS) == -signal.SIGKILL


def test_signal_to_a_process_that_does_not_exist_returns_false() -> None:
    child = subprocess.Popen(["true"])
    child.wait(WAIT_SECONDS)
    assert processes.send_signal(child.pid, signal.SIGTERM) is False
    assert processes._read_process(str(child.pid)) is None


def test_no_processes_are_listed_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", refuse)
    assert processes.list_processes() == {}


def test_children_are_reaped() -> None:
    def work() -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(3)
        found: dict[int, int] = {}
        wait_until(lambda: found.update(processes.reap_children()) or found)
        assert os.waitstatus_to_exitcode(found[pid]) == 3
        assert processes.reap_children() == {}

    assert run_in_child(work) == 0


@pytest.mark.parametrize("has_proc", [True, False])
def test_descriptors_are_closed(has_proc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()

    def work() -> None:
        if not has_proc:
            monkeypatch.setattr(os, "listdir", refuse)
        processes.close_descriptors_except((write_end,))
        os.write(write_end, b"open")
        with pytest.raises(OSError):
            os.fstat(read_end)

    assert run_in_child(work) == 0
    assert os.read(read_end, 4) == b"open"
    os.close(read_end)
    os.close(write_end)


def test_orphans_are_not_adopted_without_prctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_c_functions", {})
    monkeypatch.setitem(sys.modules, "_ctypes", None)
    assert processes.adopt_orphans() is False


# ------------------------------------------------------------------ forks


def test_pipes_do_not_use_the_numbers_of_standard_streams() -> None:
    def work() -> None:
        for number in (0, 1, 2):
            os.close(number)
        caller_ends, child_ends = processes.open_pipes()
        ends = [*caller_ends, *child_ends]
        assert min(ends) > 2
        assert len(set(ends)) == len(ends)

    assert run_in_child(work) == 0


def test_pipes_are_closed_if_one_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    open_pipe = os.pipe

    def pipe() -> tuple[int, int]:
        if opened:
            raise OSError("too many open files")
        opened.extend(open_pipe())
        return opened[0], opened[1]

    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(OSError, match="too many"):
        processes.open_pipes()
    for number in opened:
        with pytest.raises(OSError):
            os.fstat(number)


def test_fork_raises_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ((3, 11), (3, 12)):
        monkeypatch.setattr(sys, "version_info", version)
        pid = processes.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_file_that_cannot_be_flushed_does_not_affect_others(tmp_path: Any) -> None:
    file = open(tmp_path / "file", "w")
    file.write("text")
    broken = open(tmp_path / "broken", "w")
    broken.write("text")
    os.close(broken.fileno())
    processes.flush_open_files()
    assert (tmp_path / "file").read_text() == "text"
    file.close()
    with pytest.raises(OSError):
        broken.close()


def test_is_readable() -> None:
    read_end, write_end = os.pipe()
    try:
        assert not processes.is_readable(read_end)
        os.write(write_end, b"x")
        assert processes.is_readable(read_end)
        assert processes.is_readable(read_end)  # the byte was not read
        os.read(read_end, 1)
        assert not processes.is_readable(read_end)
    finally:
        os.close(write_end)
    assert processes.is_readable(read_end)  # the other end is closed
    os.close(read_end)


def test_find_descendants_ignores_other_processes() -> None:
    table = {
        pid: processes.Process(parent, 1, name)
        for pid, parent, name in [(2, 1, "a"), (3, 2, "b"), (4, 3, "c"), (5, 1, "d"), (6, 6, "e")]
    }
    assert processes.find_descendants(2, table) == {3: "b", 4: "c"}
    assert processes.find_descendants(6, table) == {}


# ------------------------------------------------------------------ supervisor


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
    assert processes.adopt_orphans()
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


def test_exit_code_of_the_worker_is_reported() -> None:
    def check() -> None:
        report = supervise(lambda: os._exit(3))
        assert os.waitstatus_to_exitcode(report["status"]) == 3
        assert (report["timed_out"], report["killed"]) == (False, [])

    assert run_in_child(check) == 0


def test_exit_code_of_the_worker_is_reported_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert processes.list_processes()[os.getpid()]

    assert run_in_child(check) == 0


def test_supervisor_reports_no_status_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        exists = os.path.exists
        monkeypatch.setattr(
            os.path, "exists", lambda path: path != "/proc/self/stat" and exists(path)
        )
        assert supervise(sleep, b"s")["status"] is None

    assert run_in_child(check) == 0


def test_worker_is_stopped_if_the_caller_has_ended() -> None:
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
            monitored.deadline = time.monotonic() + 2 * processes.INTERRUPT_FORWARD_DELAY
            send = processes.send_signal
            processes.send_signal = lambda pid, number: (  # type: ignore[assignment]
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
        monkeypatch.setattr(processes, "reset_after_fork", refuse)
        processes.run_supervisor(None, 0, (), -1, write_end, None, ())  # type: ignore[arg-type]
    os.close(write_end)
    with os.fdopen(report_end, "rb") as file:
        report = marshal.loads(file.read())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (report["status"], report["error"]) == (None, "not available")
    wait_until(lambda: pid not in processes.list_processes())


def test_unfinished_import_of_another_thread_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_by_thread.py").write_text("import blocking\nblocking.wait()\nDONE = True")
    started, release = threading.Event(), threading.Event()
    blocking = types.ModuleType("blocking")
    parent_pid = os.getpid()

    def wait() -> None:
        started.set()
        if os.getpid() == parent_pid:
            release.wait(WAIT_SECONDS)

    monkeypatch.setattr(blocking, "wait", wait, raising=False)
    monkeypatch.setitem(sys.modules, "blocking", blocking)
    monkeypatch.syspath_prepend(str(tmp_path))
    app = Tooli("a")

    @app.command(timeout=WAIT_SECONDS)
    def is_done() -> bool:
        return importlib.import_module("imported_by_thread").DONE

    thread = threading.Thread(target=importlib.import_module, args=("imported_by_thread",))
    thread.start()
    try:
        assert started.wait(WAIT_SECONDS)
        assert app.call("is-done").unwrap() is True
    finally:
        release.set()
        thread.join()
