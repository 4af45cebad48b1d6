"""Results that are too large are kept as files that only their user reads."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tooli.storage import overflow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def test_only_its_user_can_read_a_result(home: Path) -> None:
    path = overflow.write_overflow("app.tool one", [b"[1,", b"2]"])
    assert path is not None
    assert Path(path).read_bytes() == b"[1,2]"
    assert Path(path).parent == home / "results"
    assert Path(path).name.startswith("app-tool-one-")
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_old_results_are_deleted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "MAX_OVERFLOW_FILES", 3)
    paths = []
    for i in range(6):
        path = overflow.write_overflow("t", [b"x" * 10])
        assert path is not None
        os.utime(path, ns=(i, i))
        paths.append(path)
    overflow.write_overflow("t", [b"x"])
    assert sum(map(os.path.exists, paths)) == 2


def test_large_results_displace_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "MAX_OVERFLOW_BYTES", 25)
    first = overflow.write_overflow("t", [b"x" * 20])
    assert first is not None
    os.utime(first, ns=(1, 1))
    second = overflow.write_overflow("t", [b"x" * 20])
    assert second is not None
    assert not os.path.exists(first)
    assert os.path.exists(second)


def test_the_temporary_folder_is_used_if_the_state_directory_is_not_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(blocked / "below"))
    monkeypatch.setattr(overflow, "_temp_folder", lambda: str(tmp_path / "temporary"))
    path = overflow.write_overflow("t", [b"1"])
    assert path is not None
    assert Path(path).parent == tmp_path / "temporary"
    monkeypatch.setattr(overflow, "_temp_folder", lambda: str(blocked / "neither"))
    assert overflow.write_overflow("t", [b"1"]) is None
