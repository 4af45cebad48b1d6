"""Plans and their tokens in real processes: one process plans, another one applies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.integration.app_process import (
    APPS,
    command,
    environment,
    is_clean,
    read_envelope,
    run,
    run_on_terminal,
)

SHREDDER = APPS / "shredder.py"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(TOOLI_STATE_DIR=str(tmp_path / "state"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "old.log"
    path.write_text("old")
    return path


@pytest.mark.parametrize("tool", ["delete", "wipe"])
def test_plan_is_applied_once_by_another_process(
    tool: str, file: Path, env: dict[str, str]
) -> None:
    planned = run(SHREDDER, tool, str(file), "--yes", "--dry-run", env=env)
    assert planned.code == 0
    assert file.exists()
    token = read_envelope(planned.out)["result"]["token"]
    refused = run(SHREDDER, tool, str(file), "--apply", token, env=env)
    assert refused.code == 2
    done = run(SHREDDER, tool, str(file), "--apply", token, "--yes", env=env)
    assert done.code == 0, done.out
    assert not file.exists()
    file.write_text("old")
    again = run(SHREDDER, tool, str(file), "--apply", token, "--yes", env=env)
    assert (again.code, read_envelope(again.out)["error"]["code"]) == (2, "E1051")
    assert file.exists()


def test_plan_is_rejected_if_the_state_has_changed(file: Path, env: dict[str, str]) -> None:
    token = read_envelope(run(SHREDDER, "delete", str(file), "--dry-run", env=env).out)["result"][
        "token"
    ]
    file.write_text("new")
    found = run(SHREDDER, "delete", str(file), "--yes", "--apply", token, env=env)
    assert found.code == 20
    error = read_envelope(found.out)["error"]
    assert error["code"] == "E3053"
    assert error["details"]["changed"][0]["target"] == str(file)
    assert file.read_text() == "new"


def test_one_of_many_processes_uses_a_token(file: Path, env: dict[str, str]) -> None:
    token = read_envelope(run(SHREDDER, "wipe", str(file), "--dry-run", env=env).out)["result"][
        "token"
    ]
    argv = command(SHREDDER, "wipe", str(file), "--yes", "--json", "--apply", token)
    processes = [
        subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        for _ in range(6)
    ]
    answers = [read_envelope(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(answer["ok"] for answer in answers) == 1
    codes = {answer["error"]["code"] for answer in answers if not answer["ok"]}
    # The token is used, or the file is deleted, so that the plan is different.
    assert codes <= {"E1051", "E1003", "E3010", "E3053"}


def test_plan_on_a_terminal_shows_how_to_apply_it(file: Path, env: dict[str, str]) -> None:
    shown = run_on_terminal(
        SHREDDER, "delete", str(file), "--dry-run", env={**env, "TERM": "xterm-256color"}
    )
    assert shown.code == 0
    text = shown.out.decode()
    assert f"would delete  {file}  (size: 3)" in text
    assert "Nothing was done." in text
    line = text.splitlines()[-1].split()
    assert "--apply" in line
    assert file.exists()
    argv = line[line.index("delete") :]
    done = run_on_terminal(SHREDDER, *argv, "--yes", env={**env, "TERM": "xterm-256color"})
    assert done.code == 0, done.err
    assert not file.exists()


def test_plan_without_dry_run_support_shows_only_the_call(file: Path, env: dict[str, str]) -> None:
    shown = run(SHREDDER, "wipe", str(file), "--dry-run", "--text", env=env)
    assert b"would call  shredder.wipe" in shown.out
    assert b"no more is known" in shown.out
    assert file.exists()


def test_control_characters_in_a_file_name_are_removed(tmp_path: Path, env: dict[str, str]) -> None:
    file = tmp_path / "a\x1b[31mb\nc"
    file.write_text("x")
    shown = run(SHREDDER, "delete", str(file), "--dry-run", "--text", env=env)
    assert shown.code == 0
    assert b"\x1b" not in shown.out
    assert sum(b"would delete" in line for line in shown.out.splitlines()) == 1


def test_plan_has_no_token_without_a_state_folder(file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = environment(TOOLI_STATE_DIR=str(tmp_path / "file" / "state"))
    found = run(SHREDDER, "delete", str(file), "--dry-run", env=env)
    answer = read_envelope(found.out)
    assert found.code == 0
    assert "token" not in answer["result"]
    assert answer["meta"]["warnings"]
    assert is_clean(found.err)


def test_plan_depends_on_the_input_from_stdin(tmp_path: Path, env: dict[str, str]) -> None:
    argv = ("load", "-", "--json")
    plan = run(SHREDDER, *argv, "--dry-run", stdin=b"a\nb\n", env=env, cwd=tmp_path)
    token = read_envelope(plan.out)["result"]["token"]
    assert not (tmp_path / "a").exists()
    other = run(SHREDDER, *argv, "--apply", token, stdin=b"a\nc\n", env=env, cwd=tmp_path)
    assert (other.code, read_envelope(other.out)["error"]["code"]) == (20, "E3053")
    assert not (tmp_path / "a").exists()
    plan = run(SHREDDER, *argv, "--dry-run", stdin=b"a\nb\n", env=env, cwd=tmp_path)
    token = read_envelope(plan.out)["result"]["token"]
    done = run(SHREDDER, *argv, "--apply", token, stdin=b"a\nb\n", env=env, cwd=tmp_path)
    assert read_envelope(done.out)["result"] == ["a", "b"]
    assert (tmp_path / "a").exists()
