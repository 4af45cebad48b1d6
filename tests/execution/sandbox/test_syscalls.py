"""System calls of the sandbox: architecture, errors, privileges, the initial environment."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections import namedtuple
from collections.abc import Callable

import pytest

from tooli.execution.sandbox import syscalls
from tooli.execution.sandbox.syscalls import SandboxUnavailable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def run_in_child(work: Callable[[], None]) -> int:
    """Run a function in a forked process; return 0, or 1 if it raised."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_other_systems_and_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert syscalls.detect_architecture() == os.uname().machine
    uname = namedtuple("uname", "machine")
    monkeypatch.setattr(os, "uname", lambda: uname("mips"))
    with pytest.raises(SandboxUnavailable, match="mips"):
        syscalls.detect_architecture()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="needs Linux"):
        syscalls.detect_architecture()


def test_failed_system_call_is_an_os_error() -> None:
    close = {"x86_64": 3, "aarch64": 57}[syscalls.detect_architecture()]
    with pytest.raises(OSError) as caught:
        syscalls.syscall(close, -1)
    assert caught.value.errno == errno.EBADF


def test_no_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no library")

    monkeypatch.setattr(syscalls, "_libc", None)
    monkeypatch.setattr(ctypes, "CDLL", fail)
    with pytest.raises(SandboxUnavailable, match="no library"):
        syscalls.syscall(0)


def test_locked_down_process() -> None:
    def work() -> None:
        syscalls.lock_down_process()
        with open("/proc/self/status") as file:
            assert "NoNewPrivs:\t1" in file.read()

    assert run_in_child(work) == 0


def test_prctl_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        monkeypatch.setattr(syscalls, "prctl", lambda option, value: False)
        with pytest.raises(SandboxUnavailable, match="prctl"):
            syscalls.lock_down_process()

    assert run_in_child(work) == 0


def test_privileges_are_dropped() -> None:
    def work() -> None:
        syscalls.drop_privileges(0)
        with open("/proc/self/status") as file:
            assert "CapPrm:\t0000000000000000" in file.read()
        syscalls.drop_privileges(0)  # a process without capabilities stays as it is

    assert run_in_child(work) == 0


def test_initial_environment_is_wiped() -> None:
    def work() -> None:
        syscalls.wipe_initial_environment()
        with open("/proc/self/environ", "rb") as file:
            assert not file.read().strip(b"\0")

    assert run_in_child(work) == 0


@pytest.mark.parametrize("content", [b"1 (x) R 1", b"1 (x) " + b"0 " * 60])
def test_unreadable_stat(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins
    import io

    monkeypatch.setattr(builtins, "open", lambda *_: io.BytesIO(content))
    if content.endswith(b"0 "):
        assert syscalls.wipe_initial_environment() is None  # no environment block
    else:
        with pytest.raises(SandboxUnavailable, match="/proc/self/stat"):
            syscalls.wipe_initial_environment()
