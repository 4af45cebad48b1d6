"""The state directory, marker files, overflow files, and the first call of a session."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.outside import environment

from tooli.storage import state_files
from tooli.storage.state_files import (
    SESSION_RETENTION_SECONDS,
    claim_once,
    get_state_dir,
    is_first_call,
)

APP = """
import tooli
app = tooli.Tooli("counter")

@app.command()
def count(upto: int) -> list[int]:
    return list(range(upto))

@app.command()
def shout(word: str):
    print(word.upper())

app()
"""
SCHEMA = {"type": "array", "items": {"type": "integer"}}


@pytest.fixture
def counter(tmp_path: Path) -> Any:
    program = tmp_path / "counter.py"
    program.write_text(APP)

    def start(*argv: str, session: str = "s-1", **env: str) -> subprocess.Popen[bytes]:
        variables = {"TOOLI_SESSION_ID": session, "TOOLI_STATE_DIR": str(tmp_path / "state"), **env}
        command = [sys.executable, str(program), *argv]
        return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(**variables))

    def schema(*argv: str, **more: str) -> Any:
        return json.loads(start(*argv, **more).communicate()[0])["meta"].get("output_schema")

    schema.start = start  # type: ignore[attr-defined]
    return schema


class TestProgram:
    def test_first_call_of_session_returns_schema(self, counter: Any) -> None:
        assert counter("count", "2", "--json") == SCHEMA
        assert counter("count", "2", "--json") is None
        assert counter("count", "2", "--json", session="s-2") == SCHEMA

    def test_call_without_schema_is_not_counted(self, counter: Any) -> None:
        assert counter("count", "many", "--json") is None
        assert counter("shout", "hey", "--json") is None
        assert counter("count", "2", "--json", "--response-format", "concise") is None
        counter.start("count", "2", "--text").communicate()
        assert counter("count", "2", "--json") == SCHEMA

    def test_detailed_response_always_has_schema(self, counter: Any) -> None:
        assert counter("count", "2", "--json") == SCHEMA
        assert counter("count", "2", "--json", "--response-format", "detailed") == SCHEMA

    def test_one_concurrent_call_is_first(self, counter: Any) -> None:
        started = [counter.start("count", "1", "--json") for _ in range(8)]
        metas = [json.loads(process.communicate()[0])["meta"] for process in started]
        assert sum("output_schema" in meta for meta in metas) == 1

    def test_unwritable_state_directory_is_ignored(self, counter: Any, tmp_path: Path) -> None:
        blocked = tmp_path / "file"
        blocked.write_text("")
        assert counter("count", "2", "--json", TOOLI_STATE_DIR=str(blocked)) is None


class TestStore:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
        return tmp_path

    @pytest.mark.parametrize(
        "name", ["a", "A", "../../etc/passwd", "CON", "x" * 5000, "ü", "\udcff", "a b", ".", ""]
    )
    def test_any_session_name(self, home: Path, name: str) -> None:
        assert is_first_call("app", name)
        assert not is_first_call("app", name)
        assert is_first_call("other", name)
        assert not [path for path in home.rglob("*") if len(path.name) > 64]
        assert os.listdir(home) == ["sessions"]

    def test_expired_sessions_are_forgotten(self, home: Path) -> None:
        assert is_first_call("app", "old")
        long_ago = 1_000_000_000
        (old,) = (home / "sessions").glob("*/*")
        os.utime(old, (long_ago, long_ago))
        for number in range(1000):  # some of them purge
            assert is_first_call("app", f"new-{number}")
        assert not old.exists()
        assert is_first_call("app", "old")
        assert SESSION_RETENTION_SECONDS > 24 * 3600

    def test_default_location(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TOOLI_STATE_DIR")
        monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
        assert get_state_dir() == os.path.join("/somewhere", "tooli")
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setenv("HOME", "/home/ann")
        assert get_state_dir() == "/home/ann/.local/state/tooli"


def test_purges_are_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    purges: list[str] = []
    monkeypatch.setattr(state_files, "_delete_expired", lambda folder, ttl: purges.append(folder))
    for number in range(1000):
        assert claim_once(str(tmp_path / "folder"), f"mark-{number}", 1.0)
    assert 0 < len(purges) < 100


# ------------------------------------------------------------------ overflow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def test_overflow_file_is_private(home: Path) -> None:
    path = state_files.write_overflow("app.tool one", [b"[1,", b"2]"])
    assert path is not None
    assert Path(path).read_bytes() == b"[1,2]"
    assert Path(path).parent == home / "results"
    assert Path(path).name.startswith("app-tool-one-")
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_number_of_overflow_files_is_limited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "MAX_OVERFLOW_FILES", 3)
    paths = []
    for i in range(6):
        path = state_files.write_overflow("t", [b"x" * 10])
        assert path is not None
        os.utime(path, ns=(i, i))
        paths.append(path)
    state_files.write_overflow("t", [b"x"])
    assert sum(map(os.path.exists, paths)) == 2


def test_size_of_overflow_files_is_limited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "MAX_OVERFLOW_BYTES", 25)
    first = state_files.write_overflow("t", [b"x" * 20])
    assert first is not None
    os.utime(first, ns=(1, 1))
    second = state_files.write_overflow("t", [b"x" * 20])
    assert second is not None
    assert not os.path.exists(first)
    assert os.path.exists(second)


def test_overflow_falls_back_to_temp_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(blocked / "below"))
    monkeypatch.setattr(state_files, "_temp_folder", lambda: str(tmp_path / "temporary"))
    path = state_files.write_overflow("t", [b"1"])
    assert path is not None
    assert Path(path).parent == tmp_path / "temporary"
    monkeypatch.setattr(state_files, "_temp_folder", lambda: str(blocked / "neither"))
    assert state_files.write_overflow("t", [b"1"]) is None


def test_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    monkeypatch.setattr(state_files, "_temp_folder", lambda: str(tmp_path / "temp"))
    assert state_files.write_overflow("t", [b"1"]) is None


@pytest.mark.skipif(os.name == "nt", reason="pathlib cannot change its system")
def test_state_dir_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLI_STATE_DIR", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    monkeypatch.setattr(state_files.os, "name", "nt")
    found = state_files.get_state_dir()
    monkeypatch.undo()
    assert found == "/local/tooli"
