"""The `skills` and `mcp add` commands in real processes with their own home folder."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli.install.agent_install import project_root

APP = Path(__file__).parents[2] / "examples" / "file_tools" / "app.py"
OTHER = """
from tooli import Tooli
app = Tooli({name!r}, description="Another one.")
@app.command()
def look(path: str) -> str:
    "Look at something."
    return path
@app.command()
def wait() -> None:
    "Wait."
app()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "my project" / ".git").mkdir(parents=True)
    return tmp_path / "my project"


class Shell:
    """Runs commands in a project folder."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project, self.home = project, home

    def start(self, *args: str, app: Path = APP, cwd: Path | None = None) -> Any:
        return subprocess.Popen(
            [sys.executable, str(app), *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=cwd or self.project,
            env=environment(HOME=str(self.home)),
        )

    def __call__(self, *args: str, **more: Any) -> dict[str, Any]:
        out, err = self.start(*args, "--json", **more).communicate(timeout=60)
        assert not err, err
        return json.loads(out)

    def rows(self, *args: str, **more: Any) -> list[dict[str, str]]:
        return self(*args, **more)["result"]


@pytest.fixture
def shell(project: Path, home: Path) -> Shell:
    return Shell(project, home)


def files(root: Path) -> dict[str, bytes]:
    found = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def test_remove_restores_the_project(shell: Shell, project: Path) -> None:
    """After removal the project is as before."""
    (project / "AGENTS.md").write_text("# Ours\n")
    (project / ".mcp.json").write_text('{\n    "mcpServers": {}\n}')
    before = files(project)
    added = shell.rows("skills", "add", "--agents-md", "--claude-md")
    assert [(row["path"].replace(os.sep, "/"), row["action"]) for row in added] == [
        (".agents/skills/file-tools", "created"),
        (".claude/skills/file-tools", "created"),
        ("AGENTS.md", "updated"),
        ("CLAUDE.md", "created"),
    ]
    assert shell.rows("mcp", "add", "--agent", "claude-code", "--agent", "codex")
    after = files(project)
    assert after["CLAUDE.md"].splitlines()[1] == b"@AGENTS.md"
    again = shell.rows("skills", "add", "--agents-md", "--claude-md") + shell.rows("mcp", "add")[:2]
    assert {row["state"] for row in again} == {"current"}
    shell.rows("mcp", "remove")
    shell.rows("skills", "remove")
    assert files(project) == before
    assert {path.name for path in project.iterdir()} == {".git", "AGENTS.md", ".mcp.json"}
    assert set(after) > set(before)


def test_skill_of_a_program_that_is_not_on_the_path(shell: Shell, project: Path) -> None:
    app = project / "elsewhere.py"
    app.write_text(OTHER.format(name="no-such-program"))
    added = shell("skills", "add", app=app)
    command = f"{sys.executable} {shlex.quote(str(app))}"
    assert added["meta"]["warnings"] == [
        "no-such-program is not on the PATH, so the command lines of the skill do not work. "
        "Install the program, or pass --command with a command that starts it, such as "
        f"--command {shlex.quote(command)}."
    ]
    refused = shell("skills", "add", "--command", command, app=app)
    assert refused["error"]["code"] == "E1010"
    done = shell("skills", "add", "--command", command, "--agents-md", "--yes", app=app)
    assert "warnings" not in done["meta"]
    text = (project / ".agents/skills/no-such-program/SKILL.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.endswith(" look PATH --json"))
    ran = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["result"] == "PATH"
    assert {row["state"] for row in shell.rows("skills", "list", app=app)} == {"current", "absent"}
    assert shell.rows("docs", "check", ".", app=app)
    shell.rows("skills", "remove", app=app)
    assert {path.name for path in project.iterdir()} == {".git", "elsewhere.py"}


def test_server_that_the_program_tooli_adds_is_started_by_it(shell: Shell, project: Path) -> None:
    program = project / "launch.py"  # in place of the program tooli on the PATH
    program.write_text("from tooli.launcher import main; main()\n")
    shell.rows("mcp", "add", str(APP), "--agent", "cursor", app=program)
    entry = json.loads((project / ".cursor" / "mcp.json").read_text())["mcpServers"]["file-tools"]
    assert entry["args"] == [str(program), "serve", str(APP), "--transport", "stdio"]
    rows = shell.rows("mcp", "list", str(APP), app=program)
    states = [row["state"] for row in rows if (row["agent"], row["scope"]) == ("cursor", "project")]
    assert states == ["current"]


def test_server_of_an_app_with_its_own_command_mcp(shell: Shell, project: Path) -> None:
    app = project / "own.py"
    app.write_text(OTHER.format(name="own").replace("def wait()", "def mcp()"))
    shell.rows("tooli", "mcp", "add", "--agent", "cursor", app=app)
    entry = json.loads((project / ".cursor" / "mcp.json").read_text())["mcpServers"]["own"]
    assert entry["args"][1:] == ["tooli", "mcp", "serve", "--transport", "stdio"]


def test_registered_command_starts_the_server(shell: Shell, project: Path) -> None:
    shell.rows("mcp", "add", "--agent", "cursor")
    entry = json.loads((project / ".cursor" / "mcp.json").read_text())["mcpServers"]["file-tools"]
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        capture_output=True,
        text=True,
        cwd=shell.home,
        env=environment(HOME=str(shell.home)),
        timeout=60,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "file-tools"


def test_dry_run_writes_nothing(shell: Shell, project: Path, home: Path) -> None:
    envelope = shell("skills", "add", "--agents-md", "--dry-run")
    assert envelope["meta"]["dry_run"] is True
    assert all("+++ b/" in row["diff"] for row in envelope["result"])
    shell("mcp", "add", "--dry-run")
    assert files(project) == {} and files(home) == {}
    assert "+++ b/.mcp.json" in shell.start("mcp", "add", "--dry-run", "--text").communicate()[0]


def test_edited_skill_is_a_conflict(shell: Shell, project: Path) -> None:
    shell("skills", "add")
    skill = project / ".claude" / "skills" / "file-tools" / "SKILL.md"
    skill.write_text(skill.read_text() + "mine\n")
    before = files(project)
    for args in (("skills", "add"), ("skills", "remove"), ("skills", "add", "--dry-run")):
        process = shell.start(*args, "--json")
        error = json.loads(process.communicate()[0])["error"]
        assert (process.returncode, error["code"]) == (20, "E3020")
        assert "-mine" in error["details"]["conflicts"][0]["diff"]
    assert files(project) == before
    states = {row["path"]: row["state"] for row in shell.rows("skills", "list")}
    assert states[str(Path(".claude/skills/file-tools"))] == "edited"
    assert states[str(Path(".agents/skills/file-tools"))] == "current"
    assert "-mine" in shell.start("skills", "add", "--text", "-v").communicate()[1]


def test_user_scope_installs_into_the_home_folder(shell: Shell, project: Path, home: Path) -> None:
    shell("skills", "add", "--user", "--agent", "codex", "--agent", "gemini")
    assert (home / ".agents/skills/file-tools/SKILL.md").exists()
    assert not (home / ".claude").exists() and files(project) == {}
    (row,) = shell.rows("skills", "add", "--user", "--agent", "codex", "--agent", "gemini")
    assert (row["agent"], row["state"]) == ("codex, gemini", "current")
    shell("skills", "remove", "--user")
    assert not (home / ".agents").exists()
    error = shell("skills", "add", "--user", "--agents-md")["error"]
    assert error["field"] == "agents_md"


def test_add_in_a_subfolder_writes_to_the_project_root(shell: Shell, project: Path) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    shell("skills", "add", cwd=below)
    assert (project / ".claude/skills/file-tools/SKILL.md").exists()


def test_linked_files_get_one_block(shell: Shell, project: Path) -> None:
    (project / "AGENTS.md").write_text("# Ours\n")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (project / ".agents" / "skills").mkdir(parents=True)
    (project / ".claude").mkdir()
    (project / ".claude" / "skills").symlink_to("../.agents/skills")
    before = files(project)
    shell("skills", "add", "--agents-md", "--claude-md")
    assert (project / "AGENTS.md").read_text().count(" begin sha256=") == 1
    assert {row["state"] for row in shell.rows("skills", "add", "--agents-md")} == {"current"}
    shell("skills", "remove")
    assert files(project) == before and (project / "CLAUDE.md").is_symlink()


@pytest.mark.parametrize("names", [("one", "zwölf apps")])
def test_concurrent_installs_succeed(
    shell: Shell, project: Path, tmp_path: Path, names: tuple[str, str]
) -> None:
    apps = []
    for name in names:
        path = tmp_path / f"{name}.py"
        path.write_text(OTHER.format(name=name), encoding="utf-8")
        apps.append(path)
    for args in (("skills", "add", "--agents-md"), ("mcp", "add")):
        running = [shell.start(*args, "--json", app=app) for app in (*apps, *apps)]
        for process in running:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, out + err
    text = (project / "AGENTS.md").read_text(encoding="utf-8")
    assert all(text.count(f"<!-- tooli:{name} begin") == 1 for name in names)
    servers = json.loads((project / ".mcp.json").read_text())["mcpServers"]
    assert servers.keys() == {"one", "zw-lf-apps"}
    for app in apps:
        shell("skills", "remove", app=app)
        shell("mcp", "remove", app=app)
    assert [path.name for path in project.iterdir()] == [".git"]


def test_project_root_is_the_git_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, bare = tmp_path / "home", tmp_path / "home" / "work"
    bare.mkdir(parents=True)
    (home / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(bare)
    assert project_root() == str(bare)
    (bare / ".git").write_text("gitdir: elsewhere")
    (bare / "deep").mkdir()
    monkeypatch.chdir(bare / "deep")
    assert project_root() == str(bare)
