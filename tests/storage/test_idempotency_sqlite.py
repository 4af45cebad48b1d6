"""The SQLite idempotency store: its file, its locks and damaged databases."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tooli.storage import idempotency_sqlite
from tooli.storage.idempotency_postgres import PostgresIdempotencyStore
from tooli.storage.idempotency_sqlite import (
    SqliteIdempotencyStore,
    close_at_exit,
    get_idempotency_store,
)
from tooli.storage.idempotency_store import (
    IdempotencyStore,
    NewAttempt,
    ScopedKey,
    StoreUnavailable,
)

KEY = ScopedKey("shop.pay", "", "k1")


def begin(store: IdempotencyStore, key: ScopedKey = KEY, can_rerun: bool = False) -> Any:
    return store.begin(
        key, "f", can_rerun=can_rerun, require_intact=not can_rerun, durable=True, timeout=10.0
    )


def test_only_its_user_can_read_the_database(tmp_path: Path) -> None:
    state_dir = tmp_path / "deep" / "state"
    store = SqliteIdempotencyStore(str(state_dir))
    old_mask = os.umask(0)
    try:
        begin(store)
    finally:
        os.umask(old_mask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in state_dir.iterdir()}
    assert len(modes) == 3 and set(modes.values()) == {0o600}
    assert state_dir.stat().st_mode & 0o777 == 0o700
    store.close()


def test_durable_entries_are_synced(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store)
    assert store._connection is not None
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.begin(KEY.replace(key="r"), "f", can_rerun=True, durable=False, timeout=1.0)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (1,)
    store.close()


@pytest.mark.parametrize("kind", ["garbage", "torn"])
def test_a_damaged_database_is_quarantined(tmp_path: Path, kind: str) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    for number in range(50):
        token = begin(store, KEY.replace(key=f"k{number}")).token
        store.finish(token, "done", b"x" * 3000)
    store.close()
    data = bytearray(Path(store.path).read_bytes())
    if kind == "garbage":
        data[:4096] = b"no database at all" + b"\0" * 4078
    else:
        data[4096:] = os.urandom(len(data) - 4096)
    Path(store.path).write_bytes(data)
    with pytest.raises(StoreUnavailable) as caught:
        begin(store)
    quarantined = caught.value.damaged_path
    assert quarantined is not None and Path(quarantined).read_bytes() == data
    assert quarantined in caught.value.fix
    # The new database does not have the keys of the damaged one.
    with pytest.raises(StoreUnavailable) as caught:
        begin(store)
    assert caught.value.damaged_path == quarantined
    assert isinstance(begin(store, can_rerun=True), NewAttempt)
    os.unlink(quarantined)
    assert isinstance(begin(store, KEY.replace(key="k7")), NewAttempt)
    store.close()


def test_a_replaced_database_is_reopened(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store)
    for path in tmp_path.iterdir():
        path.unlink()
    assert isinstance(begin(store), NewAttempt)
    assert (tmp_path / "idempotency.db").exists()
    store.close()


def test_a_database_of_another_version_is_not_changed(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "idempotency.db")
    base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(StoreUnavailable, match="another version"):
        begin(SqliteIdempotencyStore(str(tmp_path)))


def test_waiting_for_a_lock_ends(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store, KEY.replace(key="first"))
    base = sqlite3.connect(store.path, isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="in use"):
        store.begin(KEY, "f", can_rerun=False, durable=True, timeout=0.2)
    base.execute("ROLLBACK")
    base.close()
    assert isinstance(begin(store), NewAttempt)
    store.close()


# ------------------------------------------------------------------ idempotency backends


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency_sqlite, "_open_stores", {})


def test_the_store_of_a_user_is_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "one"))
    store = get_idempotency_store(None)
    assert isinstance(store, SqliteIdempotencyStore)
    assert store.path == str(tmp_path / "one" / "idempotency.db")
    assert get_idempotency_store(None) is store
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "two"))
    assert get_idempotency_store(None) is not store


def test_a_url_is_postgres() -> None:
    store = get_idempotency_store("postgresql://127.0.0.1:1/db")
    assert isinstance(store, PostgresIdempotencyStore)
    assert get_idempotency_store("postgresql://127.0.0.1:1/db") is store


def test_the_exit_hook_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[object] = []
    monkeypatch.setattr(idempotency_sqlite, "_pids_with_exit_hook", [])
    monkeypatch.setattr(idempotency_sqlite.atexit, "register", hooks.append)
    for _ in range(3):
        close_at_exit()
    assert hooks == [idempotency_sqlite._close_all]
