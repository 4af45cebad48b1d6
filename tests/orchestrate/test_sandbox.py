"""The program of the sandbox, and what happens without it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.orchestrate.script_app import Shop

from tooli import DependencyError
from tooli.orchestrate import sandbox as sandbox_module
from tooli.orchestrate.sandbox import Sandbox, SandboxLimits

if TYPE_CHECKING:
    from pydantic_monty import MontySession


def test_environment_does_not_choose_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "started"
    for name in ("monty", "other"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ntouch {marker}\n")
        program.chmod(0o755)
    monkeypatch.setenv("MONTY_BIN", str(tmp_path / "other"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    assert Shop().app.orchestrate("1 + 1").unwrap() == 2
    assert not marker.exists()


def test_program_is_the_installed_one() -> None:
    assert sandbox_module.find_worker().parent == Path(sys.executable).parent.resolve()


def test_missing_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def find_none(name: str) -> None:
        raise sandbox_module.PackageNotFoundError(name)

    monkeypatch.setattr(sandbox_module, "distribution", find_none)
    monkeypatch.setattr(sandbox_module.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(DependencyError, match="not installed") as error:
        sandbox_module.find_worker()
    assert error.value.suggestion is not None
    assert "pip install 'tooli[eval]" in error.value.suggestion.fix


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    error = Shop().app.orchestrate("1").error
    assert error is not None
    assert error.code == "E4040"
    assert error.suggestion is not None
    assert "pip install 'tooli[eval]" in error.suggestion["fix"]


def test_process_exits_after_a_script() -> None:
    """No thread that could abort the process at its exit outlives the script."""
    code = (
        "import threading\n"
        "from tooli import Tooli\n"
        "print(Tooli('a').orchestrate('6 * 7').unwrap())\n"
        "print(threading.active_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "42\n1\n")


def start_busy_script(session: MontySession) -> object:
    return session.feed_start("while True: pass", skip_type_check=True)


@pytest.mark.skipif(sys.platform == "win32", reason="signal 0")
async def test_kill_ends_a_busy_script() -> None:
    with Sandbox(SandboxLimits(), "") as sandbox:
        pid = await sandbox.run(lambda session: session.worker_pid)
        assert pid is not None
        step = asyncio.ensure_future(sandbox.run(start_busy_script))
        await asyncio.sleep(0)
        sandbox.kill()
        with pytest.raises(sandbox_module.load_monty().MontyCrashedError):
            await step
        sandbox.kill()
    assert_ended(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="signal 0")
async def test_cancelled_step_ends_with_the_worker() -> None:
    async def run_busy_script() -> None:
        with Sandbox(SandboxLimits(), "") as sandbox:
            pids.append(await sandbox.run(lambda session: session.worker_pid))
            started.set()
            await sandbox.run(start_busy_script)

    pids: list[int | None] = []
    started = asyncio.Event()
    task = asyncio.ensure_future(run_busy_script())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pids[0] is not None
    assert_ended(pids[0])


async def test_worker_that_is_killed_before_it_is_ready() -> None:
    with Sandbox(SandboxLimits(), "") as sandbox:
        sandbox.kill()
        with pytest.raises(sandbox_module.load_monty().MontyCrashedError):
            await sandbox.run(start_busy_script)


def test_worker_that_cannot_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox_module, "find_worker", lambda: tmp_path / "absent")
    error = Shop().app.orchestrate("1").error
    assert error is not None
    assert error.code == "E4040"


async def test_loop_that_is_closed() -> None:
    """The thread ends although nothing waits for its step."""

    async def start_step() -> None:
        step = asyncio.ensure_future(sandbox.run(start_busy_script))
        await asyncio.sleep(0)
        step.cancel()

    with Sandbox(SandboxLimits(), "") as sandbox:
        await asyncio.to_thread(asyncio.run, start_step())
    assert not [thread for thread in threading.enumerate() if thread.name == "tooli-script"]


def assert_ended(pid: int) -> None:
    """Fail if a process is still there. A worker of the sandbox is waited for when it ends."""
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
