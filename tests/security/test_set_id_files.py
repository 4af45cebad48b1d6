"""No command can leave a program that runs with the rights of its user or group."""

from __future__ import annotations

import errno
import functools
import mmap
import os
from pathlib import Path

import pytest
from tests.execution.sandbox.sandboxed import sandboxed

from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

pytestmark = pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="; ".join(detect_sandbox_support().missing)
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with `in`, which contains a file."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("text")
    return tmp_path.resolve()


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6755])
@pytest.mark.parametrize("capabilities", [["fs:write:{}"], ["fs:write"]])
def test_file_is_not_created_with_the_bits(tree: Path, mode: int, capabilities: list[str]) -> None:
    folder = tree / "in"
    allowed = [text.format(folder) for text in capabilities]

    def create(name: str) -> None:
        os.umask(0)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        if name == "tmpfile":
            flags, name = os.O_TMPFILE | os.O_WRONLY, "."
        if name == "node":
            os.mknod(folder / name, 0o100000 | mode)
        else:
            os.open(folder / name, flags, mode)

    for name in ("file", "new", "node", "tmpfile"):
        found = sandboxed(allowed, functools.partial(create, name))
        assert found.errno in (errno.EPERM, errno.EEXIST), (name, found)
    assert sorted(os.listdir(folder)) == ["file"]
    found = sandboxed(allowed, lambda: os.close(os.open(folder / "new", 0o101, 0o755)))
    assert found.error is None, found


def test_mode_is_changed_only_without_the_bits(tree: Path) -> None:
    file = tree / "in" / "file"
    assert sandboxed(["fs:write"], lambda: os.chmod(file, 0o4755)).errno == errno.EPERM
    assert sandboxed(["fs:write"], lambda: os.chmod(file, 0o751)).error is None
    assert file.stat().st_mode & 0o7777 == 0o751


def test_changed_file_loses_the_bits(tree: Path) -> None:
    file = tree / "in" / "file"
    file.chmod(0o6755)
    found = sandboxed([f"fs:write:{tree / 'in'}"], lambda: file.write_text("hostile"))
    assert found.error is None, found
    assert file.stat().st_mode & 0o6000 == 0


def test_file_that_is_changed_through_a_mapping_keeps_the_bits(tree: Path) -> None:
    """A limitation of the kernel, which docs/isolation.md describes."""
    file = tree / "in" / "file"
    file.chmod(0o6755)

    def change() -> None:
        with open(file, "r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapping:
            mapping[:4] = b"evil"

    found = sandboxed([f"fs:{act}:{tree / 'in'}" for act in ("read", "write")], change)
    assert found.error is None, found
    assert (file.read_text(), file.stat().st_mode & 0o6000) == ("evil", 0o6000)
