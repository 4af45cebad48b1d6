"""Files that a caller names: checked and opened in one step, and read through the descriptor."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from tooli.core import caller_files
from tooli.core.caller_files import (
    FileRules,
    IsolationRules,
    hold_caller_file,
    open_caller_file,
)
from tooli.core.declared_capabilities import AllowedAccess
from tooli.errors import AuthError
from tooli.inputs.source import Input

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")


def bounds(*denied: Path) -> AllowedAccess:
    return AllowedAccess(reads=None, denied=tuple([str(path) for path in denied]))


def deny(*denied: Path) -> FileRules:
    return FileRules("tool", lambda: bounds(*denied), lambda: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "file").write_text("private")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "file").write_text("own")
    return tmp_path


def test_file_without_rules(folder: Path) -> None:
    file = open_caller_file(str(folder / "work" / "file"))
    assert (file.read(), file.read(2), file.read()) == (b"own", b"ow", b"own")


def test_denied_file_is_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise AssertionError("opened")

    monkeypatch.setattr(os, "open", fail)
    for opener in (open_caller_file, hold_caller_file):
        with pytest.raises(AuthError) as caught:
            opener(str(folder / "private" / "file"), "name", deny(folder / "private"))
        assert (caught.value.code, caught.value.field) == ("E2005", "name")


def test_link_to_a_denied_file(folder: Path) -> None:
    (folder / "work" / "link").symlink_to(folder / "private" / "file")
    with pytest.raises(AuthError):
        open_caller_file(str(folder / "work" / "link"), None, deny(folder / "private"))


@pytest.mark.parametrize("part", ["file", "folder"])
def test_link_that_is_made_after_the_check(
    folder: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The path is checked, and then replaced before it is opened."""
    real = caller_files.resolve_links
    path = folder / "work" / "file"

    def resolve_and_replace(name: str) -> tuple[str, tuple[str, ...]]:
        resolved = real(name)
        if part == "file":
            path.unlink()
            path.symlink_to(folder / "private" / "file")
        else:
            os.rename(folder / "work", folder / "old")
            (folder / "work").symlink_to(folder / "private")
        return resolved

    monkeypatch.setattr(caller_files, "resolve_links", resolve_and_replace)
    with pytest.raises(OSError):
        open_caller_file(str(path), None, deny(folder / "private")).read()


def test_held_input_stays_the_same_file(folder: Path) -> None:
    path = folder / "work" / "file"
    source = Input(str(path))
    assert source.hold() is not None
    path.unlink()
    path.symlink_to(folder / "private" / "file")
    assert source.read_text() == source.read_text() == "own"
    with source.open("rb") as first, source.open("rb") as second:
        assert (first.read(1), second.read(), first.read()) == (b"o", b"own", b"wn")
        assert first.seek(1) == 1 and first.read(1) == b"w"
        assert first.seek(-1, io.SEEK_END) == 2 and first.read() == b"n"
        assert os.lseek(first.fileno(), 0, os.SEEK_CUR) == 0
        with pytest.raises(ValueError):
            first.raw.seek(-1)  # type: ignore[attr-defined]


def test_planted_link(folder: Path) -> None:
    (folder / "work" / "link").symlink_to(folder / "private" / "file")
    name = str(folder / "work" / "link")

    def rules(access: AllowedAccess, *link_folders: str) -> FileRules:
        return FileRules("tool", lambda: None, lambda: IsolationRules(access, link_folders))

    work, private = str(folder / "work"), str(folder / "private")
    for found in (rules(AllowedAccess(writes=(work,))), rules(AllowedAccess(), work)):
        with pytest.raises(AuthError) as caught:
            open_caller_file(name, "name", found)
        assert caught.value.code == "E2003"
    allowed = rules(AllowedAccess(reads=(private,), writes=(work,)))
    assert open_caller_file(name, None, allowed).read() == b"private"
    assert open_caller_file(f"{private}/file", None, rules(AllowedAccess(), work)).read()


def test_folder_is_an_error(folder: Path) -> None:
    for rules in (None, deny(folder / "private")):
        with pytest.raises(IsADirectoryError):
            open_caller_file(str(folder / "work"), None, rules)
        assert hold_caller_file(str(folder / "work"), None, rules)[1] is None
    with pytest.raises(IsADirectoryError):
        open_caller_file("/", None, deny(folder / "private"))


@pytest.mark.parametrize("has_rules", [False, True])
def test_pipe_waits_for_its_writer(folder: Path, has_rules: bool) -> None:
    path = folder / "work" / "pipe"
    os.mkfifo(path)
    rules = deny(folder / "private") if has_rules else None
    assert hold_caller_file(str(path), None, rules)[1] is None
    writer = threading.Thread(target=path.write_text, args=("data",))
    writer.start()
    assert open_caller_file(str(path), None, rules).read() == b"data"
    writer.join(10)


def test_writer_of_a_pipe_may_end_early(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer ends before the reader begins to wait for it."""
    path = folder / "work" / "pipe"
    os.mkfifo(path)
    open_resolved = caller_files._open_resolved

    def open_and_write(name: str, links: tuple[str, ...]) -> int:
        fd = open_resolved(name, links)
        path.write_text("data")
        return fd

    monkeypatch.setattr(caller_files, "_open_resolved", open_and_write)
    assert open_caller_file(str(path), None, deny(folder / "private")).read() == b"data"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_descriptor_of_the_process(folder: Path) -> None:
    """The shell passes such a path for `<(command)`."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"data")
    os.close(write_end)
    try:
        file = open_caller_file(f"/dev/fd/{read_end}", None, deny(folder / "private"))
        assert file.read() == b"data"
    finally:
        os.close(read_end)
    descriptor = os.open(folder / "private" / "file", os.O_RDONLY)
    try:
        with pytest.raises(AuthError):
            open_caller_file(f"/dev/fd/{descriptor}", None, deny(folder / "private"))
    finally:
        os.close(descriptor)
