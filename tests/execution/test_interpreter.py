"""New interpreters in a folder that contains modules with the names of real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tooli
from tooli.execution.interpreter import isolated_argv

SHOW_PATHS = "import json, tooli; print(tooli.__file__); print(json.__file__)"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose modules must not be imported."""
    for name in ("tooli", "json", "typer", "sitecustomize", "usercustomize", "shop"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the repository')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(argv: list[str], **more: str) -> str:
    done = subprocess.run(
        argv, env={**os.environ, **more}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("entry", [None, "", ".", "absolute"])
def test_modules_of_the_current_folder(
    clone: Path, monkeypatch: pytest.MonkeyPatch, entry: str | None
) -> None:
    if entry is not None:
        monkeypatch.setattr(sys, "path", [str(clone) if entry == "absolute" else entry, *sys.path])
    found = run(isolated_argv(SHOW_PATHS), PYTHONPATH=os.pathsep + ".")
    assert found.splitlines()[0] == str(tooli.__file__)
    assert str(clone) not in found


def test_folder_of_sys_path_is_searched_last(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = clone / "libraries"
    folder.mkdir()
    (folder / "json.py").write_text("raise SystemExit('not the standard library')\n")
    (folder / "rare_module_of_test.py").write_text("VALUE = 5\n")
    monkeypatch.syspath_prepend(str(folder))
    code = "import json, rare_module_of_test; print(rare_module_of_test.VALUE)"
    assert run(isolated_argv(code)) == "5\n"


def test_quotes_in_paths(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = clone / 'it\'s "quoted"\n; raise SystemExit(1)'
    folder.mkdir()
    (folder / "rare_module_of_test.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    assert run(isolated_argv("import rare_module_of_test; print(1)")) == "1\n"
