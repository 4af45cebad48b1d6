"""Commands that run in a folder of somebody else: links, repositories, modules and file names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.app_process import environment

from tooli import Tooli
from tooli.core.safe_files import find_foreign_link
from tooli.install import server_registration
from tooli.install.agent_install import project_root
from tooli.install.file_changes import ConflictError, resolve_path
from tooli.install.server_formats import MalformedFileError, TomlServers
from tooli.testing import invoke

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links and owners")

OTHER_USER = 54321
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to others"
)
ESCAPE = "\x1b]0;title\x07"

APP = """
from pathlib import Path
from typing import Annotated
from tooli import Option, Output, Tooli

app = Tooli("shop", version="1.0.0")


@app.command()
def put(text: str, out: Annotated[Output, Option("--out")]) -> int:
    out.write_text(text)
    return len(text)


@app.command(capabilities=["fs:write:./report.json", "fs:write:./cache"])
def look() -> str:
    return "nothing written"


if __name__ == "__main__":
    app()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    program = tmp_path / "installed" / "shop.py"
    program.parent.mkdir()
    program.write_text(APP)
    return program


def run(program: Path, folder: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(program), *argv],
        cwd=folder,
        env={**environment(), **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


# ------------------------------------------------------------------ links of other users


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Return a folder like /tmp, in which another user made links to the user's own files."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "rc").write_text("original")
    for name, target in (("result.txt", "rc"), ("docs", ".")):
        (folder / name).symlink_to(tmp_path / "private" / target)
        os.lchown(folder / name, OTHER_USER, OTHER_USER)
    return folder


@needs_root
def test_output_does_not_follow_a_link_of_another_user(shop: Path, shared: Path) -> None:
    done = run(shop, shared.parent, "put", "new", "--out", str(shared / "result.txt"), "--json")
    assert done.returncode == 2
    assert "is a link that another user made" in json.loads(done.stdout)["error"]["message"]
    assert (shared.parent / "private" / "rc").read_text() == "original"


@needs_root
def test_documents_are_not_written_through_a_link_of_another_user(shop: Path, shared: Path) -> None:
    done = run(shop, shared.parent, "generate-skill", "--out", str(shared / "docs"), "--json")
    assert "is a link that another user made" in done.stdout
    assert sorted(os.listdir(shared.parent / "private")) == ["rc"]
    with pytest.raises(ConflictError):
        resolve_path(str(shared / "docs" / "x"), str(shared.parent))


@needs_root
def test_own_links_and_links_in_private_folders_are_followed(shared: Path, shop: Path) -> None:
    os.lchown(shared / "result.txt", 0, 0)
    assert find_foreign_link([str(shared / "result.txt")]) is None
    done = run(shop, shared.parent, "put", "new", "--out", str(shared / "result.txt"), "--json")
    assert json.loads(done.stdout)["result"] == 3
    shared.chmod(0o755)
    assert find_foreign_link([str(shared / "docs"), str(shared / "missing")]) is None


@needs_root
def test_repository_of_another_user_above_is_not_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, work = tmp_path / ".git", tmp_path / "work"
    repository.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.chdir(work)
    assert project_root() == str(tmp_path)
    os.chown(repository, OTHER_USER, OTHER_USER)
    assert project_root() == str(work)
    monkeypatch.setenv("SUDO_UID", str(OTHER_USER))
    assert project_root() == str(tmp_path)


# ------------------------------------------------------------------ programs and modules


def test_installed_module_has_priority_over_the_current_folder(tmp_path: Path) -> None:
    installed, clone = tmp_path / "site", tmp_path / "clone"
    for folder in (installed, clone):
        folder.mkdir()
    (installed / "shopkeeper.py").write_text("import stock_helper\n" + APP)
    (installed / "stock_helper.py").write_text("")
    for name in ("shopkeeper", "stock_helper"):
        (clone / f"{name}.py").write_text("open('ran', 'w').close()\n")
    code = "from tooli.launcher import main; main()"
    argv = [sys.executable, "-P", "-c", code] if sys.version_info >= (3, 11) else None
    if argv is None:
        pytest.skip("python -c adds the current folder before Python 3.11")
    done = subprocess.run(
        [*argv, "tools", "shopkeeper:app", "--json"],
        cwd=clone,
        env={**environment(), "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "put" in done.stdout, done.stderr
    assert not (clone / "ran").exists()


def test_program_without_a_folder_is_not_taken_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").write_text("#!/bin/sh\n")
    (tmp_path / "shop").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["shop"])
    monkeypatch.setattr(server_registration, "which", lambda name: None)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    with pytest.raises(Exception, match="shop"):
        server_registration.program_argv("shop")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert server_registration.program_argv("shop") == (sys.executable,)


def test_registering_another_command_needs_a_confirmation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / ".git").mkdir()
    app = Tooli("shop")
    app.command("pay")(lambda: 1)
    app.command("look")(lambda: 2)
    argv = ["mcp", "add", "--agent", "claude-code", "--command", "sh -c anything"]
    refused = invoke(app, *argv, mode="json")
    assert refused.exit_code == 2 and refused.error is not None
    assert refused.error["code"] == "E1010"
    assert not (tmp_path / ".mcp.json").exists()
    planned = invoke(app, *argv, "--dry-run", mode="json")
    assert planned.ok and not (tmp_path / ".mcp.json").exists()
    assert invoke(app, *argv, "--yes", mode="json").ok
    assert "anything" in (tmp_path / ".mcp.json").read_text()


# ------------------------------------------------------------------ paths and text of a project


def test_project_creates_nothing_outside_through_links(shop: Path, tmp_path: Path) -> None:
    clone, victim = tmp_path / "clone", tmp_path / "victim"
    (clone / ".git").mkdir(parents=True)
    victim.mkdir()
    (clone / ".tooli.yaml").write_text("isolation: wanted\n")
    (clone / "report.json").symlink_to(victim / "chosen.json")
    (clone / "cache").symlink_to(victim / "a" / "b")
    done = run(shop, clone, "look", "--json")
    assert json.loads(done.stdout)["result"] == "nothing written"
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize(
    "argv",
    [
        ["generate-skill"],
        ["generate-agents-md"],
        ["export", "--target", "openai"],
        ["docs", "man"],
        ["docs", "llms"],
    ],
)
def test_path_settings_apply_to_the_output_of_builtin_commands(
    shop: Path, tmp_path: Path, argv: list[str]
) -> None:
    denied, work = tmp_path / "denied", tmp_path / "work"
    denied.mkdir()
    work.mkdir()
    rules = {"TOOLI_DENY_PATHS": str(denied)}
    done = run(shop, work, *argv, "--out", str(denied), "--json", **rules)
    assert json.loads(done.stdout)["error"]["code"] == "E2005"
    assert list(denied.iterdir()) == []
    assert run(shop, work, *argv, "--out", str(work), "--json", **rules).returncode == 0


def test_builtin_commands_write_no_escape_sequences(shop: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / f"s{ESCAPE}").mkdir()
    (clone / f"s{ESCAPE}" / "SKILL.md").write_text("---\nname: shop\n---\nold\n")
    (clone / "AGENTS.md").write_text(
        f"x\n<!-- tooli:shop begin sha256=00 -->\n{ESCAPE}\x1b[2Jcurrent\n<!-- tooli:shop end -->\n"
    )
    for argv in (
        ["docs", "check"],
        ["docs", "check", f"a{ESCAPE}"],
        ["idempotency", "forget", ESCAPE, "--output", "plain"],
    ):
        done = run(shop, clone, *argv, "--text")
        assert "\x1b" not in done.stdout + done.stderr, argv


# ------------------------------------------------------------------ files that cost much time


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".tooli.yaml", "a: [" + "x," * 40_000 + "]"),
        (".tooli.yaml", "".join([f"k{i}: v\n" for i in range(5_000)])),
        (".env", "".join([f"TOOLI_OUTPU{i}=1\n" for i in range(5_000)])),
    ],
)
def test_error_about_many_settings_is_short(
    shop: Path, tmp_path: Path, name: str, text: str
) -> None:
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / name).write_text(text)
    done = run(shop, clone, "look", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "E1011"
    assert len(done.stdout) < 10_000


def test_agent_settings_with_many_dotted_keys_are_refused() -> None:
    text = "".join([f"a.b.c{i}=1\n" for i in range(2_000)])
    with pytest.raises(MalformedFileError, match="more than 1000 dotted keys"):
        TomlServers("mcp_servers").get_entry(text, "shop")


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("AGENTS.md", ("skills", "add", "--agents-md", "--command", "shop", "--yes")),
        (".codex/config.toml", ("mcp", "add", "--agent", "codex", "--command", "shop", "--yes")),
        (".codex/config.toml", ("mcp", "list")),
        (".agents/skills/shop/SKILL.md", ("skills", "add", "--command", "shop", "--yes")),
        ("llms.txt", ("docs", "check")),
    ],
)
def test_huge_files_of_a_repository_are_not_read(
    name: str, argv: tuple[str, ...], folder: Path
) -> None:
    """A sparse file takes no space in a repository's archive, and all memory when it is read."""
    (folder / ".git").mkdir()
    huge = folder / name
    huge.parent.mkdir(parents=True, exist_ok=True)
    with huge.open("wb") as file:
        file.write(b"# file: llms.txt\n")
        file.truncate(50 << 30)
    app = Tooli("shop", version="1.0.0")
    app.command()(lambda: None)
    refused = invoke(app, *argv, mode="json", env={"HOME": str(folder.parent)})
    answer = json.loads(refused.stdout)
    if argv == ("mcp", "list"):
        assert {"damaged"} == {row["state"] for row in answer["result"] if row["path"] == name}
    else:
        assert answer["error"]["code"] == "E3020"
        assert "more than 16 MiB" in answer["error"]["message"]
    assert huge.stat().st_size == 50 << 30
