"""Skill folders: write, update, remove."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tooli.errors import AuthError, ConflictError, ToolRuntimeError
from tooli.install import file_changes
from tooli.install.file_changes import FileChange, InstallStep, apply_steps, resolve_conflicts
from tooli.install.managed_files import MANIFEST, plan_skill, plan_skill_removal

FILES = {"SKILL.md": "---\nname: shop\n---\n", "references/find.md": "# find\n"}


def add(folder: Path, files: dict[str, str] = FILES, *, force: bool = False) -> InstallStep:
    (step,) = resolve_conflicts([plan_skill(str(folder), "agents", "shop", files)], force=force)
    apply_steps([step])
    return step


def remove(folder: Path, *, force: bool = False) -> InstallStep:
    (step,) = resolve_conflicts([plan_skill_removal(str(folder), "agents", FILES)], force=force)
    apply_steps([step])
    return step


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".claude" / "skills" / "shop"


class TestAddAndRemove:
    def test_twice(self, folder: Path, tmp_path: Path) -> None:
        assert (add(folder).state, add(folder).state) == ("absent", "current")
        assert tree(folder) == [MANIFEST, "SKILL.md", "references", "references/find.md"]
        assert remove(folder).action == "removed"
        assert tree(tmp_path) == []
        assert remove(folder).action == "absent"

    def test_existing_folders_stay(self, folder: Path, tmp_path: Path) -> None:
        folder.parent.mkdir(parents=True)
        add(folder)
        remove(folder)
        assert tree(tmp_path) == [".claude", ".claude/skills"]

    def test_two_apps_share_the_created_folders(self, folder: Path, tmp_path: Path) -> None:
        other = folder.parent / "other"
        add(folder)
        add(other)
        remove(folder)
        remove(other)
        assert tree(tmp_path) == []

    def test_other_files_stay(self, folder: Path) -> None:
        add(folder)
        (folder / "notes.md").write_text("mine")
        remove(folder)
        assert tree(folder) == ["notes.md"]


class TestStates:
    def test_stale(self, folder: Path) -> None:
        add(folder, {"SKILL.md": "older\n", "references/gone.md": "x\n"})
        assert add(folder).state == "stale"
        assert tree(folder) == [MANIFEST, "SKILL.md", "references", "references/find.md"]
        assert add(folder).state == "current"

    def test_edited(self, folder: Path) -> None:
        add(folder)
        (folder / "SKILL.md").write_text("mine\n")
        with pytest.raises(ConflictError) as raised:
            add(folder)
        (conflict,) = raised.value.details["conflicts"]  # type: ignore[index,misc]
        assert "-mine" in conflict["diff"]
        with pytest.raises(ConflictError):
            remove(folder)
        assert (folder / "SKILL.md").read_text() == "mine\n"
        step = add(folder, force=True)
        assert (folder / "SKILL.md.bak").read_text() == "mine\n"
        assert step.backups == (str(folder / "SKILL.md.bak"),)
        assert add(folder).state == "current"

    def test_backups_are_numbered(self, folder: Path) -> None:
        add(folder)
        for text in ("one", "two"):
            (folder / "SKILL.md").write_text(text)
            add(folder, force=True)
        assert (folder / "SKILL.md.bak").read_text() == "one"
        assert (folder / "SKILL.md.bak2").read_text() == "two"

    def test_skill_of_another_app(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("theirs\n")
        with pytest.raises(ConflictError):
            add(folder)
        assert remove(folder).action == "absent"
        assert tree(folder) == ["SKILL.md"]

    def test_line_ends_that_git_changed(self, folder: Path) -> None:
        add(folder)
        for name in ("SKILL.md", MANIFEST):
            path = folder / name
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        assert add(folder).state == "current"
        remove(folder)
        assert not folder.exists()

    def test_unreadable_manifest(self, folder: Path) -> None:
        add(folder)
        (folder / MANIFEST).write_text("{")
        assert add(folder).state == "stale"
        (folder / MANIFEST).unlink()
        assert remove(folder).action == "removed"

    def test_manifest_with_paths_outside(self, folder: Path, tmp_path: Path) -> None:
        add(folder)
        secret = tmp_path / "secret"
        secret.write_text("x")
        manifest = json.loads((folder / MANIFEST).read_text())
        from tooli.install.file_changes import digest

        manifest["files"]["../../../secret"] = digest(b"x")
        manifest["files"][str(secret)] = digest(b"x")
        (folder / MANIFEST).write_text(json.dumps(manifest))
        remove(folder)
        assert secret.exists()


class TestWriting:
    def test_all_or_nothing(self, tmp_path: Path) -> None:
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

    def test_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real, replaced = os.replace, []

        def replace(source: str, path: str) -> None:
            replaced.append(path)
            if path.endswith("find.md"):
                raise OSError(28, "No space left on device")
            real(source, path)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(ToolRuntimeError, match="No space left"):
            add(tmp_path / "skills" / "shop")
        assert len(replaced) == 2 and tree(tmp_path) == []

    def test_not_allowed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def test_changed_meanwhile(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("newer")
        step = InstallStep(
            "", "", "stale", "updated", (FileChange(str(tmp_path / "a"), b"old", b"x"),)
        )
        with pytest.raises(ConflictError, match="meanwhile"):
            apply_steps([step])
        assert (tmp_path / "a").read_text() == "newer"

    @pytest.mark.skipif(os.name == "nt", reason="no modes")
    def test_file_mode_stays(self, tmp_path: Path) -> None:
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
