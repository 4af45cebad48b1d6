"""Reading the audit log: its last records and following it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli.storage import audit_log, audit_reader
from tooli.storage.audit_log import append_line


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "audit" / "log.jsonl"


def write(log: Path, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        append_line(str(log), {"event": "test", "number": number})


def test_lines_written_while_the_last_ones_are_read(log: Path) -> None:
    write(log, 3)
    lines = audit_reader.follow_log(str(log), 2)
    assert next(lines)["seq"] == 2
    write(log, 1)
    assert [next(lines)["seq"] for _ in range(2)] == [3, 4]
    lines.close()


def test_the_last_lines_of_several_files(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 500)
    write(log, 9)
    assert Path(f"{log}.2").exists()
    for count in (1, 3, 6, 9, 12):
        lines = audit_reader.follow_log(str(log), count, lambda: True)
        assert list(lines) == audit_reader.read_last_records(str(log), count)


def test_following(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 1000)
    monkeypatch.setattr(audit_reader, "POLL_INTERVAL_SECONDS", 0.0)
    write(log, 2)
    looks = iter(range(100))
    seen: list[int] = []

    def ended() -> bool:
        look = next(looks)
        if look < 10:
            write(log, 1, start=10 + look)
        return look > 30

    seen = [record["number"] for record in audit_reader.follow_log(str(log), 0, ended)]
    assert seen == list(range(10, 20))
