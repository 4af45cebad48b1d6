"""The audit log with many processes: concurrent and killed writers, full disks."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from tests.integration.app_process import (
    APPS,
    command,
    environment,
    finish,
    is_clean,
    read_envelope,
    run,
    start_app,
    wait_for_ready,
)

SHREDDER = APPS / "shredder.py"
WRITERS, LINES = 32, 40


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(TOOLI_STATE_DIR=str(tmp_path / "state"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "state" / "audit" / "shredder.jsonl"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "old.log"
    path.write_text("old")
    return path


def verify(env: dict[str, str]) -> dict:
    return read_envelope(run(SHREDDER, "audit", "verify", "--json", env=env).out)


def start_writer(log: Path, name: str, count: int, env: dict[str, str]) -> subprocess.Popen[bytes]:
    argv = command(SHREDDER, "write-lines", str(log), str(count), name, "--json")
    return subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def test_concurrent_writers_lose_no_line(log: Path, env: dict[str, str]) -> None:
    writers = [start_writer(log, str(number), LINES, env) for number in range(WRITERS)]
    assert [writer.wait(120) for writer in writers] == [0] * WRITERS
    found = verify(env)["result"]
    assert (found["lines"], found["whole"]) == (WRITERS * LINES, True)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    for number in range(WRITERS):
        own = [record["number"] for record in lines if record["name"] == str(number)]
        assert own == list(range(LINES)), "in order, and none is missing"


def test_killed_writers_leave_a_valid_log(log: Path, env: dict[str, str]) -> None:
    """The log stays valid wherever they were killed, and other writers continue."""
    for round_ in range(6):
        writers = [start_writer(log, f"{round_}-{number}", 100_000, env) for number in range(3)]
        before = log.stat().st_size if log.exists() else 0
        while not log.exists() or log.stat().st_size < before + 2000 * (round_ + 1):
            assert all(writer.poll() is None for writer in writers)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait(60)
    assert start_writer(log, "last", 3, env).wait(60) == 0
    found = verify(env)
    assert found["ok"], found
    assert found["result"]["lines"] > 10


def test_a_killed_run_is_logged(log: Path, env: dict[str, str]) -> None:
    with start_app(SHREDDER, "hang", "--yes", "--json", env=env) as process:
        wait_for_ready(process)
        process.send_signal(signal.SIGKILL)
        finish(process)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [(record["event"], record["phase"]) for record in lines] == [
        ("destructive_run", "begins")
    ]
    assert verify(env)["ok"]


def test_follow_prints_new_records(env: dict[str, str], file: Path, log: Path) -> None:
    run(SHREDDER, "delete", str(file), env=env)
    with start_app(SHREDDER, "audit", "tail", "-n", "1", "--follow", "--jsonl", env=env) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert first["code"] == "E1010"
        run(SHREDDER, "delete", str(file), "--yes", env=env)
        assert json.loads(process.stdout.readline())["phase"] == "begins"
        assert json.loads(process.stdout.readline())["phase"] == "ends"
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 130


def test_logging_prints_nothing(env: dict[str, str], file: Path) -> None:
    found = run(SHREDDER, "delete", str(file), "--yes", "--json", env=env)
    assert "warnings" not in read_envelope(found.out)["meta"]
    assert found.err == b""


# ------------------------------------------------------------------ write failures


def file_instead_of_folder(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "audit").write_text("in the way")
    return {}


def full_device(tmp_path: Path) -> dict[str, str]:
    return {"TOOLI_AUDIT_LOG": "/dev/full"}


def unwritable_folder(tmp_path: Path) -> dict[str, str]:
    return {"TOOLI_AUDIT_LOG": "/proc/self/audit.jsonl"}


@pytest.mark.parametrize(
    "make_unwritable", [file_instead_of_folder, full_device, unwritable_folder]
)
def test_unwritable_log_fails_only_under_the_strict_policy(
    make_unwritable, tmp_path: Path, env: dict[str, str], file: Path
) -> None:
    env = {**env, **make_unwritable(tmp_path)}
    strict = run(SHREDDER, "delete", str(file), "--yes", env={**env, "POLICY": "strict"})
    assert (strict.code, read_envelope(strict.out)["error"]["code"]) == (75, "E4061")
    assert file.exists()
    assert is_clean(strict.err)
    standard = run(SHREDDER, "delete", str(file), "--yes", env=env)
    answer = read_envelope(standard.out)
    assert standard.code == 0
    assert any("audit log" in warning for warning in answer["meta"]["warnings"])
    assert not file.exists()
    assert not Path("/dev/full.head").exists()


def test_full_disk_leaves_no_partial_line(
    tmp_path: Path, env: dict[str, str], file: Path, log: Path
) -> None:
    """The file cannot grow: a partial line is removed again."""
    run(SHREDDER, "delete", str(file), env=env)
    before = log.read_bytes()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50,) * 2)

    strict = run(
        SHREDDER,
        "delete",
        str(file),
        "--yes",
        env={**env, "POLICY": "strict", "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limited,
    )
    assert (strict.code, read_envelope(strict.out)["error"]["code"]) == (75, "E4061")
    assert file.exists()
    assert log.read_bytes() == before
    assert verify(env)["ok"]


def test_read_only_folder_fails_only_under_the_strict_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tooli import Tooli
    from tooli.annotations import Destructive
    from tooli.storage import signing  # noqa: F401  loaded while it can be read

    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setenv("TOOLI_STATE_DIR", str(state))
    ran: list[str] = []
    for policy in ("standard", "strict"):
        app = Tooli("readonly", security_policy=policy)
        app.command("wipe", annotations=Destructive, auth=[])(lambda: ran.append("x"))
        app.call("wipe")  # completes all lazy imports
    (state / "audit" / "readonly.jsonl").unlink()
    (state / "audit" / "readonly.jsonl.head").unlink()
    (state / "audit").chmod(0o555)
    found = {}
    is_root = os.getuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        for policy in ("standard", "strict"):
            app = Tooli("readonly", security_policy=policy)
            app.command("wipe", annotations=Destructive, auth=[])(lambda: ran.append("x"))
            found[policy] = app.call("wipe", yes=True)
    finally:
        if is_root:
            os.seteuid(0)
        (state / "audit").chmod(0o755)
    assert found["standard"].ok
    assert "Permission denied" in found["standard"].meta["warnings"][0]
    assert found["strict"].error.code == "E4061"
    assert ran == ["x"]
