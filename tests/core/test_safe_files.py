"""Folders that hostile code has prepared are opened and removed without following links."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from tests.execution.forked import run_in_child

from tooli.core import safe_files
from tooli.core.safe_files import (
    OpenFolder,
    empty_folder,
    file_identity,
    is_own_file,
    make_folders,
    remove_folder,
    resolve_links,
)

pytestmark = pytest.mark.skipif(not safe_files.HAS_DIR_FD, reason="needs directory descriptors")

NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "folder"
    found.mkdir()
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    found = tmp_path / "outside"
    found.mkdir()
    (found / "kept").write_text("kept")
    return found


def remove(folder: Path) -> bool:
    fd = os.open(folder, os.O_RDONLY)
    try:
        return remove_folder(folder.name, fd, OpenFolder(str(folder.parent)), max_seconds=300)
    finally:
        os.close(fd)


def make_chain(folder: Path, depth: int) -> None:
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def run_as_nobody(work: Callable[[], None]) -> int:
    """Run a function as another user in a forked process; return 0, or 1 if it raised."""

    def run() -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        work()

    return run_in_child(run)


class TestRemoveFolder:
    def test_deep_chain(self, folder: Path) -> None:
        make_chain(folder, 2500)
        assert remove(folder)
        assert not folder.exists()

    def test_few_descriptors_suffice(self, folder: Path) -> None:
        resource = pytest.importorskip("resource")
        make_chain(folder, 200)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        used = max(map(int, os.listdir("/dev/fd")))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 8, hard))
        try:
            assert remove(folder)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_wide_folder(self, folder: Path) -> None:
        for i in range(20):
            inner = folder / str(i)
            inner.mkdir()
            for j in range(100):
                (inner / str(j)).touch()
        assert remove(folder)
        assert not folder.exists()

    @pytest.mark.parametrize("name", ["a\nb", "\udcff", "-rf", " ", "x" * 255, "*"])
    def test_unusual_names(self, folder: Path, name: str) -> None:
        (folder / name).mkdir()
        (folder / name / name).touch()
        assert remove(folder)

    def test_links_are_removed_and_not_followed(self, folder: Path, outside: Path) -> None:
        inner = folder / "inner"
        inner.mkdir()
        for place in (folder, inner):
            (place / "to-folder").symlink_to(outside)
            (place / "to-file").symlink_to(outside / "kept")
            (place / "to-nothing").symlink_to("nothing")
            (place / "loop").symlink_to("loop")
            os.link(outside / "kept", place / "hard")
        assert remove(folder)
        assert (outside / "kept").read_text() == "kept"

    def test_pipes_and_sockets(self, folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        os.mknod(folder / "socket", stat.S_IFSOCK | 0o600)
        assert remove(folder)

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can change the user")
    def test_folders_without_permissions(self) -> None:
        def check() -> None:
            (folder / "a" / "b" / "c").mkdir(parents=True)
            (folder / "a" / "b" / "c" / "file").touch()
            fd = os.open(folder, os.O_RDONLY)
            for path in ("a/b/c", "a/b", "a", "."):
                (folder / path).chmod(0)
            assert remove_folder("folder", fd, OpenFolder(work))
            assert os.listdir(work) == []

        with tempfile.TemporaryDirectory() as work:  # another user cannot reach tmp_path
            os.chown(work, NOBODY, NOBODY)
            folder = Path(work, "folder")
            assert run_as_nobody(check) == 0

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can change the user")
    def test_folder_of_another_user_is_kept(self) -> None:
        def check() -> None:
            fd = os.open(folder, os.O_RDONLY)
            assert not remove_folder("folder", fd, OpenFolder(work))

        with tempfile.TemporaryDirectory() as work:
            folder = Path(work, "folder")
            (folder / "other").mkdir(parents=True, mode=0o700)
            (folder / "other").chmod(0o700)
            (folder / "other" / "kept").write_text("kept")
            (folder / "file").touch()
            for path in (work, folder):
                os.chown(path, NOBODY, NOBODY)
            assert run_as_nobody(check) == 0
            (left,) = folder.iterdir()
            assert (left / "kept").read_text() == "kept"
            assert stat.S_IMODE(left.stat().st_mode) == 0o700

    def test_folder_that_was_replaced_by_a_link(self, folder: Path, outside: Path) -> None:
        fd = os.open(folder, os.O_RDONLY)
        (folder / "file").touch()
        folder.rename(folder.parent / "moved")
        folder.symlink_to(outside)
        assert not remove_folder(folder.name, fd, OpenFolder(str(folder.parent)))
        os.close(fd)
        assert folder.is_symlink()
        assert os.listdir(outside) == ["kept"]
        assert os.listdir(folder.parent / "moved") == [], "the open folder was emptied"

    def test_folder_that_was_replaced_by_another_folder(self, folder: Path, outside: Path) -> None:
        fd = os.open(folder, os.O_RDONLY)
        folder.rename(folder.parent / "moved")
        outside.rename(folder)
        assert not remove_folder(folder.name, fd, OpenFolder(str(folder.parent)))
        os.close(fd)
        assert (folder / "kept").read_text() == "kept"

    def test_parent_that_was_replaced_by_a_link(self, folder: Path, tmp_path: Path) -> None:
        inner, victim = folder / "inner", tmp_path / "victim"
        inner.mkdir()
        (victim / "inner").mkdir(parents=True)
        (victim / "inner" / "kept").touch()
        fd, parent = os.open(inner, os.O_RDONLY), OpenFolder(str(folder))
        folder.rename(tmp_path / "moved")
        folder.symlink_to(victim)
        assert remove_folder("inner", fd, parent)
        os.close(fd)
        assert (victim / "inner" / "kept").exists()
        assert os.listdir(tmp_path / "moved") == []

    @pytest.mark.parametrize("swapped", ["listed", "moved"])
    def test_subfolder_that_is_swapped_during_the_removal(
        self, folder: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
    ) -> None:
        (folder / "sub").mkdir()
        (folder / "sub" / "file").touch()
        original = getattr(safe_files, "_move" if swapped == "listed" else "_open_child")

        def swap(fd: int, name: str, *more: int) -> object:
            os.rename(name, "elsewhere", src_dir_fd=fd, dst_dir_fd=fd)
            os.symlink(outside, name, dir_fd=fd)
            return original(fd, name, *more)

        monkeypatch.setattr(safe_files, "_move" if swapped == "listed" else "_open_child", swap)
        assert not remove(folder)
        assert (outside / "kept").read_text() == "kept"

    def test_mounted_folder_is_kept(self, folder: Path, outside: Path) -> None:
        code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):
    raise SystemExit("skip")
os.mkdir({str(folder / "mounted")!r})
os.makedirs({str(folder / "inner" / "mounted")!r})
for point in ("mounted", "inner/mounted"):
    target = os.path.join({str(folder)!r}, point).encode()
    if libc.mount({os.fsencode(outside)!r}, target, None, 0x1000, None):
        raise SystemExit("skip")
from tooli.core.safe_files import OpenFolder, remove_folder
fd = os.open({str(folder)!r}, os.O_RDONLY)
print(remove_folder("folder", fd, OpenFolder({str(folder.parent)!r})))
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
        )
        if "skip" in done.stderr:
            pytest.skip("mounting is not permitted")
        assert done.stdout == "False\n", done.stderr
        assert (outside / "kept").read_text() == "kept"

    @pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
    def test_errors_are_not_raised(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OSError(code, "an error")

        fd = os.open(folder, os.O_RDONLY)
        for name in ("unlink", "rename", "rmdir"):
            (folder / "sub").mkdir(exist_ok=True)
            (folder / "sub" / "file").touch()
            with monkeypatch.context() as patch:
                patch.setattr(os, name, fail)
                assert not empty_folder(fd)
        os.close(fd)


class TestOpenFolder:
    def test_link_in_the_path_is_refused(self, folder: Path, tmp_path: Path) -> None:
        (folder / "inner").mkdir()
        (tmp_path / "link").symlink_to(folder)
        with pytest.raises(OSError):
            OpenFolder(str(tmp_path / "link"))
        if sys.platform == "linux":
            with pytest.raises(OSError):
                OpenFolder(str(tmp_path / "link" / "inner"))

    def test_files_are_used_below_the_open_folder(self, folder: Path, tmp_path: Path) -> None:
        opened = OpenFolder(str(folder))
        folder.rename(tmp_path / "moved")
        folder.mkdir()
        os.close(opened.open("a", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        opened.replace("a", "b")
        assert os.listdir(tmp_path / "moved") == ["b"]
        assert opened.lstat("a") is None
        opened.unlink("b")
        assert os.listdir(tmp_path / "moved") == os.listdir(folder) == []

    def test_open_does_not_follow_links_or_wait_for_pipes(self, folder: Path) -> None:
        (folder / "file").write_text("x")
        (folder / "link").symlink_to("file")
        os.mkfifo(folder / "pipe")
        opened = OpenFolder(str(folder))
        with pytest.raises(OSError):
            opened.open("link", os.O_RDONLY)
        fd = opened.open("pipe", os.O_RDONLY)
        assert not stat.S_ISREG(os.fstat(fd).st_mode)
        os.close(fd)

    def test_without_directory_descriptors(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(safe_files, "HAS_DIR_FD", False)
        opened = OpenFolder(str(folder))
        assert opened.fd is None
        os.close(opened.open("a", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        opened.replace("a", "b")
        assert opened.list_names() == ["b"]
        assert opened.lstat("b") is not None
        opened.unlink("b")

    def test_without_path_descriptors(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / "file").touch()
        (tmp_path / "link").symlink_to(folder)
        monkeypatch.setattr(safe_files, "O_PATH", 0)
        assert OpenFolder(str(folder)).list_names() == ["file"]
        with pytest.raises(OSError):
            OpenFolder(str(tmp_path / "link"))

    def test_descriptors_are_closed(self, folder: Path) -> None:
        before = len(os.listdir("/dev/fd"))
        OpenFolder(str(folder))
        with pytest.raises(OSError):
            OpenFolder(str(folder / "missing" / "deeper"))
        assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("has_dir_fd", [True, False])
def test_new_folders_are_private(
    folder: Path, has_dir_fd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_files, "HAS_DIR_FD", has_dir_fd)
    before = os.umask(0)
    try:
        make_folders(str(folder / "a" / "b"))
        make_folders(str(folder / "a" / "b"))
    finally:
        os.umask(before)
    for name in ("a", "a/b"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700


@pytest.mark.parametrize("has_path_descriptors", [True, False])
def test_rights_are_not_changed_through_links(
    folder: Path, outside: Path, has_path_descriptors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_path_descriptors:
        monkeypatch.setattr(safe_files, "O_PATH", 0)
    outside.chmod(0o500)
    (folder / "link").symlink_to(outside)
    fd = os.open(folder, os.O_RDONLY)
    safe_files._restore_access(fd, "link")
    os.close(fd)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o500


def test_own_files(folder: Path) -> None:
    (folder / "file").touch()
    (folder / "link").symlink_to("file")
    assert is_own_file(os.lstat(folder / "file"))
    assert not is_own_file(os.lstat(folder / "link"))
    assert not is_own_file(os.lstat(folder))
    os.link(folder / "file", folder / "second")
    assert not is_own_file(os.lstat(folder / "file"))
    assert file_identity(os.stat(folder / "file")) == file_identity(os.stat(folder / "second"))


def test_removal_stops_after_the_maximum_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that adds a folder for each folder that is removed does not cause a hang."""
    folder = tmp_path / "folder"
    (folder / "first").mkdir(parents=True)
    open_child, steps = safe_files._open_child, iter(range(10_000))

    def add_folder(fd: int, name: str) -> int | None:
        if next(steps, None) is None:
            pytest.fail("the removal does not end")
        child = open_child(fd, name)
        os.mkdir("next", dir_fd=child)
        return child

    clock = iter(range(10_000))
    monkeypatch.setattr(safe_files, "_open_child", add_folder)
    monkeypatch.setattr(safe_files, "monotonic", lambda: next(clock) / 10)
    fd = os.open(folder, os.O_RDONLY)
    try:
        assert not remove_folder("folder", fd, OpenFolder(str(tmp_path)))
    finally:
        os.close(fd)
    assert next(clock) < 100


