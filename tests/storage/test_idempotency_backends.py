"""The store of a setting: one per process and address, closed at exit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli.storage import idempotency_backends
from tooli.storage.idempotency_backends import close_at_exit, get_idempotency_store
from tooli.storage.idempotency_postgres import PostgresIdempotencyStore
from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency_backends, "_open_stores", {})


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
    monkeypatch.setattr(idempotency_backends, "_pids_with_exit_hook", [])
    monkeypatch.setattr(idempotency_backends.atexit, "register", hooks.append)
    for _ in range(3):
        close_at_exit()
    assert hooks == [idempotency_backends._close_all]
