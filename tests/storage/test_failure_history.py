"""The last failure of each tool in a session, in memory and in files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import time
from typing import Any

import pytest

from tooli.storage import failure_history
from tooli.storage.failure_history import (
    RETENTION_SECONDS,
    FileFailureHistory,
    MemoryFailureHistory,
    RepeatedFailure,
)

NOW = time() - 1.0


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    return tmp_path / "loops"


def failure(count: int = 1, failed_at: float = NOW, **error: Any) -> RepeatedFailure:
    return RepeatedFailure("call", "error", count, failed_at, error)


def session_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


@pytest.mark.parametrize("history_class", [MemoryFailureHistory, FileFailureHistory])
class TestBoth:
    def test_last_failure_replaces_earlier_ones(self, history_class: Any) -> None:
        history = history_class()
        assert history.last_failure("s", "a.t") is None
        history.record_failure("s", "a.t", failure(1))
        history.record_failure("s", "a.t", failure(2, code="E1"))
        assert history.last_failure("s", "a.t") == failure(2, code="E1")
        assert history.last_failure("s", "a.other") is None
        assert history.last_failure("other", "a.t") is None

    def test_success_forgets_the_failure(self, history_class: Any) -> None:
        history = history_class()
        history.record_failure("s", "a.t", failure())
        history.record_failure("s", "a.u", failure())
        history.forget("s", "a.t")
        history.forget("s", "a.t")
        assert history.last_failure("s", "a.t") is None
        assert history.last_failure("s", "a.u") == failure()

    @pytest.mark.parametrize("age", [RETENTION_SECONDS, -3600.0])
    def test_expired_failure_is_ignored(self, history_class: Any, age: float) -> None:
        history = history_class()
        history.record_failure("s", "a.t", failure(failed_at=NOW - age))
        assert history.last_failure("s", "a.t") is None


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_history, "MAX_MEMORY_FAILURES", 2)
    history = MemoryFailureHistory()
    for session in "abc":
        history.record_failure(session, "t", failure())
    assert [history.last_failure(session, "t") is None for session in "abc"] == [True, False, False]


class TestFiles:
    def test_file_is_private_and_deleted_when_empty(self, state_dir: Path) -> None:
        history = FileFailureHistory()
        history.record_failure("s", "a.t", failure())
        assert session_file(state_dir).stat().st_mode & 0o777 == 0o600
        history.forget("s", "a.t")
        assert list(state_dir.iterdir()) == []

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"[]",
            b'{"a.t": 1}',
            b'{"a.t": ["call", "error", "1", 1.0, {}]}',
            b"[" * 50_000,
        ],
    )
    def test_invalid_file_has_no_failures(self, state_dir: Path, data: bytes) -> None:
        history = FileFailureHistory()
        history.record_failure("s", "a.t", failure())
        session_file(state_dir).write_bytes(data)
        assert history.last_failure("s", "a.t") is None
        history.record_failure("s", "a.t", failure(3))
        assert history.last_failure("s", "a.t") == failure(3)

    def test_number_of_tools_is_limited(
        self, state_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(failure_history, "MAX_TOOLS_PER_SESSION", 2)
        for tool in "abc":
            FileFailureHistory().record_failure("s", tool, failure())
        assert list(json.loads(session_file(state_dir).read_text())) == ["b", "c"]

    def test_size_is_limited(self, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(failure_history, "_MAX_FILE_BYTES", 300)
        for tool in "abc":
            FileFailureHistory().record_failure("s", tool, failure(text="x" * 60))
        file = session_file(state_dir)
        assert list(json.loads(file.read_text())) == ["b", "c"]
        assert file.stat().st_size <= 300

    def test_expired_files_are_deleted(self, state_dir: Path) -> None:
        history = FileFailureHistory()
        history.record_failure("old", "t", failure())
        os.utime(session_file(state_dir), (NOW - RETENTION_SECONDS,) * 2)
        history.record_failure("new", "t", failure())
        assert history.last_failure("old", "t") is None

    def test_unwritable_folder_is_ignored(self, tmp_path: Path) -> None:
        (tmp_path / "loops").write_text("a file")
        history = FileFailureHistory()
        history.record_failure("s", "t", failure())
        history.forget("s", "t")
        assert history.last_failure("s", "t") is None
