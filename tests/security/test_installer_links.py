"""A cloned repository with links and a forged manifest, in which a person installs an app."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli.errors import ConflictError
from tooli.install import file_changes
from tooli.install.file_changes import FileChange, InstallStep, apply_steps

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links")

APP = """
from tooli import Tooli
app = Tooli("shop", version="1.0.0")
@app.command()
def pay(n: int) -> str:
    "Pay."
    return str(n)
@app.command()
def look() -> int:
    "Look."
    return 2
app()
"""
CONTENT = "# default of the distribution\n"
DIGEST = hashlib.sha256(CONTENT.encode()).hexdigest()


class Victim:
    """A home folder, an installed app and a hostile clone."""

    def __init__(self, folder: Path) -> None:
        self.home, self.clone = folder / "home", folder / "clone"
        self.skill = self.clone / ".agents" / "skills" / "shop"
        (self.home / ".config").mkdir(parents=True)
        (self.clone / ".git").mkdir(parents=True)
        self.app = folder / "shop.py"
        self.app.write_text(APP)
        self.target = self.home / ".bashrc"
        self.target.write_text(CONTENT)

    def add_manifest(self, *names: str) -> None:
        manifest = {"app": "shop", "folders": 2, "files": dict.fromkeys(names, DIGEST)}
        (self.skill / ".tooli.json").write_text(json.dumps(manifest))

    def run(self, *args: str) -> Any:
        done = subprocess.run(
            [sys.executable, str(self.app), *args, "--json"],
            cwd=self.clone,
            env=environment(HOME=str(self.home)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return json.loads(done.stdout)

    def files_in_home(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.home)): path.read_text()
            for path in self.home.rglob("*")
            if path.is_file() and ".local" not in path.parts
        }


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    return Victim(tmp_path)


COMMANDS = [
    ("skills", "add"),
    ("skills", "remove"),
    ("skills", "add", "--force"),
    ("skills", "remove", "--force"),
    ("skills", "add", "--agent", "agents"),
    ("skills", "remove", "--agent", "agents"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
class TestSkills:
    def test_manifest_with_a_linked_folder(self, victim: Victim, command: tuple[str, ...]) -> None:
        victim.skill.mkdir(parents=True)
        (victim.skill / "h").symlink_to(os.path.relpath(victim.home, victim.skill))
        victim.add_manifest("h/.bashrc", "references/../h/.bashrc", "h\\.bashrc")
        victim.run(*command)
        assert victim.files_in_home() == {".bashrc": CONTENT}

    @pytest.mark.parametrize("name", ["SKILL.md", "references/pay.md", "references/gone.md"])
    def test_linked_file_is_reported(
        self, victim: Victim, command: tuple[str, ...], name: str
    ) -> None:
        link = victim.skill / name
        link.parent.mkdir(parents=True)
        link.symlink_to(os.path.relpath(victim.target, link.parent))
        victim.add_manifest(name)
        answer = victim.run(*command)
        assert victim.files_in_home() == {".bashrc": CONTENT}
        assert link.is_symlink()
        assert not answer["ok"] and "link" in answer["error"]["message"]

    def test_linked_references(self, victim: Victim, command: tuple[str, ...]) -> None:
        outside = victim.home / "pages"
        outside.mkdir()
        (outside / "gone.md").write_text(CONTENT)
        victim.skill.mkdir(parents=True)
        (victim.skill / "references").symlink_to(outside)
        victim.add_manifest("references/gone.md")
        assert not victim.run(*command)["ok"]
        assert victim.files_in_home() == {".bashrc": CONTENT, "pages/gone.md": CONTENT}

    @pytest.mark.parametrize("part", [".agents", ".agents/skills", ".agents/skills/shop"])
    def test_linked_parent(self, victim: Victim, command: tuple[str, ...], part: str) -> None:
        outside = victim.home / "other"
        outside.mkdir()
        (victim.clone / part).parent.mkdir(parents=True, exist_ok=True)
        (victim.clone / part).symlink_to(outside)
        assert not victim.run(*command)["ok"]
        assert list(outside.iterdir()) == []

    def test_linked_manifest(self, victim: Victim, command: tuple[str, ...]) -> None:
        victim.skill.mkdir(parents=True)
        victim.add_manifest("SKILL.md")
        (victim.skill / ".tooli.json").rename(victim.home / "manifest")
        (victim.skill / ".tooli.json").symlink_to(victim.home / "manifest")
        before = victim.files_in_home()
        assert not victim.run(*command)["ok"]
        assert victim.files_in_home() == before


def test_manifest_names_only_generated_files(victim: Victim) -> None:
    (victim.skill / "references").mkdir(parents=True)
    names = ("notes.md", "references/data.csv", "references/.hidden.md", "references/old.md")
    for name in names:
        (victim.skill / name).write_text(CONTENT)
    victim.add_manifest(*names)
    assert victim.run("skills", "add", "--agent", "agents")["ok"]
    assert [name for name in names if not (victim.skill / name).exists()] == ["references/old.md"]


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_linked_document(victim: Victim, name: str) -> None:
    (victim.clone / name).symlink_to("../home/.bashrc")
    flag = "--agents-md" if name == "AGENTS.md" else "--claude-md"
    for command in (("skills", "add", flag), ("skills", "add", flag, "--force")):
        assert not victim.run(*command)["ok"]
    assert victim.files_in_home() == {".bashrc": CONTENT}


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ("claude-code", ".mcp.json"),
        ("codex", ".codex/config.toml"),
        ("cursor", ".cursor/mcp.json"),
        ("gemini", ".gemini/settings.json"),
        ("vscode", ".vscode/mcp.json"),
    ],
)
@pytest.mark.parametrize("links_folder", [False, True])
def test_linked_settings_of_agents(
    victim: Victim, agent: str, path: str, links_folder: bool
) -> None:
    outside = victim.home / ".config" / os.path.basename(path)
    outside.write_text("" if path.endswith("toml") else "{}")
    before = victim.files_in_home()
    link = victim.clone / path
    if links_folder and "/" in path:
        link.parent.symlink_to(outside.parent)
    else:
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(outside)
    assert not victim.run("mcp", "add", "--agent", agent)["ok"]
    assert victim.files_in_home() == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("docs", "llms"), "llms.txt"),
        (("docs", "man"), "shop.1"),
        (("export", "--target", "python"), "shop_api.py"),
        (("generate-agents-md",), "AGENTS.md"),
        (("generate-skill",), "shop/SKILL.md"),
    ],
)
@pytest.mark.parametrize("links_folder", [False, True])
def test_linked_output(
    victim: Victim, command: tuple[str, ...], name: str, links_folder: bool
) -> None:
    out = victim.clone / "out"
    if links_folder:
        out.symlink_to(victim.home)
    else:
        (out / name).parent.mkdir(parents=True)
        (out / name).symlink_to(victim.target)
    answer = victim.run(*command, "--out", "out", "--force")
    assert not answer["ok"] and "link" in answer["error"]["message"]
    assert victim.files_in_home() == {".bashrc": CONTENT}


@pytest.mark.parametrize("name", [".git", ".GIT", ".hg"])
def test_link_to_the_data_of_the_repository(victim: Victim, name: str) -> None:
    data = victim.clone / name
    data.mkdir(exist_ok=True)
    (data / "config").write_text(CONTENT)
    for link in ("AGENTS.md", "CLAUDE.md", "llms.txt", ".mcp.json"):
        (victim.clone / link).symlink_to(f"{name}/config")
    (victim.clone / "shop").symlink_to(name)
    for command in (
        "skills add --agents-md",
        "skills add --claude-md",
        "generate-agents-md --out .",
        "generate-skill --out .",
        "docs llms --out .",
        "export --target python --out shop",
        "mcp add --agent claude-code",
    ):
        answer = victim.run(*command.split(), "--force")
        assert not answer["ok"] and "version control" in answer["error"]["message"], command
    assert [path.name for path in data.iterdir()] == ["config"]
    assert (data / "config").read_text() == CONTENT


def test_link_to_another_document_of_the_project(victim: Victim) -> None:
    (victim.clone / "AGENTS.md").write_text("# Mine\n")
    (victim.clone / "CLAUDE.md").symlink_to("AGENTS.md")
    assert victim.run("skills", "add", "--claude-md")["ok"]
    assert (victim.clone / "CLAUDE.md").is_symlink()
    assert "tooli:shop" in (victim.clone / "AGENTS.md").read_text()


def test_user_folder_with_a_link_out_of_it(victim: Victim, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (victim.home / ".agents").symlink_to(tmp_path / "other")
    assert not victim.run("skills", "add", "--user", "--agent", "agents")["ok"]
    assert list((tmp_path / "other").iterdir()) == []


def test_pipe_is_not_opened(victim: Victim) -> None:
    os.mkfifo(victim.clone / "AGENTS.md")
    assert not victim.run("skills", "add", "--agents-md")["ok"]
    os.mkfifo(victim.clone / "llms.txt")
    assert not victim.run("docs", "check", ".")["ok"]


def test_folder_replaced_by_a_link_after_planning(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a").write_text("old")
    changes = [FileChange(str(inside / "a"), b"old", after) for after in (None, b"new")]
    inside.rename(tmp_path / "moved")
    inside.symlink_to(outside)
    for change in changes:
        with pytest.raises(ConflictError, match="Nothing was changed"):
            apply_steps([InstallStep("", "", "stale", "updated", (change,))])
    assert (outside / "a").read_text() == "old"
    with pytest.raises(OSError):
        file_changes.write_atomically(str(inside / "a"), b"new")
    file_changes._remove_if_empty(str(inside / "empty"))
    assert (outside / "a").read_text() == "old"


def test_backup_does_not_follow_a_link(victim: Victim) -> None:
    assert victim.run("skills", "add", "--agent", "agents")["ok"]
    (victim.skill / "SKILL.md").write_text("mine")
    for name in ("SKILL.md.bak", "SKILL.md.bak2"):
        (victim.skill / name).symlink_to(victim.home / "gone")
    assert victim.run("skills", "add", "--agent", "agents", "--force")["ok"]
    assert (victim.skill / "SKILL.md.bak3").read_text() == "mine"
    assert victim.files_in_home() == {".bashrc": CONTENT}
