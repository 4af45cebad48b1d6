"""The audit log: lines are chained and signed, and tampering is detected."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tooli.core.call import Call, Caller
from tooli.errors import TemporaryError
from tooli.schema.tool_reader import read_tool
from tooli.storage import audit_log, audit_reader
from tooli.storage.audit_log import append_line, get_log_path, log_app_event, log_event


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "audit" / "log.jsonl"


def write(log: Path, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        append_line(str(log), {"event": "test", "number": number})


def lines_of(log: Path) -> list[bytes]:
    return log.read_bytes().splitlines(keepends=True)


def fault(log: Path) -> tuple[int, str] | None:
    found = audit_reader.verify_log(str(log)).fault
    return None if found is None else (found.line, found.reason)


def test_written_log_is_valid(log: Path) -> None:
    write(log, 5)
    found = audit_reader.verify_log(str(log))
    assert (found.lines, found.partial_lines, found.is_signed, found.fault) == (5, 0, True, None)
    records = [json.loads(line) for line in lines_of(log)]
    assert [record["seq"] for record in records] == [1, 2, 3, 4, 5]
    assert [record["prev"] for record in records] == [
        "",
        *[record["sum"] for record in records[:-1]],
    ]


def test_log_is_private(log: Path) -> None:
    write(log, 1)
    for path in (log, Path(f"{log}.head")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
def test_unsafe_state_folder_is_reported(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key in such a folder may be known to others, so the log would prove nothing."""
    state = tmp_path / "open"
    state.mkdir()
    state.chmod(0o777)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(state))
    with pytest.raises(PermissionError, match="chmod go-w"):
        append_line(str(log), {"event": "call"})
    assert os.listdir(state) == []


def test_missing_log_is_valid(log: Path) -> None:
    assert audit_reader.verify_log(str(log)).fault is None
    assert audit_reader.read_last_records(str(log), 5) == []
    assert not log.parent.exists(), "verifying creates nothing"


# ------------------------------------------------------------------ tampering


def change(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b'"number":2', b'"number":9'), *lines[3:]]


def remove(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], *lines[3:]]


