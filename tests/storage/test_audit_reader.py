"""Reading the audit log: verification, the last records, and following the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli.storage import audit_log, audit_reader
from tooli.storage.audit_log import append_line
from tooli.storage.signing import load_key


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "audit" / "log.jsonl"


def write(log: Path, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        append_line(str(log), {"event": "test", "number": number})


def test_follow_log_while_writing(log: Path) -> None:
    write(log, 3)
    lines = audit_reader.follow_log(str(log), 2)
    assert next(lines)["seq"] == 2
    write(log, 1)
    assert [next(lines)["seq"] for _ in range(2)] == [3, 4]
    lines.close()


def test_last_records_span_rotated_files(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 500)
    write(log, 9)
    assert Path(f"{log}.2").exists()
    for count in (1, 3, 6, 9, 12):
        lines = audit_reader.follow_log(str(log), count, lambda: True)
        assert list(lines) == audit_reader.read_last_records(str(log), count)


@pytest.mark.parametrize("missing", ["", ".1"])
def test_last_records_are_found_after_an_interrupted_rotation(
    log: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """A crash during rotation leaves a gap in the numbers of the files, or no current file."""
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 500)
    write(log, 9)
    Path(f"{log}{missing}").unlink()
    records = audit_reader.read_last_records(str(log), 20)
    assert records[0]["number"] == 0
    assert list(audit_reader.follow_log(str(log), 20, lambda: True)) == records


def test_follow_log_across_rotation(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 1000)
    monkeypatch.setattr(audit_reader, "POLL_INTERVAL_SECONDS", 0.0)
    write(log, 2)
    polls = iter(range(100))

    def should_stop() -> bool:
        poll = next(polls)
        if poll < 10:
            write(log, 1, start=10 + poll)
        return poll > 30

    numbers = [record["number"] for record in audit_reader.follow_log(str(log), 0, should_stop)]
    assert numbers == list(range(10, 20))


def test_follow_waits_for_a_missing_log(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_reader, "POLL_INTERVAL_SECONDS", 0.0)
    polls = iter(range(100))

    def should_stop() -> bool:
        poll = next(polls)
        if poll == 2:
            write(log, 2)
        return poll > 8

    records = list(audit_reader.follow_log(str(log), 5, should_stop))
    assert [record["number"] for record in records] == [0, 1]
    assert list(audit_reader.follow_log(str(log) + ".none", 5, lambda: True)) == []


def test_invalid_lines_are_skipped(log: Path) -> None:
    write(log, 1)
    with log.open("ab") as file:
        file.write(b"[1]\nnot json\n\n7\n" + b"[" * 100_000 + b"\n")
    write(log, 1, start=1)
    records = audit_reader.read_last_records(str(log), 9)
    assert [record["number"] for record in records] == [0, 1]


def test_verification_ignores_later_lines(log: Path) -> None:
    write(log, 3)
    size = log.stat().st_size
    write(log, 2, start=3)
    result = audit_reader.VerificationResult(str(log))
    chain = audit_reader._ChainVerifier(result, load_key("audit") or b"", audit_log.FIRST_LINK)
    with log.open("rb") as file:
        chain.read(str(log), file, size)
    assert (result.lines, result.fault) == (3, None)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ((1, "x"), "the head is older than the log"),
        ((3, "x"), "the last line was replaced"),
        ((4, "x"), "the last line is missing"),
        ((6, "x"), "the last 3 lines are missing"),
        (None, "the head of the log is missing, or was changed"),
    ],
)
def test_head_mismatch_is_reported(log: Path, head: tuple[int, str] | None, reason: str) -> None:
    write(log, 3)
    result = audit_reader.VerificationResult(str(log))
    chain = audit_reader._ChainVerifier(result, load_key("audit") or b"", audit_log.FIRST_LINK)
    with log.open("rb") as file:
        chain.read(str(log), file, log.stat().st_size)
    chain.finish(head)
    assert result.fault is not None and result.fault.reason == reason


@pytest.mark.parametrize(
    ("before", "seq", "text"),
    [(3, 6, "missing before this one: 4 to 5"), (3, 4, "does not follow"), (3, 2, "out of order")],
)
def test_gap_description_depends_on_sequence_numbers(before: int, seq: int, text: str) -> None:
    assert text in audit_reader._describe_gap(before, seq)
