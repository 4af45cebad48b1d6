"""The program of the sandbox, and what happens without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.orchestrate.script_app import Shop

from tooli import DependencyError
from tooli.orchestrate import sandbox


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
    assert sandbox.find_worker().parent == Path(sys.executable).parent.resolve()


def test_missing_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def find_none(name: str) -> None:
        raise sandbox.PackageNotFoundError(name)

    monkeypatch.setattr(sandbox, "distribution", find_none)
    monkeypatch.setattr(sandbox.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(DependencyError, match="not installed") as error:
        sandbox.find_worker()
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
    code = "from tooli import Tooli; print(Tooli('a').orchestrate('6 * 7').unwrap())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "42\n")