def remove_first(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def remove_last(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def remove_all(lines: list[bytes]) -> list[bytes]:
    return []


def swap(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def repeat(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[2], *lines[3:]]


def insert(lines: list[bytes]) -> list[bytes]:
    inserted = lines[2].replace(b'"number":2', b'"number":7')
    return [*lines[:3], inserted, *lines[3:]]


def insert_garbage(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], b'{"event":"fake","sum":"00"}\n', *lines[3:]]


def sign_without_key(lines: list[bytes]) -> list[bytes]:
    """Rewrite the log from the third line on, with the format but without the key."""
    records = [json.loads(line) for line in lines]
    rewritten, prev = lines[:2], records[1]["sum"]
    for record in records[2:]:
        facts = {k: v for k, v in record.items() if k not in ("prev", "sum", "seq")}
        line = audit_log.encode_line({"seq": record["seq"], "prev": prev, **facts}, b"")
        prev = json.loads(line)["sum"]
        rewritten = [*rewritten, line]
    return rewritten


def cut(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2][:-20] + b"\n", *lines[3:]]


@pytest.mark.parametrize(
    ("tamper", "line"),
    [
        (change, 3),
        (remove, 3),
        (remove_first, 1),
        (remove_last, 5),
        (remove_all, 0),
        (swap, 1),
        (repeat, 4),
        (insert, 4),
        (insert_garbage, 4),
        (sign_without_key, 3),
        (cut, 3),
    ],
)
@pytest.mark.parametrize("later", [0, 2])
def test_tampering_is_detected(
    log: Path, tamper: Callable[[list[bytes]], list[bytes]], line: int, later: int
) -> None:
    """Tampering is detected before and after more lines are written."""
    write(log, 6)
    log.write_bytes(b"".join(tamper(lines_of(log))))
    write(log, later, start=6)
    found = fault(log)
    assert found is not None
    assert found[0] in (line, line + 1)


def test_missing_or_invalid_head_is_detected(log: Path) -> None:
    write(log, 4)
    head = Path(f"{log}.head")
    valid_head = head.read_bytes()
    for data in (b"", b"nonsense", valid_head.replace(b"4", b"3", 1), b"\0" * 87):
        head.write_bytes(data)
        assert fault(log) is not None
    head.unlink()
    assert "head" in fault(log)[1]
    write(log, 1)
    assert "head is missing" in fault(log)[1], "the next line records the problem"
    assert audit_reader.verify_log(str(log)).fault.seq == 5


@pytest.mark.parametrize(
    ("kept", "head"),
    [(None, b"nonsense"), *product((0, 1, 2), (None, b"", b"nonsense"))],
)
def test_lost_head_is_reported_for_ever(log: Path, kept: int | None, head: bytes | None) -> None:
    """Lines are removed without the key, and the head is removed, emptied or replaced."""
    write(log, 5)
    remaining = lines_of(log)[:kept]
    log.unlink()
    Path(f"{log}.head").unlink()
    if kept is not None:
        log.write_bytes(b"".join(remaining))
    if head is not None:
        Path(f"{log}.head").write_bytes(head)
    assert fault(log) is not None
    for _ in range(3):
        write(log, 1)
        assert "the head is missing" in fault(log)[1]
    assert json.loads(lines_of(log)[-3])["after"] == "the head is missing"


@pytest.mark.parametrize("has_key", [True, False])
def test_removed_log_with_empty_head_is_no_log(log: Path, has_key: bool, tmp_path: Path) -> None:
    write(log, 5)
    log.unlink()
    Path(f"{log}.head").write_bytes(b"")
    if not has_key:
        shutil.rmtree(tmp_path / "state")
    found = audit_reader.verify_log(str(log))
    assert "there is no log" in found.fault.reason


def test_rotated_files_without_head_are_reported(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 500)
    write(log, 9)
    log.unlink()
    Path(f"{log}.head").unlink()
    assert "head" in fault(log)[1]
    write(log, 1)
    assert json.loads(lines_of(log)[0])["after"] == "the head is missing"
    assert fault(log) is not None


def test_verification_ignores_a_log_that_is_created_meanwhile(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_enter = audit_log.AuditHead.__enter__

    def enter_before_first_line(head: audit_log.AuditHead) -> audit_log.AuditHead:
        entered = real_enter(head)
        with monkeypatch.context() as patch:
            patch.setattr(audit_log.AuditHead, "__enter__", real_enter)
            write(log, 1)
        return entered

    monkeypatch.setattr(audit_log.AuditHead, "__enter__", enter_before_first_line)
    assert "head" not in (fault(log) or (0, ""))[1]


def test_restored_older_log_is_detected(log: Path) -> None:
    write(log, 3)
    older = log.read_bytes()
    write(log, 3)
    log.write_bytes(older)
    assert fault(log) == (3, "the last 3 lines are missing")
    write(log, 1)
    assert "lines are missing before this one: 4 to 6" in fault(log)[1]


# ------------------------------------------------------------------ crashes


def test_partial_last_line_is_reported(log: Path) -> None:
    write(log, 3)
    with log.open("ab") as file:
        file.write(b'{"seq":4,"prev":"abc","ti')
    found = audit_reader.verify_log(str(log))
    assert (found.lines, found.partial_lines, found.fault) == (3, 1, None)
    write(log, 2)
    found = audit_reader.verify_log(str(log))
    assert (found.lines, found.partial_lines, found.fault) == (5, 1, None)
    assert [record["seq"] for record in audit_reader.read_last_records(str(log), 10)] == [
        1,
        2,
        3,
        4,
        5,
    ]


@pytest.mark.parametrize("length", [1, 5, 40, 90, -2, -1])
def test_log_is_valid_after_crash_before_head_is_written(log: Path, length: int) -> None:
    """The log stays valid, whichever part of the line was written."""
    write(log, 3)
    head = Path(f"{log}.head")
    before, old_head = log.read_bytes(), head.read_bytes()
    write(log, 1)
    last = log.read_bytes()[len(before) :]
    log.write_bytes(before + last[:length])
    head.write_bytes(old_head)
    write(log, 1)
    assert fault(log) is None


@pytest.mark.parametrize("written", ["nothing", "head", "partial line", "line"])
def test_log_is_valid_after_crash_of_first_writer(
    log: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: list[bytes] = []
    real_open = audit_log.open_log

    def open_after_head(path: str) -> int:
        heads.append(Path(f"{path}.head").read_bytes())
        return real_open(path)

    with monkeypatch.context() as patch:
        patch.setattr(audit_log, "open_log", open_after_head)
        write(log, 1)
    line = log.read_bytes()
    log.unlink()
    if written in ("partial line", "line"):
        log.write_bytes(line if written == "line" else line[:50])
    Path(f"{log}.head").write_bytes(b"" if written == "nothing" else heads[0])
    if written == "nothing":
        assert "there is no log" in fault(log)[1]
    else:
        assert fault(log) is None
    write(log, 2)
    assert fault(log) is None


# ------------------------------------------------------------------ size


def test_rotation_limits_size_and_number_of_files(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 500)
    write(log, 6)
    assert Path(f"{log}.1").exists()
    assert not Path(f"{log}.{audit_log.MAX_ROTATED_FILES}").exists()
    assert fault(log) is None
    assert audit_reader.verify_log(str(log)).lines == 6
    assert [record["number"] for record in audit_reader.read_last_records(str(log), 5)] == [
        1,
        2,
        3,
        4,
        5,
    ]
    write(log, 60)
    files = sorted(path.name for path in log.parent.iterdir())
    assert len(files) == 2 + audit_log.MAX_ROTATED_FILES
    assert all(path.stat().st_size <= 500 for path in log.parent.iterdir())
    found = audit_reader.verify_log(str(log))
    assert found.fault is None
    assert 0 < found.lines < 66


def test_missing_middle_file_is_detected(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 1000)
    write(log, 60)
    Path(f"{log}.2").unlink()
    assert "missing" in fault(log)[1]


def test_missing_oldest_file_is_detected(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 1000)
    write(log, 60)
    Path(f"{log}.{audit_log.MAX_ROTATED_FILES}").unlink()
    assert "missing before this one: " in fault(log)[1]


@pytest.mark.parametrize(
    ("number", "later"), [(4, 0), (3, 0), (3, 5), (1, 0), (1, 5), (0, 0), (0, 5)]
)
def test_missing_first_lines_are_detected_after_rotation(
    log: Path, number: int, later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gap is detected after another rotation, unless the missing lines would be dropped."""
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 1000)
    write(log, 60)
    for older in range(audit_log.MAX_ROTATED_FILES, number, -1):
        Path(f"{log}.{older}").unlink()
    changed = Path(f"{log}.{number}") if number else log
    changed.write_bytes(b"".join(lines_of(changed)[1:]))
    write(log, later)
    assert "missing before this one" in fault(log)[1]


def test_gap_after_dropped_file_is_detected(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 1000)
    write(log, 60)
    following = Path(f"{log}.{audit_log.MAX_ROTATED_FILES - 1}")
    following.write_bytes(b"".join(lines_of(following)[1:]))
    first_seq = json.loads(lines_of(Path(f"{log}.{audit_log.MAX_ROTATED_FILES}"))[0])["seq"]
    write(log, 5)
    assert f"missing before this one: {first_seq} to" in fault(log)[1]


def test_log_is_valid_after_crash_during_rotation(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_LOG_BYTES", 1000)
    write(log, 60)
    before = len(list(log.parent.iterdir()))

    def crash(path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(audit_log, "_rotate", crash)
        with pytest.raises(KeyboardInterrupt):
            write(log, 20)
    assert fault(log) is None
    write(log, 1)
    assert fault(log) is None
    assert len(list(log.parent.iterdir())) == before


def test_removed_log_is_detected(log: Path) -> None:
    write(log, 3)
    log.unlink()
    assert "the last 3 lines are missing" in fault(log)[1]
    Path(f"{log}.head").unlink()
    assert "there is no log" in fault(log)[1]


LONG_TEXTS = ["x" * 5000, "\U0001f600" * 500, "\0" * 900, "\ud800" * 900, '"' * 5000, "é" * 5000]


@pytest.mark.parametrize("text", LONG_TEXTS, ids=ascii)
def test_long_values_do_not_displace_other_fields(events: Path, text: str) -> None:
    """A caller cannot remove its identity or the outcome from its own lines."""
    call = make_call("strict", path=text, rows=[text] * 50)
    caller = Caller("http", name=text, session=text, principal="mallory")
    tool = call.tool.replace(param_names=frozenset(f"p{number}" for number in range(60)))
    many = call.replace(tool=tool, arguments=dict.fromkeys(sorted(tool.param_names), text))
    for logged in (call, many):
        log_event(
            "run",
            logged.replace(caller=caller),
            phase="ends",
            override=["yes"],
            request="abcd",
            ok=False,
            code="E4000",
            message=text,
            target=text,
            ms=7,
        )
    assert all(len(line) <= audit_log.MAX_LINE_BYTES for line in lines_of(events))
    assert fault(events) is None
    for record in audit_reader.read_last_records(str(events), 2):
        assert record["caller"]["principal"] == "mallory"
        assert record["caller"]["name"] and record["caller"]["pid"] == os.getpid()
        assert (record["tool"], record["override"], record["request"]) == (
            "clerk.wipe",
            ["yes"],
            "abcd",
        )
        assert (record["ok"], record["code"], record["ms"]) == (False, "E4000", 7)
        assert record["phase"] == "ends" and record["call"] and record["arguments"]


@pytest.mark.parametrize("count", [30, 60, 300])
def test_arguments_are_shortened_before_other_fields(log: Path, count: int) -> None:
    arguments = {f"name{number}": "x" * 190 for number in range(count)}
    append_line(str(log), {"event": "test", "message": "m" * 400, "arguments": arguments})
    (record,) = audit_reader.read_last_records(str(log), 2)
    assert record["message"] == "m" * 400
    assert len(lines_of(log)[0]) <= audit_log.MAX_LINE_BYTES
    assert record.get("cut", False) is (count > 30)
    expected = f"({count} arguments)" if count == 300 else list(arguments)
    shown = record["arguments"]
    assert (list(shown) if isinstance(shown, dict) else shown) == expected


def test_long_line_keeps_all_fields(log: Path) -> None:
    facts = {f"fact{number}": "x" * 450 for number in range(30)}
    append_line(str(log), {"event": "test", **facts, "caller": {"principal": "p" * 900, "pid": 1}})
    assert len(lines_of(log)[0]) <= audit_log.MAX_LINE_BYTES
    (record,) = audit_reader.read_last_records(str(log), 2)
    assert record["cut"] is True and set(facts) < set(record)
    assert record["caller"]["pid"] == 1 and record["caller"]["principal"].startswith("ppp")
    assert fault(log) is None


def test_text_never_breaks_line(log: Path) -> None:
    for text in ("a\nb", 'x","sum":"00"}', "\u2028", "\ud800", "\0", "é" * 600):
        append_line(str(log), {"event": "test", "text": text})
    assert len(lines_of(log)) == 6
    assert fault(log) is None


# ------------------------------------------------------------------ write failures


def test_partial_write_is_undone(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(log, 2)
    before = log.read_bytes()
    real_write = os.write

    def write_half(file: int, data: bytes) -> int:
        return real_write(file, data[: len(data) // 2])

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "write", write_half)
        write(log, 1)
    assert log.read_bytes() == before
    write(log, 1)
    assert fault(log) is None


def test_symlink_is_not_followed(log: Path, tmp_path: Path) -> None:
    log.parent.mkdir()
    target = tmp_path / "precious"
    target.write_text("precious\n")
    log.symlink_to(target)
    with pytest.raises(OSError):
        write(log, 1)
    assert target.read_text() == "precious\n"


def test_fifo_is_rejected(log: Path) -> None:
    log.parent.mkdir()
    os.mkfifo(log)
    with pytest.raises(OSError, match="not a file"):
        write(log, 1)


def give_away(path: Path) -> None:
    if os.getuid():
        pytest.skip("only root can create a file of another user")
    os.chown(path, 65534, 65534)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX owners and modes")
@pytest.mark.parametrize("suffix", ["", ".head"])
@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (give_away, "belongs to another user"),
        (lambda path: path.chmod(0o620), "chmod go-w"),
        (lambda path: path.chmod(0o602), "chmod go-w"),
        (lambda path: os.link(path, f"{path}.copy"), "hard link"),
    ],
    ids=["owner", "group", "others", "link"],
)
def test_log_that_others_control_is_not_written(
    events: Path, suffix: str, prepare: Callable[[Path], None], reason: str
) -> None:
    write(events, 1)
    before = events.read_bytes()
    prepare(Path(f"{events}{suffix}"))
    call = make_call()
    assert not log_event("run", call) and reason in call.warnings[0]
    with pytest.raises(TemporaryError, match=reason) as failure:
        log_event("run", make_call("strict"), required=True)
    assert failure.value.code == "E4061"
    assert events.read_bytes() == before
    assert fault(events) is None, "the log can still be verified"


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX owners")
def test_log_of_root_is_written(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(log, 1)
    if log.stat().st_uid:
        pytest.skip("only root can create a file of root")
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    os.close(audit_log.open_log(str(log)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("read_only", [True, False])
def test_fifo_as_head_is_rejected(log: Path, read_only: bool) -> None:
    log.parent.mkdir()
    os.mkfifo(f"{log}.head")
    with pytest.raises(OSError, match="not a file"):
        audit_reader.verify_log(str(log)) if read_only else write(log, 1)


def test_locked_log_is_an_error(log: Path) -> None:
    import fcntl

    write(log, 1)
    with open(f"{log}.head", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="holds the lock"):
            audit_log.append_line(str(log), {"event": "run"}, lock_timeout=0.0)
    write(log, 1)
    assert fault(log) is None


def test_log_without_key_is_verified(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file" / "below"))
    write(log, 3)
    found = audit_reader.verify_log(str(log))
    assert (found.lines, found.is_signed, found.fault) == (3, False, None)
    log.write_bytes(b"".join(change(lines_of(log))))
    assert fault(log) is not None


# ------------------------------------------------------------------ events


def make_call(policy: str = "standard", **arguments: object) -> Call:
    def wipe(path: str = "", rows: list[str] | None = None) -> None: ...

    tool = read_tool(wipe, app="clerk", path=("wipe",), kwargs={}).replace(version="1.0")
    caller = Caller("cli", name="agent", session="s" * 600)
    return Call(tool, arguments, caller, [], policy=policy)


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(audit_log, "_configured_paths", {})
    return tmp_path / "audit" / "clerk.jsonl"


def test_call_event_has_truncated_fields(events: Path) -> None:
    call = make_call(path="a", rows=["x" * 300], injected=1)
    assert log_event("denial", call, code="E2001", message="m" * 600)
    (record,) = audit_reader.read_last_records(str(events), 9)
    assert (record["event"], record["app"], record["tool"]) == ("denial", "clerk", "clerk.wipe")
    assert (record["version"], record["policy"], record["code"]) == ("1.0", "standard", "E2001")
    assert record["arguments"]["path"] == "a" and "injected" not in record["arguments"]
    assert record["arguments"]["rows"].endswith("x… (304 bytes)")
    assert record["message"] == "m" * 498 + "… (602 bytes)"
    assert record["caller"]["session"] == "s" * 498 + "… (602 bytes)"
    assert (record["caller"]["pid"], "principal" in record["caller"]) == (os.getpid(), False)


def test_call_digest_needs_a_key(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_event("run", make_call(path="a"))
    monkeypatch.setattr(audit_log, "load_or_create_key", lambda name: None)
    log_event("run", make_call(path="a"))
    with_key, without_key = audit_reader.read_last_records(str(events), 9)
    assert len(with_key["call"]) == 32 and "call" not in without_key


def test_policy_off_logs_nothing(events: Path) -> None:
    assert log_event("run", make_call("off"))
    assert log_app_event("clerk", "grant", "off") is None
    assert not events.exists()


def test_app_event_is_logged(events: Path) -> None:
    assert log_app_event("clerk", "grant", "standard", request="abcd") is None
    (record,) = audit_reader.read_last_records(str(events), 9)
    assert (record["event"], record["request"]) == ("grant", "abcd")


def test_unwritable_log_warns_once(events: Path) -> None:
    events.mkdir(parents=True)
    call = make_call()
    assert not log_event("run", call) and not log_event("run", call, required=True)
    assert call.warnings == ["the audit log cannot be written: it is not a file"]
    warning = log_app_event("clerk", "grant", "standard")
    assert warning == "the audit log cannot be written: it is not a file"


def test_strict_policy_requires_the_log(events: Path) -> None:
    events.mkdir(parents=True)
    with pytest.raises(TemporaryError) as failure:
        log_event("run", make_call("strict"), required=True)
    assert failure.value.code == "E4061" and "it is not a file" in failure.value.message
    assert not log_event("run", make_call("strict"))
    with pytest.raises(TemporaryError):
        log_app_event("clerk", "grant", "strict")


def fail_to_append(*_: object) -> None:
    raise OSError("another process holds the lock")


def test_lock_timeout_is_shorter_after_a_failure_or_in_event_loop(
    events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = make_call()
    assert audit_log._lock_timeout_for(call) == audit_log.LOCK_TIMEOUT_SECONDS
    call.warnings.append("the audit log cannot be written: it is locked")  # a command warned
    assert audit_log._lock_timeout_for(call) == audit_log.LOCK_TIMEOUT_SECONDS
    with monkeypatch.context() as patch:
        patch.setattr(audit_log, "append_line", fail_to_append)
        assert not log_event("run", call)
    assert audit_log._lock_timeout_for(call.replace(policy="strict")) == 0.0

    async def in_event_loop() -> float:
        return audit_log._lock_timeout_for(make_call())

    assert asyncio.run(in_event_loop()) == audit_log.EVENT_LOOP_LOCK_TIMEOUT_SECONDS


def test_log_path_can_be_set_for_an_app(tmp_path: Path, events: Path) -> None:
    assert get_log_path("clerk") == str(events)
    assert Path(get_log_path("../clerk")).name.startswith("by-")
    assert Path(get_log_path("c" * 61)).name.startswith("by-")
    audit_log.set_log_path("clerk", None)
    assert get_log_path("clerk") == str(events)
    audit_log.set_log_path("clerk", str(tmp_path / "other.jsonl"))
    assert get_log_path("clerk") == str(tmp_path / "other.jsonl")


# ------------------------------------------------------------------ files


def test_invalid_log_restarts_numbering(log: Path) -> None:
    log.parent.mkdir(parents=True)
    log.write_bytes(b"not a line\n" * 3)
    write(log, 1)
    record = json.loads(lines_of(log)[-1])
    assert record["seq"] == 1 and "after" in record


def test_partial_head_write_is_an_error(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(log, 1)
    with audit_log.AuditHead(str(log)) as head:
        monkeypatch.setattr(audit_log.os, "write", lambda file, data: 3)
        with pytest.raises(OSError, match="No space"):
            head.write((1, "a"), (1, ""), b"")
        monkeypatch.undo()


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), audit_log.AuditHead(str(tmp_path / "no" / "log")):
        pass


def test_lock_is_retried(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = iter((BlockingIOError(), None))

    def set_lock(file: int, *, locked: bool) -> None:
        failure = next(attempts)
        if failure is not None:
            raise failure

    monkeypatch.setattr(audit_log, "set_file_lock", set_lock)
    audit_log._lock(0, 60.0)


def test_device_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="not a file"):
        audit_log.open_log(os.devnull)


def test_log_is_written_without_pread(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread")
    write(log, 3)
    assert audit_reader.verify_log(str(log)).lines == 3
