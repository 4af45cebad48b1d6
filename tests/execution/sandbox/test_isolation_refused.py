"""If required isolation is unavailable, nothing runs; if it is optional, the command runs and
warns.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli import Tooli
from tooli.execution.sandbox import bwrap, landlock, sandbox_runner, syscalls

HIDE = Path(__file__).parent / "hide_syscalls.py"
LANDLOCK = "444,445,446"
SECCOMP = "277" if platform.machine() == "aarch64" else "317"
needs_linux = pytest.mark.skipif(
    bool(sandbox_runner.detect_sandbox_support().missing),
    reason="needs Landlock and seccomp",
)

APP = '''
from pathlib import Path
from tooli import Tooli
from tooli.execution.sandbox import bwrap

bwrap.BWRAP_DIRS = ()
app = Tooli("isolated", security_policy="off")


@app.command(isolation="required", capabilities=["fs:write"])
def required(mark: Path) -> str:
    """Write a file."""
    mark.write_text("ran")
    return "ran"


@app.command(capabilities=["fs:write"])
def optional(mark: Path) -> str:
    """Write a file."""
    mark.write_text("ran")
    return "ran"


if __name__ == "__main__":
    app()
'''


@pytest.fixture(autouse=True)
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide bubblewrap."""
    monkeypatch.setattr(bwrap, "BWRAP_DIRS", ())


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The app in a file, in its own folder."""
    file = tmp_path / "app.py"
    file.write_text(APP)
    return file


def run(script: Path, *argv: str, hidden: str, **more: str) -> tuple[int, dict[str, Any]]:
    """Run the app with some system calls hidden."""
    program = [
        sys.executable,
        str(HIDE),
        hidden,
        str(script),
        *argv,
        "--json",
    ]
    env = environment(TOOLI_STATE_DIR=str(script.parent / "state"), **more)
    done = subprocess.run(program, capture_output=True, env=env, timeout=60, cwd=script.parent)
    return done.returncode, json.loads(done.stdout)


# ------------------------------------------------------------------ a kernel without the features


@needs_linux
@pytest.mark.parametrize("hidden", [LANDLOCK, SECCOMP], ids=["landlock", "seccomp"])
def test_command_that_requires_isolation_does_not_run(script: Path, hidden: str) -> None:
    code, answer = run(script, "required", "mark", hidden=hidden)
    assert (code, answer["error"]["code"]) == (30, "E2006")
    assert answer["error"]["details"]["missing"]
    assert not (script.parent / "mark").exists()


@needs_linux
def test_setting_requires_isolation_for_every_command(script: Path) -> None:
    code, answer = run(script, "optional", "mark", hidden=LANDLOCK, TOOLI_ISOLATION="required")
    assert (code, answer["error"]["code"]) == (30, "E2006")
    assert not (script.parent / "mark").exists()


@needs_linux
def test_setting_does_not_weaken_a_required_isolation(script: Path) -> None:
    for value in ("off", "wanted"):
        code, answer = run(script, "required", "mark", hidden=LANDLOCK, TOOLI_ISOLATION=value)
        assert (code, answer["error"]["code"]) == (30, "E2006")
    assert not (script.parent / "mark").exists()


# ------------------------------------------------------------------ a simulated kernel


def failing_syscall(number: int) -> Any:
    """Return a system call that fails."""

    def syscall(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return syscall


@pytest.fixture
def app_and_runs() -> tuple[Tooli, list[str]]:
    """Return an app with a command that requires isolation, and a list of its runs."""
    app = Tooli("isolated", security_policy="off")
    ran: list[str] = []

    @app.command(isolation="required")
    def work() -> str:
        ran.append("ran")
        return "ran"

    return app, ran


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_command_does_not_run_after_a_landlock_error(
    app_and_runs: tuple[Tooli, list[str]], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    app, ran = app_and_runs
    monkeypatch.setattr(landlock, "syscall", failing_syscall(number))
    found = app.call("work")
    assert found.error is not None and found.error.code == "E2006"
    assert not ran


async def test_async_calls_and_streams_do_not_run(
    app_and_runs: tuple[Tooli, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, ran = app_and_runs
    monkeypatch.setattr(landlock, "syscall", failing_syscall(errno.ENOSYS))
    found = await app.acall("work")
    assert found.error is not None and found.error.code == "E2006"
    with pytest.raises(Exception, match="requires isolation"):
        list(app.stream("work"))
    with pytest.raises(Exception, match="requires isolation"):
        [item async for item in app.astream("work")]
    assert not ran


@pytest.mark.parametrize(("name", "machine"), [("darwin", "arm64"), ("linux", "riscv64")])
def test_command_does_not_run_on_another_system_or_processor(
    app_and_runs: tuple[Tooli, list[str]], monkeypatch: pytest.MonkeyPatch, name: str, machine: str
) -> None:
    app, ran = app_and_runs
    monkeypatch.setattr(syscalls.sys, "platform", name)
    fields = (*("Linux", "here", "6", "1"), machine)
    monkeypatch.setattr(syscalls.os, "uname", lambda: os.uname_result(fields))
    found = app.call("work")
    assert found.error is not None and found.error.code == "E2006"
    assert not ran


def test_calls_over_http_and_mcp_do_not_run(
    app_and_runs: tuple[Tooli, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tooli.core.call import Caller
    from tooli.serving.dispatcher import ToolDispatcher

    app, ran = app_and_runs
    monkeypatch.setattr(landlock, "syscall", failing_syscall(errno.ENOSYS))
    dispatcher = ToolDispatcher(app)
    for surface in ("http", "mcp"):
        answer = dispatcher.prepare(dispatcher.tools["work"], {}, Caller(surface)).run()
        assert answer.error is not None and answer.error.code == "E2006"
        assert answer.error.http_status == 403
    assert not ran


def test_missing_optional_isolation_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLI_ISOLATION", "wanted")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(landlock, "syscall", failing_syscall(errno.ENOSYS))
    monkeypatch.setattr(syscalls, "syscall", failing_syscall(errno.ENOSYS))
    app = Tooli("isolated")

    @app.command()
    def work() -> str:
        return "ran"

    found = app.call("work")
    assert found.result == "ran"
    assert any("not isolated" in warning for warning in found.meta["warnings"]), found.meta


def test_an_invalid_value_is_refused_at_registration() -> None:
    from tooli.errors import DefinitionError

    app = Tooli("isolated")

    with pytest.raises(DefinitionError, match="isolation="):

        @app.command(isolation="sometimes")
        def work() -> None: ...


@pytest.mark.parametrize("value", ["requird", "1", "yes"])
def test_an_invalid_setting_runs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.setenv("TOOLI_ISOLATION", value)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(landlock, "syscall", failing_syscall(errno.ENOSYS))
    app = Tooli("isolated")
    ran: list[str] = []

    @app.command()
    def work() -> None:
        ran.append("ran")

    found = app.call("work")
    assert found.error is not None and found.error.code == "E1011"
    assert not ran
