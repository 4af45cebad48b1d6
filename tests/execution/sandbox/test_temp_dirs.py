"""The folders of a sandboxed call, and their removal after hostile code has used them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from tooli import TemporaryError
from tooli.core.declared_capabilities import AllowedAccess
from tooli.core.safe_files import OpenFolder
from tooli.execution.sandbox import temp_dirs
from tooli.execution.sandbox.temp_dirs import SandboxDirs

STALE_NAME = "tooli-sandbox-0123456789abcdef"


@pytest.fixture(autouse=True)
def _temp_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(temp_dirs, "_swept_dirs", set())


class TestDeclaredPaths:
    def test_writable_paths_are_created(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        names = ("there", "new-folder/deep", "new-file.txt", "no-folder/x.txt")
        dirs = SandboxDirs(AllowedAccess(writes=tuple(str(tmp_path / name) for name in names)))
        dirs.remove()
        assert (tmp_path / "new-folder" / "deep").is_dir()
        assert (tmp_path / "new-file.txt").is_file()
        assert not (tmp_path / "no-folder").exists(), "the command reports it"

    def test_new_paths_are_private_whatever_the_umask_is(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            paths = (str(tmp_path / "a" / "b"), str(tmp_path / "c.txt"))
            dirs = SandboxDirs(AllowedAccess(writes=paths))
            modes = {
                name: stat.S_IMODE(os.stat(tmp_path / name).st_mode)
                for name in ("a", "a/b", "c.txt", dirs.temp_dir)
            }
            dirs.remove()
        finally:
            os.umask(before)
        assert modes == {"a": 0o700, "a/b": 0o700, "c.txt": 0o600, dirs.temp_dir: 0o700}

    @pytest.mark.parametrize("name", ["link/new", "link/new.txt", "link/a/b"])
    def test_link_that_appears_after_the_check_is_not_followed(
        self, tmp_path: Path, name: str
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (tmp_path / "link").symlink_to(outside)
        SandboxDirs(AllowedAccess(writes=(str(tmp_path / name),))).remove()
        assert os.listdir(outside) == []


class TestTemporaryFolder:
    def test_temporary_files_are_removed(self) -> None:
        dirs = SandboxDirs(AllowedAccess())
        (Path(dirs.temp_dir) / "left").write_text("x")
        dirs.remove()
        assert not Path(dirs.temp_dir).exists()

    def test_replaced_folder_is_kept(self, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        victim.mkdir()
        (victim / "kept").touch()
        for replace in (victim.rename, lambda target: Path(target).symlink_to(victim)):
            dirs = SandboxDirs(AllowedAccess())
            (Path(dirs.temp_dir) / "left").touch()
            os.rename(dirs.temp_dir, tmp_path / "moved")
            replace(Path(dirs.temp_dir))
            dirs.remove()
            assert (Path(dirs.temp_dir) / "kept").exists()
            assert os.listdir(tmp_path / "moved") == []
            os.rmdir(tmp_path / "moved")
            if not victim.exists():
                os.rename(dirs.temp_dir, victim)

    def test_descriptors_are_closed(self) -> None:
        before = len(os.listdir("/proc/self/fd"))
        SandboxDirs(AllowedAccess()).remove()
        assert len(os.listdir("/proc/self/fd")) == before

    def test_folder_that_cannot_be_created_is_a_temporary_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(path: str, mode: int, dir_fd: int | None = None) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.delenv("TMPDIR")
        monkeypatch.setattr(os, "mkdir", fail)
        monkeypatch.setattr(temp_dirs, "_remove_stale_dirs", lambda *_: None)
        with pytest.raises(TemporaryError, match="No space left on device"):
            SandboxDirs(AllowedAccess())

    @pytest.mark.parametrize("failure", [BlockingIOError(11, "locked"), OSError(95, "no locks")])
    def test_locked_folder_fails_but_missing_lock_support_is_ignored(
        self, failure: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(fd: int, *, exclusive: bool = False) -> None:
            raise failure

        monkeypatch.setattr(temp_dirs, "_lock", fail)
        parent = OpenFolder(str(tmp_path.parent))
        if isinstance(failure, BlockingIOError):
            with pytest.raises(BlockingIOError):
                temp_dirs._lock_dir(parent, tmp_path.name)
        else:
            os.close(temp_dirs._lock_dir(parent, tmp_path.name))

    def test_folder_removed_before_the_lock_is_not_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "gone"
        folder.mkdir()
        monkeypatch.setattr(temp_dirs, "_lock", lambda fd: folder.rmdir())
        with pytest.raises(FileNotFoundError):
            temp_dirs._lock_dir(OpenFolder(str(tmp_path)), "gone")


def test_temporary_folder_without_descriptors_of_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "supports_dir_fd", set())
    folder = temp_dirs.make_temp_folder("tooli-reader-")
    (Path(folder.path) / "file").touch()
    assert Path(folder.path).stat().st_mode & 0o77 == 0
    folder.remove()
    folder.remove()
    assert not list(tmp_path.iterdir())


class TestStaleFolders:
    def test_folders_of_killed_calls_are_removed(self, tmp_path: Path) -> None:
        stale = tmp_path / STALE_NAME
        (stale / "deep" / "deeper").mkdir(parents=True)
        used = SandboxDirs(AllowedAccess())
        assert not stale.exists()
        temp_dirs._swept_dirs.clear()
        other = SandboxDirs(AllowedAccess())
        assert Path(used.temp_dir).exists(), "it is locked"
        used.remove()
        other.remove()

    def test_other_names_are_kept(self, tmp_path: Path) -> None:
        names = (
            *("tooli-sandbox-", "tooli-sandbox-results", STALE_NAME + "0", STALE_NAME[:-1]),
            *(STALE_NAME.upper(), "x" + STALE_NAME, STALE_NAME[:-1] + "g", STALE_NAME + ".bak"),
        )
        for name in names:
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").touch()
        SandboxDirs(AllowedAccess()).remove()
        assert all((tmp_path / name / "file").exists() for name in names)

    def test_files_and_links_are_kept(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "kept").touch()
        (tmp_path / STALE_NAME).symlink_to(outside)
        (tmp_path / STALE_NAME.replace("0", "1")).write_text("not a folder")
        SandboxDirs(AllowedAccess()).remove()
        assert (tmp_path / STALE_NAME / "kept").exists()
        assert (tmp_path / STALE_NAME.replace("0", "1")).exists()

    def test_folder_of_another_user_is_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        foreign = tmp_path / STALE_NAME
        foreign.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        SandboxDirs(AllowedAccess()).remove()
        assert foreign.exists()

    def test_folder_that_cannot_be_removed_is_ignored(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / STALE_NAME).mkdir()
        monkeypatch.setattr(temp_dirs, "remove_folder", lambda *_: False)
        SandboxDirs(AllowedAccess()).remove()
        assert (tmp_path / STALE_NAME).exists()

    def test_removal_stops_after_the_maximum_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = [STALE_NAME, STALE_NAME.replace("0", "1")]
        for name in names:
            (tmp_path / name).mkdir()
        monkeypatch.setattr(temp_dirs, "_MAX_SWEEP_SECONDS", 0.0)
        SandboxDirs(AllowedAccess()).remove()
        assert sorted(os.listdir(tmp_path)) == names, "a later process removes them"
        monkeypatch.undo()
        temp_dirs._swept_dirs.clear()
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        SandboxDirs(AllowedAccess()).remove()
        assert os.listdir(tmp_path) == []

    def test_unreadable_parent_is_skipped(self, tmp_path: Path) -> None:
        parent = OpenFolder(str(tmp_path))
        tmp_path.rmdir()
        temp_dirs._remove_stale_dirs(parent, "tooli-sandbox-")
