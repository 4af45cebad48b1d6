"""Processes: descriptors, signals, descendants, and systems that lack a feature."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.execution.forked import WAIT_SECONDS, refuse, run_in_child, wait_until

from tooli.execution import processes

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


def test_signal_to_a_process_that_does_not_exist() -> None:
    child = subprocess.Popen(["true"])
    child.wait(WAIT_SECONDS)
    assert processes.send_signal(child.pid, signal.SIGTERM) is False
    assert processes._read_process(str(child.pid)) is None


def test_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_no_prctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_prctl_cache", [])
    monkeypatch.setitem(sys.modules, "_ctypes", None)
    assert processes.adopt_orphans() is False


# ------------------------------------------------------------------ forks


def test_pipes_do_not_use_the_numbers_of_standard_streams() -> None:
    def work() -> None:
        for number in (0, 1, 2):
            os.close(number)
        ends = processes.open_pipes()
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


def test_files_that_cannot_be_flushed(tmp_path: Any) -> None:
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
