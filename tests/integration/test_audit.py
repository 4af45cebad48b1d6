"""The audit log from outside: many writers, sudden ends, full disks."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from tests.integration.outside import (
    APPS,
    command,
    envelope,
    environment,
    finish,
    is_clean,
    run,
    started,
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
    made = tmp_path / "old.log"
    made.write_text("old")
    return made


def verify(env: dict[str, str]) -> dict:
    return envelope(run(SHREDDER, "audit", "verify", "--json", env=env).out)


def writing(log: Path, name: str, count: int, env: dict[str, str]) -> subprocess.Popen[bytes]:
    words = command(SHREDDER, "write-lines", str(log), str(count), name, "--json")
    return subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def test_many_writers_at_once(log: Path, env: dict[str, str]) -> None:
    writers = [writing(log, str(number), LINES, env) for number in range(WRITERS)]
    assert [writer.wait(120) for writer in writers] == [0] * WRITERS
    found = verify(env)["result"]
    assert (found["lines"], found["whole"]) == (WRITERS * LINES, True)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    for number in range(WRITERS):
        own = [one["number"] for one in lines if one["name"] == str(number)]
        assert own == list(range(LINES)), "each in its order, none lost"


def test_writers_that_are_killed(log: Path, env: dict[str, str]) -> None:
    """Wherever they were: the log stays whole, and the others go on."""
    for round_ in range(6):
        writers = [writing(log, f"{round_}-{number}", 100_000, env) for number in range(3)]
        before = log.stat().st_size if log.exists() else 0
        while not log.exists() or log.stat().st_size < before + 2000 * (round_ + 1):
            assert all(writer.poll() is None for writer in writers)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait(60)
    assert writing(log, "last", 3, env).wait(60) == 0
    found = verify(env)
    assert found["ok"], found
    assert found["result"]["lines"] > 10


def test_a_run_that_is_killed_is_on_record(log: Path, env: dict[str, str]) -> None:
    with started(SHREDDER, "hang", "--yes", "--json", env=env) as process:
        wait_for_ready(process)
        process.send_signal(signal.SIGKILL)
        finish(process)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [(one["event"], one["phase"]) for one in lines] == [("destructive_run", "begins")]
    assert verify(env)["ok"]


def test_following_a_log(env: dict[str, str], file: Path, log: Path) -> None:
    run(SHREDDER, "delete", str(file), env=env)
    with started(SHREDDER, "audit", "tail", "-n", "1", "--follow", "--jsonl", env=env) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert first["code"] == "E1010"
        run(SHREDDER, "delete", str(file), "--yes", env=env)
        assert json.loads(process.stdout.readline())["phase"] == "begins"
        assert json.loads(process.stdout.readline())["phase"] == "ends"
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 130


def test_nothing_of_it_is_on_stdout_or_stderr(env: dict[str, str], file: Path) -> None:
    found = run(SHREDDER, "delete", str(file), "--yes", "--json", env=env)
    assert "warnings" not in envelope(found.out)["meta"]
    assert found.err == b""


# ------------------------------------------------------------------ where it cannot be written


def in_the_way(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "audit").write_text("in the way")
    return {}


def no_device(tmp_path: Path) -> dict[str, str]:
    return {"TOOLI_AUDIT_LOG": "/dev/full"}


def not_ours(tmp_path: Path) -> dict[str, str]:
    return {"TOOLI_AUDIT_LOG": "/proc/self/audit.jsonl"}


@pytest.mark.parametrize("spoil", [in_the_way, no_device, not_ours])
def test_places_that_take_nothing(spoil, tmp_path: Path, env: dict[str, str], file: Path) -> None:
    env = {**env, **spoil(tmp_path)}
    strict = run(SHREDDER, "delete", str(file), "--yes", env={**env, "POLICY": "strict"})
    assert (strict.code, envelope(strict.out)["error"]["code"]) == (75, "E4061")
    assert file.exists()
    assert is_clean(strict.err)
    standard = run(SHREDDER, "delete", str(file), "--yes", env=env)
    told = envelope(standard.out)
    assert standard.code == 0
    assert any("audit log" in warning for warning in told["meta"]["warnings"])
    assert not file.exists()
    assert not Path("/dev/full.head").exists()


def test_a_disk_that_is_full(tmp_path: Path, env: dict[str, str], file: Path, log: Path) -> None:
    """A file may not grow: every line is half written, and taken back."""
    run(SHREDDER, "delete", str(file), env=env)
    whole = log.read_bytes()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 50,) * 2)

    strict = run(
        SHREDDER,
        "delete",
        str(file),
        "--yes",
        env={**env, "POLICY": "strict", "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limited,
    )
    assert (strict.code, envelope(strict.out)["error"]["code"]) == (75, "E4061")
    assert file.exists()
    assert log.read_bytes() == whole
    assert verify(env)["ok"]


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        app.call("wipe")  # everything that is imported late is, now
    (state / "audit" / "readonly.jsonl").unlink()
    (state / "audit" / "readonly.jsonl.head").unlink()
    (state / "audit").chmod(0o555)
    found = {}
    nobody = os.getuid() == 0
    if nobody:
        os.seteuid(65534)
    try:
        for policy in ("standard", "strict"):
            app = Tooli("readonly", security_policy=policy)
            app.command("wipe", annotations=Destructive, auth=[])(lambda: ran.append("x"))
            found[policy] = app.call("wipe", yes=True)
    finally:
        if nobody:
            os.seteuid(0)
        (state / "audit").chmod(0o755)
    assert found["standard"].ok
    assert "Permission denied" in found["standard"].meta["warnings"][0]
    assert found["strict"].error.code == "E4061"
    assert ran == ["x"]
