"""Cursors: sealed, bound, found again; the key and the spilled results are for one user only."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.storage import overflow, signing_keys
from tooli.storage.cursors import (
    CursorPosition,
    InvalidCursor,
    compute_cursor_binding,
    decode_cursor,
    digest_record,
    encode_cursor,
)

KEY = b"k" * 32
STARTS = st.builds(
    CursorPosition,
    st.binary(min_size=6, max_size=6),
    st.integers(0, 2**40 - 1),
    st.lists(st.binary(min_size=5, max_size=5), max_size=3).map(tuple),
    st.none() | st.text(max_size=40),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLI_SEAL_KEY", raising=False)
    monkeypatch.setattr(signing_keys, "_cached_keys", {})
    return tmp_path / "state"


@given(STARTS)
def test_it_comes_back_as_it_went(start: CursorPosition) -> None:
    assert decode_cursor(encode_cursor(start, KEY), KEY) == start


@given(STARTS, st.data())
def test_whatever_is_changed_is_noticed(start: CursorPosition, data: st.DataObject) -> None:
    text = encode_cursor(start, KEY)
    at = data.draw(st.integers(0, len(text)))
    other = data.draw(st.sampled_from("Aaz09-_=+/ \n.é"))
    for changed in (text[:at] + other + text[at + 1 :], text[:at] + other + text[at:], text[:at]):
        if changed != text:
            with pytest.raises(InvalidCursor):
                decode_cursor(changed, KEY)


@given(st.text(max_size=80))
def test_no_text_is_a_cursor_by_chance(text: str) -> None:
    with pytest.raises(InvalidCursor):
        decode_cursor(text, KEY)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(InvalidCursor):
        decode_cursor(encode_cursor(CursorPosition(b"123456", 3), KEY), b"x" * 32)


def test_it_is_short() -> None:
    marks = tuple(digest_record(bytes([i])) for i in range(3))
    assert (
        len(encode_cursor(CursorPosition(compute_cursor_binding("tool", b"{}"), 12345, marks), KEY))
        < 60
    )


def test_the_key_is_kept_for_its_user_alone(home: Path) -> None:
    key = signing_keys.get_signing_key("cli")
    file = home / "cursors.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["cursors.key"]
    signing_keys._cached_keys.clear()
    assert signing_keys.get_signing_key("http") == key == file.read_bytes()


def test_half_a_key_is_replaced(home: Path) -> None:
    home.mkdir()
    (home / "cursors.key").write_bytes(b"short")
    key = signing_keys.get_signing_key("cli")
    assert len(key) == 32
    assert (home / "cursors.key").read_bytes() == key


def _key_of(place: str) -> bytes:
    os.environ["TOOLI_STATE_DIR"] = place
    return signing_keys.get_signing_key("cli")


def test_processes_that_start_at_once_agree_on_a_key(home: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(_key_of, [str(home)] * 8))) == 1


def test_a_key_that_is_said_is_shared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_SEAL_KEY", "ours")
    assert signing_keys.get_signing_key("cli") == signing_keys.get_signing_key("http")
    assert not home.exists()


def test_where_nothing_can_be_kept_a_command_line_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(blocked / "below"))
    monkeypatch.delenv("TOOLI_SEAL_KEY", raising=False)
    monkeypatch.setattr(signing_keys, "_cached_keys", {})
    first, server = signing_keys.get_signing_key("cli"), signing_keys.get_signing_key("http")
    signing_keys._cached_keys.clear()
    assert signing_keys.get_signing_key("cli") == first
    assert signing_keys.get_signing_key("http") != server


# ------------------------------------------------------------------ spills


def test_a_result_is_kept_for_its_user_alone(home: Path) -> None:
    path = overflow.write_overflow("app.tool one", [b"[1,", b"2]"])
    assert path is not None
    assert Path(path).read_bytes() == b"[1,2]"
    assert Path(path).parent == home / "results"
    assert Path(path).name.startswith("app-tool-one-")
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_old_results_go(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "MAX_OVERFLOW_FILES", 3)
    paths = []
    for i in range(6):
        path = overflow.write_overflow("t", [b"x" * 10])
        assert path is not None
        os.utime(path, ns=(i, i))
        paths.append(path)
    overflow.write_overflow("t", [b"x"])
    assert sum(map(os.path.exists, paths)) == 2


def test_large_results_drive_others_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "MAX_OVERFLOW_BYTES", 25)
    first = overflow.write_overflow("t", [b"x" * 20])
    assert first is not None
    os.utime(first, ns=(1, 1))
    second = overflow.write_overflow("t", [b"x" * 20])
    assert second is not None
    assert not os.path.exists(first)
    assert os.path.exists(second)


def test_where_the_state_cannot_be_written_it_goes_to_the_temporary_folder(
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
