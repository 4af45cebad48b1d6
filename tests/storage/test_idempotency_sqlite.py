"""The SQLite idempotency store: its file, its locks and damaged databases."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import time
from typing import Any

import pytest

from tooli.storage import idempotency_sqlite, idempotency_store
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


def test_database_is_private(tmp_path: Path) -> None:
    state_dir = tmp_path / "deep" / "state"
    store = SqliteIdempotencyStore(str(state_dir))
    old_mask = os.umask(0)
    try:
        begin(store)
    finally:
        os.umask(old_mask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in state_dir.iterdir()}
    assert len(modes) == 4 and set(modes.values()) == {0o600}
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


@pytest.mark.parametrize("kind", ["garbage", "truncated"])
def test_damaged_database_is_quarantined(tmp_path: Path, kind: str) -> None:
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


def _without_tables(path: Path) -> None:
    path.write_bytes(b"")
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode = WAL")
    base.close()


def _journal_only(path: Path) -> None:
    path.rename(f"{path}-wal")


@pytest.mark.parametrize(
    "damage", [lambda path: path.write_bytes(b""), _without_tables, _journal_only]
)
def test_emptied_database_is_damaged(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """A call that ran must not run again because somebody emptied the database."""
    store = SqliteIdempotencyStore(str(tmp_path))
    store.finish(begin(store).token, "done", b"x")
    store.close()
    damage(Path(store.path))
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as caught:
            begin(store)
        quarantined = caught.value.damaged_path
        assert quarantined is not None
        assert quarantined in caught.value.fix
    assert isinstance(begin(store, can_rerun=True), NewAttempt)
    os.unlink(quarantined)
    assert isinstance(begin(store, KEY.replace(key="other")), NewAttempt)
    store.close()


def test_database_emptied_while_it_is_open_is_damaged(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    store.finish(begin(store).token, "done", b"x")
    (tmp_path / "new").touch()
    os.replace(tmp_path / "new", store.path)
    with pytest.raises(StoreUnavailable) as caught:
        begin(store)
    assert caught.value.damaged_path is not None
    store.close()


def test_incomplete_database_gets_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(draft: str, path: str) -> None:
        raise KeyboardInterrupt

    store = SqliteIdempotencyStore(str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(idempotency_sqlite, "_publish_file", interrupt)
        with pytest.raises(KeyboardInterrupt):
            begin(store)
    assert [path.name for path in tmp_path.iterdir()] == ["idempotency.db.lock"]
    assert isinstance(begin(store), NewAttempt)
    store.close()


@pytest.mark.parametrize("has_links", [True, False])
def test_database_is_created_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    stores = [SqliteIdempotencyStore(str(tmp_path)) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(begin, stores))
    assert sorted(type(result).__name__ for result in results) == [
        *["AlreadyRunning"] * 5,
        "NewAttempt",
    ]
    for store in stores:
        store.close()


def test_replaced_database_is_reopened(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store)
    for path in tmp_path.iterdir():
        path.unlink()
    assert isinstance(begin(store), NewAttempt)
    assert (tmp_path / "idempotency.db").exists()
    store.close()


def test_database_of_another_version_is_rejected(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "idempotency.db")
    base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(StoreUnavailable, match="another version"):
        begin(SqliteIdempotencyStore(str(tmp_path)))


def test_locked_database_times_out(tmp_path: Path) -> None:
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


def test_default_store_is_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "one"))
    store = get_idempotency_store(None)
    assert isinstance(store, SqliteIdempotencyStore)
    assert store.path == str(tmp_path / "one" / "idempotency.db")
    assert get_idempotency_store(None) is store
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "two"))
    assert get_idempotency_store(None) is not store


def test_url_selects_postgres() -> None:
    store = get_idempotency_store("postgresql://127.0.0.1:1/db")
    assert isinstance(store, PostgresIdempotencyStore)
    assert get_idempotency_store("postgresql://127.0.0.1:1/db") is store


def test_exit_hook_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[object] = []
    monkeypatch.setattr(idempotency_sqlite, "_pids_with_exit_hook", [])
    monkeypatch.setattr(idempotency_sqlite.atexit, "register", hooks.append)
    for _ in range(3):
        close_at_exit()
    assert hooks == [idempotency_sqlite._close_all]


def test_stores_of_this_process_are_closed_at_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    store = get_idempotency_store(None)
    assert isinstance(store, SqliteIdempotencyStore)
    begin(store)
    inherited = SqliteIdempotencyStore(str(tmp_path / "other"))
    begin(inherited)
    idempotency_sqlite._open_stores[0, "other"] = inherited
    idempotency_sqlite._close_all()
    assert store._connection is None, "closed"
    assert inherited._connection is not None, "it belongs to another process"
    inherited.close()


# ------------------------------------------------------------------ failures


def test_reading_does_not_create_the_database(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path / "state"))
    assert list(store.entries("shop", 10)) == []
    assert store.forget("shop", "k1") == 0
    assert not (tmp_path / "state").exists()


def test_missing_sqlite_module_makes_store_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_sqlite3", "sqlite3"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(StoreUnavailable, match="without sqlite3"):
        begin(SqliteIdempotencyStore(str(tmp_path)))


def test_thread_lock_times_out(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    with store._lock, pytest.raises(StoreUnavailable) as failure:
        store.begin(KEY, "f", can_rerun=False, durable=True, timeout=0.01)
    assert failure.value.is_busy


def test_close_times_out_while_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency_store, "STORE_TIMEOUT_SECONDS", 0.01)
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store)
    with store._lock:
        store.close()
    assert store._connection is not None
    store.close()
    assert store._connection is None


def test_unopenable_database_is_not_quarantined(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(StoreUnavailable) as failure:
        begin(SqliteIdempotencyStore(str(tmp_path / "state")))
    assert failure.value.damaged_path is None and not failure.value.is_busy
    folder = tmp_path / "folder" / idempotency_sqlite.DATABASE_NAME
    folder.mkdir(parents=True)
    with pytest.raises(StoreUnavailable) as failure:
        begin(SqliteIdempotencyStore(str(folder.parent)))
    assert failure.value.damaged_path is None


def test_failed_statement_does_not_quarantine(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    with pytest.raises(StoreUnavailable) as failure:
        store.execute(lambda connection: connection.execute("SELECT 1", (1, 2)), 1.0)
    assert failure.value.damaged_path is None
    assert isinstance(begin(store), NewAttempt)
    store.close()


def test_busy_database_is_retried(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    failures = [sqlite3.OperationalError("database is locked")] * 2

    def work(connection: Any) -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert store.execute(work, 60.0) == "done"
    store.close()


def test_failed_commit_is_rolled_back() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE child (id REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)"
    )
    with (
        pytest.raises(sqlite3.IntegrityError),
        idempotency_sqlite._start_transaction(connection),
    ):
        connection.execute("INSERT INTO child VALUES (1)")  # checked by COMMIT
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM child").fetchone() == (0,)
    connection.close()


def test_transaction_is_rolled_back_after_an_exception() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE rows (id INTEGER)")
    with pytest.raises(KeyError), idempotency_sqlite._start_transaction(connection):
        connection.execute("INSERT INTO rows VALUES (1)")
        raise KeyError
    with idempotency_sqlite._start_transaction(connection):
        connection.execute("INSERT INTO rows VALUES (2)")
    assert not connection.in_transaction
    assert connection.execute("SELECT id FROM rows").fetchall() == [(2,)]
    connection.close()


def test_inherited_connection_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store)
    connection = store._connection
    assert connection is not None and store._opened_file is not None
    store._opened_file = (store._opened_file[0] + 1, *store._opened_file[1:])
    inherited_connections: list[Any] = []
    monkeypatch.setattr(idempotency_sqlite, "_inherited_connections", inherited_connections)
    assert isinstance(begin(store, KEY.replace(key="k2")), NewAttempt)
    assert inherited_connections == [connection] and store._connection is not connection
    connection.close()
    store.close()


def test_intact_database_is_not_quarantined(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store)
    store.close()
    assert idempotency_sqlite._quarantine_database(store.path) == store.path, "it is intact"
    damaged = tmp_path / f"{idempotency_sqlite.DATABASE_NAME}.damaged-{int(time() * 1000)}"
    damaged.write_bytes(b"x")
    assert idempotency_sqlite._quarantine_database(store.path) == str(damaged)


def test_damaged_database_stays_if_rename_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / idempotency_sqlite.DATABASE_NAME
    path.write_bytes(b"garbage" * 1000)

    def fail(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(idempotency_sqlite.os, "rename", fail)
    monkeypatch.setattr(idempotency_sqlite.FileLock, "__enter__", lambda lock: None)
    assert idempotency_sqlite._quarantine_database(str(path)) == str(path)
    monkeypatch.undo()
    assert path.exists()


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
def test_folder_that_others_can_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    with pytest.raises(StoreUnavailable, match="chmod go-w"):
        get_idempotency_store(None).begin(KEY, "f", can_rerun=True, durable=False, timeout=1.0)
    assert os.listdir(tmp_path / "state") == []


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
def test_existing_database_in_such_a_folder_is_refused(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    begin(store)
    store.close()
    tmp_path.chmod(0o777)
    with pytest.raises(StoreUnavailable, match="chmod go-w"):
        begin(SqliteIdempotencyStore(str(tmp_path)))


def test_drafts_of_killed_processes_are_deleted(tmp_path: Path) -> None:
    store = SqliteIdempotencyStore(str(tmp_path))
    name = os.path.basename(store.path)
    drafts = [f"{name}.new-12-0123abcd{suffix}" for suffix in ("", "-wal", "-shm")]
    kept = [f"{name}.new-12-0123abcd.bak", f"{name}.new-x-0123abcd", f"{name}.new", "notes"]
    for file in (*drafts, *kept):
        (tmp_path / file).touch()
    begin(store)
    store.close()
    assert set(kept) <= set(os.listdir(tmp_path))
    assert not set(drafts) & set(os.listdir(tmp_path))
