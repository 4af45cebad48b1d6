"""Open files before the exit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tooli.cli.open_files import (
    flush_open_files,
    has_no_open_writers,
    has_only_inherited_files,
)


def test_open_writer_is_found(tmp_path: Path) -> None:
    with open(tmp_path / "out.txt", "w", encoding="utf-8") as file:
        file.write("x")
        assert not has_no_open_writers()


def test_files_are_flushed_before_the_exit(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write("kept")
        flush_open_files(False, is_exiting=False)
        assert path.read_text() == ""
        flush_open_files(False, is_exiting=True)
        assert path.read_text() == "kept"


def run_python(code: str, *descriptors: int) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        pass_fds=descriptors,
    )
    return done.stdout.strip()


def test_inherited_files_do_not_count_as_open(tmp_path: Path) -> None:
    code = "from tooli.cli.open_files import *; print(has_only_inherited_files(0))"
    with open(tmp_path / "in.txt", "wb") as file:
        assert run_python(code, file.fileno()) == "True"
    assert run_python(f"f = open({os.devnull!r}); {code}") == "False"
    assert run_python(f"f = open({os.devnull!r}); {code.replace('(0)', '(1)')}") == "True"


def test_missing_stream_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.__stdin__", None)
    assert not has_only_inherited_files(100)
