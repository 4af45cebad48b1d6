"""Skill folders, and managed blocks in files that belong to a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tooli.errors import ConflictError
from tooli.install.file_changes import InstallStep, apply_steps, digest, resolve_conflicts
from tooli.install.managed_files import (
    MANIFEST,
    find_block,
    plan_block,
    plan_block_removal,
    plan_skill,
    plan_skill_removal,
)

FILES = {"SKILL.md": "---\nname: shop\n---\n", "references/find.md": "# find\n"}


def root_of(folder: Path) -> Path:
    """Return the project that contains the skill folder of the tests."""
    return folder.parents[2] if folder.parts[-2] == "skills" else folder.parent


def add(folder: Path, files: dict[str, str] = FILES, *, force: bool = False) -> InstallStep:
    plan = plan_skill(str(folder), "agents", "shop", files, str(root_of(folder)))
    (step,) = resolve_conflicts([plan], force=force)
    apply_steps([step])
    return step


def remove(folder: Path, *, force: bool = False) -> InstallStep:
    plan = plan_skill_removal(str(folder), "agents", FILES, str(root_of(folder)))
    (step,) = resolve_conflicts([plan], force=force)
    apply_steps([step])
    return step


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".claude" / "skills" / "shop"


class TestSkills:
    def test_repeated_add_and_remove_change_nothing(self, folder: Path, tmp_path: Path) -> None:
        assert (add(folder).state, add(folder).state) == ("absent", "current")
        assert tree(folder) == [MANIFEST, "SKILL.md", "references", "references/find.md"]
        assert remove(folder).action == "removed"
        assert tree(tmp_path) == []
        assert remove(folder).action == "absent"

    def test_remove_keeps_existing_folders(self, folder: Path, tmp_path: Path) -> None:
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

    def test_remove_keeps_files_of_the_user(self, folder: Path) -> None:
        add(folder)
        (folder / "notes.md").write_text("mine")
        remove(folder)
        assert tree(folder) == ["notes.md"]


class TestSkillStates:
    def test_stale_skill_is_updated(self, folder: Path) -> None:
        add(folder, {"SKILL.md": "older\n", "references/gone.md": "x\n"})
        assert add(folder).state == "stale"
        assert tree(folder) == [MANIFEST, "SKILL.md", "references", "references/find.md"]
        assert add(folder).state == "current"

    def test_edited_skill_is_a_conflict(self, folder: Path) -> None:
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

    def test_skill_of_another_app_is_a_conflict(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("theirs\n")
        with pytest.raises(ConflictError):
            add(folder)
        assert remove(folder).action == "absent"
        assert tree(folder) == ["SKILL.md"]

    def test_changed_line_ends_are_not_an_edit(self, folder: Path) -> None:
        add(folder)
        for name in ("SKILL.md", MANIFEST):
            path = folder / name
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        assert add(folder).state == "current"
        remove(folder)
        assert not folder.exists()

    def test_skill_with_an_unreadable_manifest_is_stale(self, folder: Path) -> None:
        add(folder)
        (folder / MANIFEST).write_text("{")
        assert add(folder).state == "stale"
        (folder / MANIFEST).unlink()
        assert remove(folder).action == "removed"

    def test_remove_keeps_files_outside_the_folder(self, folder: Path, tmp_path: Path) -> None:
        add(folder)
        secret = tmp_path / "secret"
        secret.write_text("x")
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest["files"]["../../../secret"] = digest(b"x")
        manifest["files"][str(secret)] = digest(b"x")
        (folder / MANIFEST).write_text(json.dumps(manifest))
        remove(folder)
        assert secret.exists()


# ------------------------------------------------------------------ managed blocks

BODY = "## shop\n\nSell things.\n"


def add_block(path: Path, app: str = "shop", body: str = BODY, *, force: bool = False) -> str:
    (step,) = resolve_conflicts(
        [plan_block(str(path), "agents", app, body, str(path.parent))], force=force
    )
    apply_steps([step])
    return step.action


def remove_block(path: Path, app: str = "shop", *, force: bool = False) -> str:
    plan = plan_block_removal(str(path), "agents", app, BODY, str(path.parent))
    (step,) = resolve_conflicts([plan], force=force)
    apply_steps([step])
    return step.action


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "AGENTS.md"


def test_markers_inside_the_text_do_not_end_the_block(page: Path) -> None:
    body = "## shop\n\n<!-- tooli:shop end --> and <!-- tooli:shop begin sha256=0 -->\n"
    page.write_text("# Mine\n")
    assert add_block(page, body=body) == "updated"
    assert add_block(page, body=body) == "current"
    assert remove_block(page) == "removed"
    assert page.read_text() == "# Mine\n"


class TestBlocks:
    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"\n",
            b"# Mine",
            b"# Mine\n",
            b"# Mine\r\n\r\nText\r\n",
            b"\xef\xbb\xbf# Mine\n\n",
            b"\xff\xfe is not UTF-8\n",
            b"<!-- tooli:shopping begin sha256=0 -->\nx\n<!-- tooli:shopping end -->\n",
        ],
    )
    def test_remove_restores_the_bytes_of_the_file(self, page: Path, text: bytes) -> None:
        page.write_bytes(text)
        assert add_block(page) == "updated"
        written = page.read_bytes()
        assert written.startswith(text) and b"Sell things." in written
        assert b"\r\n" not in text or written.count(b"\n") == written.count(b"\r\n")
        assert add_block(page) == "current"
        assert page.read_bytes() == written
        assert remove_block(page) == "removed"
        assert page.read_bytes() == text

    def test_created_file_is_removed(self, page: Path) -> None:
        assert add_block(page) == "created"
        assert remove_block(page) == "removed"
        assert not page.exists()
        assert remove_block(page) == "absent"

    def test_remove_keeps_text_around_the_block(self, page: Path) -> None:
        add_block(page)
        page.write_text("# Top\n" + page.read_text() + "# End\n")
        remove_block(page)
        assert page.read_text() == "# Top\n# End\n"

    @pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
    def test_two_apps_share_a_file(self, page: Path, order: tuple[str, str]) -> None:
        add_block(page, "one")
        add_block(page, "two")
        assert find_block(page.read_text(), "one") and find_block(page.read_text(), "two")
        remove_block(page, order[0])
        assert find_block(page.read_text(), order[1])
        remove_block(page, order[1])
        assert not page.exists()


class TestBlockStates:
    def test_stale_block_is_updated(self, page: Path) -> None:
        add_block(page, body="older")
        assert plan_block(str(page), "agents", "shop", BODY, str(page.parent)).state == "stale"
        assert add_block(page) == "updated"
        assert "older" not in page.read_text()

    def test_edited_block_is_a_conflict(self, page: Path) -> None:
        add_block(page)
        edited = page.read_text().replace("Sell", "Buy")
        page.write_text(edited)
        with pytest.raises(ConflictError) as raised:
            add_block(page)
        assert raised.value.exit_code == 20
        (conflict,) = raised.value.details["conflicts"]  # type: ignore[index,misc]
        assert "-Buy things." in conflict["diff"] and "+Sell things." in conflict["diff"]
        with pytest.raises(ConflictError):
            remove_block(page)
        assert page.read_text() == edited
        add_block(page, force=True)
        assert "Sell" in page.read_text()
        assert (page.parent / "AGENTS.md.bak").read_text() == edited

    @pytest.mark.parametrize("lost", ["end -->", "begin sha256="])
    def test_damaged_block_is_a_conflict(self, page: Path, lost: str) -> None:
        add_block(page)
        damaged = page.read_text().replace(lost, "")
        page.write_text(damaged)
        for operation in (add, remove):
            with pytest.raises(ConflictError, match="damaged"):
                operation(page, force=True)
        assert page.read_text() == damaged

    def test_duplicated_block_is_a_conflict(self, page: Path) -> None:
        add_block(page)
        page.write_text(page.read_text() * 2)
        with pytest.raises(ConflictError, match="damaged"):
            add_block(page)

    def test_changed_line_ends_are_not_an_edit(self, page: Path) -> None:
        add_block(page)
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
        assert add_block(page) == "current"


class TestBlockLinks:
    def test_linked_file_is_updated_and_the_link_kept(self, page: Path, tmp_path: Path) -> None:
        real = tmp_path / "docs.md"
        real.write_text("# Mine\n")
        page.symlink_to(real)
        add_block(page)
        assert page.is_symlink() and "Sell" in real.read_text()
        remove_block(page)
        assert real.read_text() == "# Mine\n"

    def test_broken_link_is_a_conflict(self, page: Path, tmp_path: Path) -> None:
        page.symlink_to(tmp_path / "gone.md")
        with pytest.raises(ConflictError, match="link"):
            add_block(page)


@pytest.mark.parametrize("app", ["Läden & Söhne", "my app", "a -- b", "x --> y", "café"])
def test_any_app_name_can_be_in_a_marker(page: Path, app: str) -> None:
    add_block(page, app)
    assert page.read_text().count("-->") == 2
    assert add_block(page, app) == "current"
    remove_block(page, app)
    assert not page.exists()