def test_removal_lists_a_limited_number_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(5):
        (folder / str(number)).touch()
    monkeypatch.setattr(safe_files, "_MAX_LISTED_NAMES", 3)
    for is_empty, count in ((False, 2), (True, 0)):
        fd = os.open(folder, os.O_RDONLY)
        try:
            assert empty_folder(fd) is is_empty
        finally:
            os.close(fd)
        assert len(os.listdir(folder)) == count


class TestResolveLinks:
    def test_same_path_as_realpath(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a" / "b").mkdir(parents=True)
        links = {
            "one": "a/b",
            "a/two": "../one/..",
            "a/b/root": "/",
            "missing": "nothing/../a",
            "absolute": f"{tmp_path}/a/./b//",
        }
        for name, target in links.items():
            (tmp_path / name).symlink_to(target)
        monkeypatch.chdir(tmp_path / "a")
        names = ("", ".", "..", "a", "b", "one", "two", "root", "missing", "absolute", "none")
        for parts in product(names, repeat=3):
            path = os.path.join(*parts)
            assert resolve_links(path)[0] == os.path.realpath(path)

    def test_links_on_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "a").symlink_to("folder")
        (tmp_path / "folder" / "b").symlink_to("../a/c")
        (tmp_path / "folder" / "c").touch()
        real_path, links = resolve_links(str(tmp_path / "a" / "b"))
        assert real_path == str(tmp_path / "folder" / "c")
        assert [os.path.relpath(link, tmp_path) for link in links] == ["a", "folder/b", "a"]
        assert resolve_links(real_path) == (real_path, ())

    def test_loop(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        real_path, links = resolve_links(str(tmp_path / "a" / ".." / "file"))
        assert len(links) > 40
        with pytest.raises(OSError):
            os.stat(real_path)
