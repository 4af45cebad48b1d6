"""Detection outside the environment, which only `deep` does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tooli.detect import detect_execution_context, parent_processes


def process(root: Path, pid: int, above: int, *argv: str, name: str = "x") -> None:
    place = root / "proc" / str(pid)
    place.mkdir(parents=True)
    (place / "stat").write_text(f"{pid} ({name}) S {above} 1 1 0")
    (place / "cmdline").write_bytes(b"".join(text.encode() + b"\0" for text in argv))


def test_parent_processes(tmp_path: Path) -> None:
    process(tmp_path, 30, 20, "/bin/bash", "-c", "x")
    process(tmp_path, 20, 10, "node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js")
    process(tmp_path, 10, 1, name="odd ) name (codex)")
    process(tmp_path, 1, 0, "/usr/bin/aider")
    found = parent_processes.find_agents(str(tmp_path), 30)
    assert [name for name, _ in found] == ["claude-code", "aider"]
    assert found[0][1] == "process 20 is node"


def test_a_cycle_of_processes_ends(tmp_path: Path) -> None:
    process(tmp_path, 5, 6, "a")
    process(tmp_path, 6, 5, "goose")
    assert parent_processes.find_agents(str(tmp_path), 5) == [("goose", "process 6 is goose")]


@pytest.mark.parametrize(
    ("argv", "agent"),
    [
        (["claude"], "claude-code"),
        (["C:\\bin\\codex.exe"], "codex"),
        (["python3", "/home/a/.local/bin/aider"], "aider"),
        (["vim", "claude.md"], None),
        (["/bin/sh", "-c", "claude"], None),
        ([], None),
    ],
)
def test_agents_by_command_line(argv: list[str], agent: str | None) -> None:
    assert parent_processes.identify_agent(argv) == agent


def test_containers_and_machines(tmp_path: Path) -> None:
    assert parent_processes.find_containers(str(tmp_path)) == []
    (tmp_path / ".dockerenv").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".containerenv").touch()
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "1" / "cgroup").write_text("0::/kubepods/pod7\n")
    names = [name for name, _ in parent_processes.find_containers(str(tmp_path))]
    assert names == ["docker", "podman", "kubernetes"]
    (tmp_path / "opt" / ".devin").mkdir(parents=True)
    assert parent_processes.find_agents(str(tmp_path), 0) == [("devin", "/opt/.devin exists")]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no ps")
def test_ps_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "ps"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho '  7  3 /bin/zsh -l'\necho '  3  1 /opt/crush run'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/bin:/usr/bin")
    assert parent_processes.find_agents(str(tmp_path), 7) == [("crush", "process 3 is crush")]
    fake.unlink()
    monkeypatch.setenv("PATH", str(fake.parent))
    assert parent_processes.find_agents(str(tmp_path), 7) == []


def test_deep_adds_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        parent_processes, "find_agents", lambda: [("kimi-code", "process 9 is kimi")]
    )
    monkeypatch.setattr(
        parent_processes, "find_containers", lambda: [("docker", "/.dockerenv exists")]
    )
    assert not detect_execution_context({}).is_agent
    seen = detect_execution_context({}, deep=True)
    assert (seen.caller_id, seen.container) == ("kimi-code", "docker")
    assert "process 9 is kimi" in seen.signals


def test_only_the_environment_is_read_by_default() -> None:
    import subprocess

    code = (
        "import sys, builtins, os\n"
        "from tooli.detect import detect_execution_context as detect\n"
        "before = set(sys.modules)\n"
        "seen = []\n"
        "sys.addaudithook(lambda name, args: seen.append(name))\n"
        "detect()\n"
        "quiet = {name for name in seen if not name.startswith(('object.', 'sys.'))}\n"
        "assert not quiet, quiet\n"
        "assert set(sys.modules) == before\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
