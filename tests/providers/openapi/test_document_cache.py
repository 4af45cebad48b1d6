"""The cache of documents: damaged, foreign and missing entries do not exist."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tooli.providers.openapi import document_cache as module
from tooli.providers.openapi.document_cache import content_key, read_entry, write_entry

KEY = content_key("test", b"a", b"b")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state" / "openapi"


def test_keys_depend_on_each_part() -> None:
    others = [
        content_key("test", b"ab"),
        content_key("test", b"a", b"c"),
        content_key("x", b"a", b"b"),
    ]
    assert len({KEY, *others}) == 4


def test_an_entry_is_found_again(state: Path) -> None:
    assert read_entry(KEY, 100) is None
    write_entry(KEY, b"content")
    assert read_entry(KEY, 100) == b"content"
    assert read_entry(KEY, 3) is None
    assert [path.name for path in state.iterdir()] == [KEY]
    if os.name == "posix":
        assert state.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"short", b"0123456789abcdefcontenT"])
def test_a_damaged_entry_does_not_exist(state: Path, damage: bytes) -> None:
    write_entry(KEY, b"content")
    (state / KEY).write_bytes(damage)
    assert read_entry(KEY, 100) is None


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_folder_that_others_can_write_to_is_not_used(state: Path) -> None:
    write_entry(KEY, b"content")
    state.chmod(0o777)
    assert read_entry(KEY, 100) is None
    write_entry(KEY, b"other")
    state.chmod(0o700)
    assert read_entry(KEY, 100) == b"content"


def test_nothing_is_cached_if_the_folder_cannot_be_written(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.parent.mkdir()
    state.write_text("a file")
    write_entry(KEY, b"content")
    assert read_entry(KEY, 100) is None
    monkeypatch.setenv("TOOLI_STATE_DIR", "relative")
    write_entry(KEY, b"content")
    assert read_entry(KEY, 100) is None


def test_a_failed_write_leaves_no_file(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "replace", fail)
        write_entry(KEY, b"content")
    assert list(state.iterdir()) == []


def test_the_oldest_entries_are_deleted(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED_FILES", 3)
    keys = [content_key("test", b"%d" % number) for number in range(5)]
    for age, key in enumerate(keys):
        write_entry(key, b"x")
        os.utime(state / key, (age, age))
    (state / "notes.txt").write_text("of somebody else")
    os.utime(state / "notes.txt", (0, 0))
    write_entry(KEY, b"x")
    left = {path.name for path in state.iterdir()}
    assert KEY in left
    assert "notes.txt" in left
    assert keys[0] not in left
