"""Files are written completely or not at all, and edits of a person are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.install.test_managed_files import add, tree

from tooli.errors import AuthError, ConflictError, ToolRuntimeError
from tooli.install import file_changes
from tooli.install.file_changes import FileChange, InstallStep, apply_steps


class TestWriting:
    def test_one_failed_write_changes_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("old")
        (tmp_path / "file").write_text("x")
        changes = (
            FileChange(str(tmp_path / "a"), b"old", b"new"),
            FileChange(str(tmp_path / "deep" / "er" / "b"), None, b"b"),
            FileChange(str(tmp_path / "file" / "c"), None, b"c"),
        )
        with pytest.raises((ToolRuntimeError, ConflictError), match="Nothing was changed"):
            apply_steps([InstallStep("", "", "absent", "created", changes)])
        assert tree(tmp_path) == ["a", "file"]
        assert (tmp_path / "a").read_text() == "old"

    def test_full_disk_leaves_no_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, replaced = os.replace, []

        def replace(source: str, path: str, **folders: int | None) -> None:
            replaced.append(path)
            if path.endswith("find.md"):
                raise OSError(28, "No space left on device")
            real(source, path, **folders)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(ToolRuntimeError, match="No space left"):
            add(tmp_path / "skills" / "shop")
        assert len(replaced) == 2 and tree(tmp_path) == []

    def test_permission_denied_is_an_auth_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def deny(path: str, data: bytes) -> None:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(file_changes, "write_atomically", deny)
        with pytest.raises(AuthError) as raised:
            add(tmp_path / "shop")
        assert (raised.value.code, raised.value.exit_code) == ("E2030", 30)

    def test_failed_rollback_is_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a").write_text("old")
        real, calls = file_changes.write_atomically, []

        def write(path: str, data: bytes) -> None:
            calls.append(path)
            if len(calls) > 1:
                raise OSError(5, "Input/output error")
            real(path, data)

        monkeypatch.setattr(file_changes, "write_atomically", write)
        both = tuple(
            FileChange(str(tmp_path / name), before, b"new")
            for name, before in (("a", b"old"), ("b", None))
        )
        with pytest.raises(ToolRuntimeError, match="Already changed"):
            apply_steps([InstallStep("", "", "stale", "updated", both)])

    def test_file_changed_since_the_plan_is_a_conflict(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("newer")
        step = InstallStep(
            "", "", "stale", "updated", (FileChange(str(tmp_path / "a"), b"old", b"x"),)
        )
        with pytest.raises(ConflictError, match="meanwhile"):
            apply_steps([step])
        assert (tmp_path / "a").read_text() == "newer"

    @pytest.mark.skipif(os.name == "nt", reason="no modes")
    def test_file_mode_is_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_text("old")
        path.chmod(0o640)
        file_changes.write_atomically(str(path), b"new")
        assert path.stat().st_mode & 0o777 == 0o640
        mask = os.umask(0o027)
        try:
            file_changes.write_atomically(str(tmp_path / "b"), b"new")
        finally:
            os.umask(mask)
        assert (tmp_path / "b").stat().st_mode & 0o777 == 0o640


def test_digest_ignores_line_ends() -> None:
    assert file_changes.digest(b"a\r\nb") == file_changes.digest(b"a\nb")
    assert file_changes.is_same_text(b"a\r\n", b"a\n")
    assert not file_changes.is_same_text(b"a\n", b"b\n")


def test_diff_of_new_and_removed_files_names_dev_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "a.txt")
    added = file_changes.format_diff(FileChange(path, None, b"one"))
    assert added == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n"
    removed = file_changes.format_diff(FileChange(path, b"one\n", None))
    assert removed.startswith("--- a/a.txt\n+++ /dev/null\n")


def test_dry_run_returns_the_diff(tmp_path: Path) -> None:
    change = FileChange(str(tmp_path / "a"), None, b"x")
    step = InstallStep(change.path, "agents", "absent", "created", (change,))
    (row,) = file_changes.plan_and_apply(lambda: [step], force=False, dry_run=True)
    assert (row["action"], "+x" in row["diff"]) == ("created", True)
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
def test_new_files_and_folders_are_not_writable_by_others(tmp_path: Path) -> None:
    """Agents act on these files. The umask is 000."""
    folders: list[str] = []
    before = os.umask(0)
    try:
        file_changes._make_folders(str(tmp_path / "a" / "b"), folders)
        file_changes.write_atomically(str(tmp_path / "a" / "b" / "file"), b"x")
        file_changes.write_atomically(str(tmp_path / "a" / "private"), b"x", 0o600)
        assert os.umask(0) == 0, "the umask is restored"
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/file")}
    assert modes == {"a": 0o700, "a/b": 0o700, "a/b/file": 0o644}
    assert (tmp_path / "a" / "private").stat().st_mode & 0o777 == 0o600
