"""Identities of processes, and whether they are still running."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tooli.storage import process_identity
from tooli.storage.process_identity import (
    current_process,
    has_boot_id,
    is_alive,
    is_from_this_boot,
    is_verifiable,
    read_boot_id,
)

linux_only = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")


@pytest.fixture
def _without_proc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    process_identity._identity_by_pid.clear()
    monkeypatch.setattr(process_identity, "_read_text", lambda _: "")
    monkeypatch.setattr(process_identity, "_pid_namespace", lambda: "")
    yield
    process_identity._identity_by_pid.clear()


def test_current_process_is_alive() -> None:
    assert is_alive(current_process()) is True
    assert is_from_this_boot(current_process()) and is_verifiable(current_process())


@linux_only
def test_identity_on_linux() -> None:
    boot, namespace, pid, start = current_process().split(":")
    assert boot == read_boot_id().replace("-", "") and namespace.isdigit()
    assert (pid, start.isdigit()) == (str(os.getpid()), True)
    assert has_boot_id(current_process())


@linux_only
def test_child_process_is_checked() -> None:
    boot, namespace, _, _ = current_process().split(":")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = process_identity._state_and_start_time(child.pid)[1]
    owner = f"{boot}:{namespace}:{child.pid}:{start}"
    assert is_alive(owner) is True
    assert is_alive(f"{boot}:{namespace}:{child.pid}:{int(start) + 1}") is False, (
        "the PID was reused"
    )
    assert is_alive(f"{boot}:{namespace}:{child.pid}:") is True
    child.communicate(b"\n")
    assert is_alive(owner) is False
    assert is_alive(f"{boot}:{namespace}:{child.pid}:") is False


@pytest.mark.parametrize("owner", ["other-boot:1:7:9", "", "x", "::abc:", ":::"])
def test_process_that_cannot_be_checked(owner: str) -> None:
    assert is_alive(owner) is None
    assert not is_from_this_boot(owner)


@pytest.mark.usefixtures("_without_proc")
def test_identity_without_proc() -> None:
    assert current_process() == f"::{os.getpid()}:"
    assert is_alive(current_process()) is True
    assert is_alive(f"::{os.getppid()}:") is True
    assert not has_boot_id(current_process()) and not is_verifiable("::7:")


@pytest.mark.usefixtures("_without_proc")
@pytest.mark.parametrize(
    ("error", "alive"), [(ProcessLookupError(), False), (PermissionError(), True)]
)
def test_signal_check_without_proc(
    monkeypatch: pytest.MonkeyPatch, error: OSError, alive: bool
) -> None:
    def kill(pid: int, signal: int) -> None:
        raise error

    monkeypatch.setattr(os, "kill", kill)
    assert is_alive("::7:") is alive


@pytest.mark.usefixtures("_without_proc")
def test_no_check_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_identity.os, "name", "nt")
    try:
        assert is_alive("::7:") is None
    finally:
        monkeypatch.undo()


def test_unreadable_files_are_empty(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    assert process_identity._read_text(str(tmp_path / "missing")) == ""
    assert process_identity._read_text(str(tmp_path)) == "", "a folder cannot be read"

    def fail(path: str) -> str:
        raise OSError

    monkeypatch.setattr(os, "readlink", fail)
    assert process_identity._pid_namespace() == ""
