"""Detection by parent processes and files, which only `deep=True` does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tooli.detect import detect_execution_context, parent_processes


def add_process(root: Path, pid: int, parent: int, *argv: str, name: str = "x") -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0")
    (folder / "cmdline").write_bytes(b"".join(text.encode() + b"\0" for text in argv))


def test_agents_among_parent_processes_are_found(tmp_path: Path) -> None:
    add_process(tmp_path, 30, 20, "/bin/bash", "-c", "x")
    add_process(tmp_path, 20, 10, "node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js")
    add_process(tmp_path, 10, 1, name="odd ) name (codex)")
    add_process(tmp_path, 1, 0, "/usr/bin/aider")
    found = parent_processes.find_agents(str(tmp_path), 30)
    assert [name for name, _ in found] == ["claude-code", "aider"]
    assert found[0][1] == "process 20 is node"


def test_process_cycle_ends(tmp_path: Path) -> None:
    add_process(tmp_path, 5, 6, "a")
    add_process(tmp_path, 6, 5, "goose")
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
def test_agent_is_identified_by_its_program(argv: list[str], agent: str | None) -> None:
    assert parent_processes.identify_agent(argv) == agent


def test_containers_and_agents_are_found_by_files(tmp_path: Path) -> None:
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


@pytest.mark.skipif(sys.platform == "win32", reason="needs ps")
def test_agents_are_found_with_ps_without_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "ps"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho '  7  3 /bin/zsh -l'\necho '  3  1 /opt/crush run'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/bin:/usr/bin")
    assert parent_processes.find_agents(str(tmp_path), 7) == [("crush", "process 3 is crush")]
    fake.unlink()
    monkeypatch.setenv("PATH", str(fake.parent))
    assert parent_processes.find_agents(str(tmp_path), 7) == []


def test_deep_adds_agents_and_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        parent_processes, "find_agents", lambda: [("kimi-code", "process 9 is kimi")]
    )
    monkeypatch.setattr(
        parent_processes, "find_containers", lambda: [("docker", "/.dockerenv exists")]
    )
    assert not detect_execution_context({}).is_agent
    context = detect_execution_context({}, deep=True)
    assert (context.caller_id, context.container) == ("kimi-code", "docker")
    assert "process 9 is kimi" in context.signals


def test_default_detection_reads_only_environment() -> None:
    import subprocess

    code = (
        "import sys, builtins, os\n"
        "from tooli.detect import CallerCategory, detect_execution_context as detect\n"
        "before = set(sys.modules)\n"
        "events = []\n"
        "sys.addaudithook(lambda name, args: events.append(name))\n"
        "detect()\n"
        "events = {name for name in events if not name.startswith(('object.', 'sys.'))}\n"
        "assert not events, events\n"
        "assert set(sys.modules) == before\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_empty_and_odd_lines_of_ps_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        stdout = "\n  7 1 claude --print\n   \n8\nx y z\n9 7 bash\n"

    monkeypatch.setattr("subprocess.run", lambda *args, **kwargs: Done)
    found = dict(parent_processes.iter_processes_upwards("/nowhere", 9))
    assert found == {9: ["bash"], 7: ["claude", "--print"]}
