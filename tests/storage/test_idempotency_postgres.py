"""The Postgres idempotency store: leases, connections and passwords."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tooli.storage.idempotency_postgres import PostgresIdempotencyStore, redact_password
from tooli.storage.idempotency_store import (
    AttemptToken,
    IdempotencyStore,
    ScopedKey,
    StoredReplay,
    StoreUnavailable,
)

KEY = ScopedKey("shop.pay", "", "k1")


def token(attempt: str) -> AttemptToken:
    return AttemptToken(KEY, attempt)


def begin(store: IdempotencyStore, key: ScopedKey = KEY, can_rerun: bool = False) -> Any:
    return store.begin(
        key, "f", can_rerun=can_rerun, require_intact=not can_rerun, durable=True, timeout=10.0
    )


def test_lease_is_renewed_while_call_runs(postgres_server: str) -> None:
    import psycopg

    store = PostgresIdempotencyStore(postgres_server, lease=0.6)
    key = KEY.replace(key=os.urandom(4).hex())
    token = begin(store, key).token
    with psycopg.connect(postgres_server, autocommit=True) as base:
        leases: set[Any] = set()
        while len(leases) < 4:
            leases |= set(
                base.execute("SELECT lease FROM tooli_keys WHERE key = %s", (key.key,)).fetchall()
            )
        thread = store._renewal_thread
        assert store.finish(token, "done", b"x")
    thread.join(10)
    assert not thread.is_alive()
    store.close()


def test_attempt_started_while_renewal_thread_ends_is_renewed() -> None:
    store = PostgresIdempotencyStore("postgresql://127.0.0.1:1/none", lease=0.003)
    renewed, wait = threading.Event(), 60
    store.execute = lambda work, timeout: renewed.set()  # type: ignore[method-assign]

    class LeasedAttempts(set[str]):
        """A set that starts an attempt in another thread when it is read while empty."""

        starter: threading.Thread | None = None

        def __iter__(self) -> Iterator[str]:
            found = list(set.__iter__(self))
            if not found and self.starter is None:
                starter = threading.Thread(target=store._attempt_started, args=(token("second"),))
                starter.start()
                self.starter = starter
                while "second" not in self and not store._renewal_lock.locked():
                    pass
            return iter(found)

    attempts = store._leased_attempts = LeasedAttempts()
    store._attempt_started(token("first"))
    attempts.discard("first")
    while attempts.starter is None:
        threading.Event().wait(0.001)
    attempts.starter.join(wait)
    renewed.clear()
    assert renewed.wait(wait)
    thread = store._renewal_thread
    attempts.discard("second")
    thread.join(wait)
    assert not thread.is_alive()


def test_connection_options_detect_a_lost_network(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    calls: list[dict[str, Any]] = []

    def connect(address: str, **options: Any) -> None:
        calls.append(options)
        raise psycopg.OperationalError("no")

    monkeypatch.setattr(psycopg, "connect", connect)
    for more in ("", "?tcp_user_timeout=500&connect_timeout=3"):
        with pytest.raises(StoreUnavailable):
            begin(PostgresIdempotencyStore(f"postgresql://127.0.0.1:1/none{more}"))
    assert calls[0]["connect_timeout"] == "10" and calls[0]["tcp_user_timeout"] == "10000"
    assert calls[1]["keepalives"] == calls[0]["keepalives"] == "1"
    assert not {"connect_timeout", "tcp_user_timeout"} & calls[1].keys()


def test_lost_connection_is_reopened(postgres_server: str) -> None:
    import psycopg

    store = PostgresIdempotencyStore(postgres_server)
    key = KEY.replace(key=os.urandom(4).hex())
    token = begin(store, key).token
    with psycopg.connect(postgres_server, autocommit=True) as base:
        cut = "SELECT pg_terminate_backend(%s)"
        base.execute(cut, (store._connection.info.backend_pid,))
        assert store.finish(token, "done", b"x")
        base.execute(cut, (store._connection.info.backend_pid,))
    assert isinstance(begin(store, key), StoredReplay)
    store.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://tooli:pa%24word@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=tooli&password=pa%24word",
        "postgresql://tooli:pa%24word@[bad/db",
        "postgresql://tooli:pa%24word@127.0.0.1:1/db?nonsense=1",
    ],
)
def test_errors_do_not_contain_the_password(address: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        begin(PostgresIdempotencyStore(address))
    text = f"{caught.value.reason} {caught.value.fix} {caught.value.__cause__}"
    assert "pa%24word" not in text and "pa$word" not in text
    assert caught.value.reason.startswith("The idempotency store cannot be used: ")


def test_password_is_removed_from_message() -> None:
    address = "postgresql://u:s%40crt@h/db?sslpassword=hush"
    redacted = redact_password(f"bad {address}: s@crt s%40crt hush", address)
    assert redacted == "bad postgresql://u:…@h/db?sslpassword=…: … … …"


def test_error_without_psycopg_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnavailable) as caught:
        begin(PostgresIdempotencyStore("postgresql://h/db"))
    assert "pip install 'tooli[postgres]>=7.0a1'" in caught.value.fix
