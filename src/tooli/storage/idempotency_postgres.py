"""The idempotency store for several machines: one table on a Postgres server.

A process cannot check whether a process on another machine is alive. So each running call holds a
lease, measured by the clock of the server, and renews it. A call whose lease has expired counts as
stopped.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from threading import Event, Thread
from urllib.parse import unquote

from tooli.storage.idempotency_store import (
    IdempotencyStore,
    SqlDialect,
    StoreUnavailable,
    seconds_until,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from tooli.storage.idempotency_store import AttemptToken, SqlConnection

    T = TypeVar("T")

LEASE_SECONDS = 60.0
"""Lifetime of a lease in seconds. Leases are renewed after a third of this time."""
_CONNECTION_DEFAULTS = {
    "application_name": "tooli",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Connection options that the URL can override. They detect a lost network in about ten seconds."""

_CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS tooli_keys (
    tool text NOT NULL, principal text NOT NULL, key text NOT NULL,
    fingerprint text NOT NULL, state text NOT NULL, owner text NOT NULL, attempt text NOT NULL,
    started timestamptz NOT NULL, ended timestamptz, lease timestamptz NOT NULL,
    outcome bytea NOT NULL DEFAULT ''::bytea, PRIMARY KEY (tool, principal, key))
"""
_CREATE_INDEX = (
    "CREATE INDEX IF NOT EXISTS tooli_keys_by_end ON tooli_keys (coalesce(ended, started))"
)
_ADVISORY_LOCK_ID = 0x746F6F6C69  # held while a process creates the table
_INTERVAL = "make_interval(secs => {})"
_DIALECT = SqlDialect(
    table="tooli_keys",
    session_table="tooli_sessions",
    parameter="%s",
    now="clock_timestamp()",
    timestamp="to_timestamp({})",
    epoch="extract(epoch FROM {})::float8",
    interval=_INTERVAL,
    empty_bytes="''::bytea",
    set_timeout="SET statement_timeout = {}",
    for_update=" FOR UPDATE",
    for_purge=" FOR UPDATE SKIP LOCKED",
)
_RENEW_LEASES = (
    f"UPDATE tooli_keys SET lease = clock_timestamp() + {_INTERVAL.format('%s')} "
    "WHERE attempt = ANY(%s) AND state = 'running'"
)


class PostgresIdempotencyStore(IdempotencyStore):
    """Idempotency keys in a database that several machines share."""

    def __init__(self, url: str, *, lease: float = LEASE_SECONDS) -> None:
        lease_end = f"clock_timestamp() + {_INTERVAL.format(lease)}"
        super().__init__(_DIALECT.replace(lease=lease_end))
        self._url = url
        self._lease = lease
        self._pid = 0
        self._leased_attempts: set[str] = set()
        self._renewal_lock = allocate_lock()  # guards the decision to start or end the thread
        self._renewal_thread: Thread | None = None

    def _attempt_started(self, token: AttemptToken) -> None:
        """Renew the lease of the attempt until it is finished."""
        with self._renewal_lock:
            self._leased_attempts.add(token.attempt)
            if self._renewal_thread is None:
                self._renewal_thread = Thread(
                    target=self._renew_leases, name="tooli-leases", daemon=True
                )
                self._renewal_thread.start()

    def finish(self, token: AttemptToken, state: str, outcome: bytes) -> bool:
        """Finish an entry and end its lease."""
        try:
            return super().finish(token, state, outcome)
        finally:
            self._leased_attempts.discard(token.attempt)

    def release(self, token: AttemptToken) -> None:
        """Delete an entry and end its lease."""
        self._leased_attempts.discard(token.attempt)
        super().release(token)

    def close(self) -> None:
        """Close the connection, unless a call is running."""
        if not self._leased_attempts:
            super().close()

    # -------------------------------------------------------------- connection

    def _load_driver(self) -> Any:
        try:
            import psycopg
        except ImportError as missing:
            raise StoreUnavailable(
                "The idempotency store in Postgres needs psycopg, which cannot be loaded: "
                f"{missing}.",
                "Run: pip install 'tooli[postgres]>=7.0a1'",
            ) from missing
        return psycopg

    def _run(self, driver: Any, work: Callable[[SqlConnection], T], deadline: float) -> T:
        """Run some work on the connection. If a reused connection fails, retry with a new one."""
        timeout = seconds_until(deadline)
        was_connected = self._connection is not None and self._pid == os.getpid()
        try:
            try:
                return work(self._connect(driver, timeout))
            except driver.OperationalError as failure:
                self._disconnect()
                timed_out = isinstance(failure, driver.errors.QueryCanceled)
                if not was_connected or timed_out:
                    raise
                return work(self._connect(driver, timeout))
        except driver.Error as failure:
            self._disconnect()
            # Without the cause: its message may contain the password.
            raise self._make_unusable_error(failure) from None

    def _connect(self, driver: Any, timeout: float) -> SqlConnection:
        if self._connection is not None and self._pid == os.getpid():
            self._set_timeout(self._connection, timeout)
            return self._connection
        if self._pid != os.getpid():  # after a fork: the parent renews its own leases
            self._leased_attempts, self._renewal_thread = set(), None
            self._renewal_lock = allocate_lock()
        options = {**_CONNECTION_DEFAULTS, "connect_timeout": str(max(2, int(timeout)))}
        options = {name: value for name, value in options.items() if f"{name}=" not in self._url}
        connection = driver.connect(self._url, autocommit=True, **options)
        try:
            self._connection_timeout = None
            self._set_timeout(connection, timeout)
            self.create_table(connection, "tooli_keys", _CREATE_TABLE, _CREATE_INDEX)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def create_table(self, connection: Any, table: str, *statements: str) -> None:
        """Create a table if it does not exist."""
        if connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()[0] is None:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK_ID,))
                for statement in statements:
                    connection.execute(statement)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._pid == os.getpid():
            connection.close()

    def _transaction(self, connection: Any) -> AbstractContextManager[object]:
        return connection.transaction()

    def _make_unusable_error(self, failure: Exception) -> StoreUnavailable:
        message = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
        message = redact_password(message, self._url)
        return StoreUnavailable(
            f"The idempotency store cannot be used: {message}",
            "Check that the server of the setting `store` runs and accepts this user, then try "
            "again.",
        )

    # -------------------------------------------------------------- leases

    def _renew_leases(self) -> None:
        timer = Event()  # never set; wait() is used as a sleep
        while True:
            timer.wait(self._lease / 3)
            with self._renewal_lock:  # an attempt that starts later starts another thread
                attempts = list(self._leased_attempts)
                if not attempts:
                    self._renewal_thread = None
                    return
            values = (self._lease, attempts)
            try:
                self.execute(
                    lambda connection, values=values: connection.execute(_RENEW_LEASES, values),
                    self._lease / 3,
                )
            except StoreUnavailable:
                continue  # the server may come back before the lease expires


def redact_password(text: str, url: str) -> str:
    """Return a text without the passwords of a URL."""
    text = text.replace(url, redact_url(url))
    for secret in _find_secrets(url):
        for form in (secret, unquote(secret)):
            text = text.replace(form, "…")
    return text


def redact_url(url: str) -> str:
    """Return a URL without its passwords."""
    for secret in _find_secrets(url):
        url = url.replace(f":{secret}@", ":…@").replace(f"={secret}", "=…")
    return url


def _find_secrets(url: str) -> list[str]:
    rest = url.partition("://")[2]
    query = rest.partition("?")[2].split("&")
    found = [
        part.partition("=")[2]
        for part in query
        if "pass" in unquote(part.partition("=")[0]).lower()
    ]
    user = rest.partition("?")[0].rpartition("@")[0]
    return [secret for secret in (*found, user.partition(":")[2]) if secret]
