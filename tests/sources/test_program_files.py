"""The files of programs that run a kept source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tooli.errors import ConflictError, InputError, TemporaryError
from tooli.sources import program_files
from tooli.sources.program_files import (
    batch_file,
    check_replaceable,
    default_program_folder,
    delete_program,
    is_own_program,
    program_path,
    script,
    write_program,
)


def test_files_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program_path("desk", str(tmp_path / "bin"))
    write_program(path, "desk")
    assert is_own_program(path, "desk") and not is_own_program(path, "des")
    write_program(path, "desk")
    with pytest.raises(ConflictError):
        check_replaceable(path, "other")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert not is_own_program(str(link), "desk")
    assert not is_own_program(str(tmp_path), "desk")
    monkeypatch.setattr(program_files, "write_atomically", _fail)
    with pytest.raises(TemporaryError, match="cannot be written"):
        write_program(path, "desk")
    assert delete_program(path, "desk") and not delete_program(path, "desk")


def _fail(*_: object) -> None:
    raise OSError(13, "Permission denied")


def test_program_that_cannot_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program_path("desk", str(tmp_path))
    write_program(path, "desk")
    monkeypatch.setattr("os.unlink", _fail)
    with pytest.raises(TemporaryError, match="cannot be deleted"):
        delete_program(path, "desk")


def test_interpreter_in_a_folder_with_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    python = folder / "python"
    python.symlink_to(sys.executable)
    text = script("desk", str(python))
    code = text.partition("import sys\n")[0] + "import sys\nprint(sys.argv[1:])\n"
    file = tmp_path / "desk"
    file.write_text(code)
    file.chmod(0o755)
    done = subprocess.run([file, "x y"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "['x y']\n", done.stderr
    assert script("desk", "/usr/bin/python3").startswith("#!/usr/bin/python3\n# Written by")
    with pytest.raises(InputError, match="quote"):
        script("desk", "/it's here/python")


def test_file_for_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", r"C:\100%\python.exe")
    text = batch_file("desk")
    assert '"C:\\100%%\\python.exe" -c "' in text and text.endswith('" %*\r\n')
    assert "Written by `tooli adopt`: @desk " in text


def test_folder_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(program_files.os, "name", "posix")
    assert default_program_folder() == "/home/ada/.local/bin"
