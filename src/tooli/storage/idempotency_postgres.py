"""The ledger of a fleet: one table of a Postgres server, for processes on many machines.

`INSERT … ON CONFLICT` decides who is first. An owner on another machine cannot be looked at,
so each holds a lease by the server's own clock, renewed while it runs; a lease that ran out
is taken for a death.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

from tooli.storage.idempotency_store import (
    MAX_PURGED_ENTRIES,
    RETENTION_SECONDS,
    STORE_TIMEOUT_SECONDS,
    UNFINISHED_RETENTION_SECONDS,
    AttemptToken,
    IdempotencyEntry,
    IdempotencyStore,
    NewAttempt,
    ScopedKey,
    StoreUnavailable,
    check_not_running,
    evaluate_entry,
    generate_attempt_id,
)
from tooli.storage.process_identity import current_process

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from tooli.storage.idempotency_store import BeginResult

    T = TypeVar("T")

LEASE_SECONDS = 60.0
"""Seconds for which an owner is taken to be alive; renewed three times meanwhile."""
_CONNECTION_DEFAULTS = {
    "application_name": "tooli",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""A network that is gone is noticed within some ten seconds, unless the address says otherwise."""

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
_ADVISORY_LOCK_ID = 0x746F6F6C69  # only one process at a time makes the table
_COLUMNS = """
tool, principal, key, fingerprint, state, owner, attempt, extract(epoch FROM started)::float8,
{outcome}, extract(epoch FROM ended)::float8, lease < clock_timestamp(),
extract(epoch FROM clock_timestamp())::float8
"""
_COLUMNS_WITHOUT_OUTCOME = _COLUMNS.format(outcome="''::bytea")
_WHERE_KEY = "WHERE tool = %s AND principal = %s AND key = %s"
_APP_FILTER = "(tool = %s OR starts_with(tool, %s))"
_INSERT = """
INSERT INTO tooli_keys (tool, principal, key, fingerprint, state, owner, attempt, started, lease)
VALUES (%s, %s, %s, %s, 'running', %s, %s, clock_timestamp(),
        clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (tool, principal, key) DO
"""
_INSERT_IF_ABSENT = _INSERT + "NOTHING RETURNING extract(epoch FROM started)::float8"
_TAKE_OVER = (
    _INSERT
    + """
UPDATE SET fingerprint = excluded.fingerprint, state = 'running', owner = excluded.owner,
    attempt = excluded.attempt, started = excluded.started, ended = NULL, lease = excluded.lease,
    outcome = ''::bytea
WHERE tooli_keys.attempt = %s AND tooli_keys.state = %s
RETURNING extract(epoch FROM started)::float8
"""
)
_PURGE = f"""
DELETE FROM tooli_keys WHERE (tool, principal, key) IN (
    SELECT tool, principal, key FROM tooli_keys
    WHERE coalesce(ended, started) < clock_timestamp() - make_interval(secs => {RETENTION_SECONDS})
      AND (state = 'done'
           OR coalesce(ended, started) < clock_timestamp() - make_interval(secs => {UNFINISHED_RETENTION_SECONDS}))
    ORDER BY coalesce(ended, started) LIMIT {MAX_PURGED_ENTRIES} FOR UPDATE SKIP LOCKED)
"""


class PostgresIdempotencyStore(IdempotencyStore):
    """Keys in a table of a database that many machines reach."""

    def __init__(self, url: str, *, lease: float = LEASE_SECONDS) -> None:
        self._url = url
        self._lease = lease
        self._lock = allocate_lock()
        self._connection: Any = None
        self._pid = 0
        self._leased_attempts: set[str] = set()  # attempts whose lease is to be renewed
        self._renewal_lock = allocate_lock()  # around what decides whether somebody renews them
        self._renewal_thread: Any = None
        self._statement_timeout = STORE_TIMEOUT_SECONDS

    # -------------------------------------------------------------- what a ledger does

    def begin(
        self,
        scoped_key: ScopedKey,
        fingerprint: str,
        *,
        can_rerun: bool,
        durable: bool,
        timeout: float,
        require_intact: bool = True,
    ) -> BeginResult:
        """Enter a call, unless the key is taken."""
        token = AttemptToken(scoped_key, generate_attempt_id(), durable, timeout)
        attempt_values = (fingerprint, current_process(), token.attempt, self._lease)

        def work(connection: Any) -> BeginResult:
            while True:
                found = _find_entry(connection, scoped_key)
                if found is None:
                    entered = connection.execute(
                        _INSERT_IF_ABSENT, (*scoped_key.columns, *attempt_values)
                    ).fetchone()
                    if entered is None:
                        continue  # somebody was faster
                    if token.attempt[0] == "0":  # now and then
                        connection.execute(_PURGE)
                    return NewAttempt(token, entered[0])
                entry, now = found
                if entry.attempt == token.attempt:  # the connection broke after it was entered
                    return NewAttempt(token, entry.started)
                answer = evaluate_entry(entry, fingerprint, can_rerun, now)
                if answer is not None:
                    return answer
                stale = (entry.attempt, entry.state)
                entered = connection.execute(
                    _TAKE_OVER, (*scoped_key.columns, *attempt_values, *stale)
                ).fetchone()
                if entered is not None:
                    return NewAttempt(token, entered[0])

        answer = self._execute(work, timeout)
        if isinstance(answer, NewAttempt):
            self._start_lease(token.attempt)
        return answer

    def finish(self, token: AttemptToken, state: str, outcome: bytes) -> bool:
        """Settle an entry; False where somebody else has taken it over meanwhile."""

        def work(connection: Any) -> bool:
            done = connection.execute(
                "UPDATE tooli_keys SET state = %s, outcome = %s, ended = clock_timestamp() "
                f"{_WHERE_KEY} AND attempt = %s",
                (state, outcome, *token.scoped_key.columns, token.attempt),
            )
            return done.rowcount > 0

        try:
            return self._execute(work, token.timeout)
        finally:
            self._leased_attempts.discard(token.attempt)

    def release(self, token: AttemptToken) -> None:
        """Take an entry back."""
        self._leased_attempts.discard(token.attempt)
        key_values = (*token.scoped_key.columns, token.attempt)
        self._execute(
            lambda connection: connection.execute(
                f"DELETE FROM tooli_keys {_WHERE_KEY} AND attempt = %s", key_values
            ),
            token.timeout,
        )

    def entries(
        self, app: str, limit: int, *, unfinished_only: bool = False
    ) -> Iterator[IdempotencyEntry]:
        """What is kept for an app, the newest first."""
        condition = f"{_APP_FILTER} AND state <> 'done'" if unfinished_only else _APP_FILTER

        def work(connection: Any) -> list[IdempotencyEntry]:
            rows = connection.execute(
                f"SELECT {_COLUMNS_WITHOUT_OUTCOME} FROM tooli_keys WHERE {condition} ORDER BY started DESC LIMIT %s",
                (app, f"{app}.", limit),
            )
            return [_entry_from_row(row)[0] for row in rows]

        return iter(self._execute(work, STORE_TIMEOUT_SECONDS))

    def forget(
        self, app: str, key: str, tool: str | None = None, *, include_running: bool = False
    ) -> int:
        """Drop a key of an app, or of one tool."""
        condition = f"WHERE key = %s AND coalesce(tool = %s::text, true) AND {_APP_FILTER}"
        values = (key, tool, app, f"{app}.")

        def work(connection: Any) -> int:
            with connection.transaction():
                if not include_running:
                    rows = connection.execute(
                        f"SELECT {_COLUMNS_WITHOUT_OUTCOME} FROM tooli_keys {condition} FOR UPDATE",
                        values,
                    )
                    for entry, now in map(_entry_from_row, rows):
                        check_not_running(entry, now)
                return connection.execute(f"DELETE FROM tooli_keys {condition}", values).rowcount

        return self._execute(work, STORE_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Let go of the connection, unless a call is still running."""
        if not self._leased_attempts and self._lock.acquire(timeout=STORE_TIMEOUT_SECONDS):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    # -------------------------------------------------------------- a connection

    def _execute(self, work: Callable[[Any], T], timeout: float) -> T:
        """Work on the database; once more where an old connection turns out to be dead."""
        psycopg = _load_psycopg()
        deadline = monotonic() + timeout  # for all of it: the threads of this process, and others
        if not self._lock.acquire(timeout=timeout):
            reason = "The store of idempotency keys is busy for too long."
            raise StoreUnavailable(reason, "Try again.", is_busy=True)
        try:
            remaining = max(
                0.1, int((deadline - monotonic()) * 10 + 0.99) / 10
            )  # seldom another number
            was_connected = self._connection is not None and self._pid == os.getpid()
            try:
                return work(self._connect(psycopg, remaining))
            except psycopg.OperationalError as failure:
                self._disconnect()
                if not was_connected or isinstance(
                    failure, psycopg.errors.QueryCanceled
                ):  # it took too long
                    raise
                return work(self._connect(psycopg, remaining))
        except psycopg.Error as failure:
            self._disconnect()
            raise self._make_unusable_error(failure) from None  # the cause may hold the password
        finally:
            self._lock.release()

    def _connect(self, psycopg: Any, timeout: float) -> Any:
        if self._connection is not None and self._pid == os.getpid():
            self._set_timeout(self._connection, timeout)
            return self._connection
        if self._pid != os.getpid():
            self._leased_attempts, self._renewal_thread = (
                set(),
                None,
            )  # a fork: the parent renews its own
            self._renewal_lock = allocate_lock()
        options = {**_CONNECTION_DEFAULTS, "connect_timeout": str(max(2, int(timeout)))}
        options = {name: value for name, value in options.items() if f"{name}=" not in self._url}
        connection = psycopg.connect(self._url, autocommit=True, **options)
        try:
            self._set_timeout(connection, timeout, is_new=True)
            if connection.execute("SELECT to_regclass('tooli_keys')").fetchone()[0] is None:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK_ID,))
                    connection.execute(_CREATE_TABLE)
                    connection.execute(_CREATE_INDEX)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def _set_timeout(self, connection: Any, timeout: float, *, is_new: bool = False) -> None:
        if is_new or self._statement_timeout != timeout:
            connection.execute(f"SET statement_timeout = {int(timeout * 1000)}")
            self._statement_timeout = timeout

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._pid == os.getpid():
            connection.close()

    def _make_unusable_error(self, failure: Exception) -> StoreUnavailable:
        message = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
        message = redact_password(message, self._url)
        return StoreUnavailable(
            f"The store of idempotency keys cannot be used: {message}",
            "See whether the server of the setting `store` runs and takes this user, then try "
            "again.",
        )

    # -------------------------------------------------------------- leases

    def _start_lease(self, attempt: str) -> None:
        """Renew the lease of an attempt until it is settled."""
        from threading import Thread

        with self._renewal_lock:
            self._leased_attempts.add(attempt)
            if self._renewal_thread is None:
                self._renewal_thread = Thread(
                    target=self._renew_leases, name="tooli-leases", daemon=True
                )
                self._renewal_thread.start()

    def _renew_leases(self) -> None:
        from threading import Event

        timer = Event()  # never set: only time passes
        while True:
            timer.wait(self._lease / 3)
            with self._renewal_lock:  # whoever holds something from now on starts another thread
                attempts = list(self._leased_attempts)
                if not attempts:
                    self._renewal_thread = None
                    return
            try:
                self._execute(
                    lambda connection, held=attempts: connection.execute(
                        "UPDATE tooli_keys SET lease = clock_timestamp() + "
                        "make_interval(secs => %s) WHERE attempt = ANY(%s) AND state = 'running'",
                        (self._lease, held),
                    ),
                    self._lease / 3,
                )
            except StoreUnavailable:
                continue  # the server may come back before the lease has run out


def _load_psycopg() -> Any:
    try:
        import psycopg
    except ImportError as missing:
        raise StoreUnavailable(
            f"Keys are to be kept in Postgres, and psycopg cannot be loaded ({missing}).",
            "Install it: pip install 'tooli[postgres]'",
        ) from missing
    return psycopg


def redact_password(text: str, url: str) -> str:
    """A text in which the password of an address does not stand, nor the address itself."""
    from urllib.parse import unquote

    text = text.replace(url, redact_url(url))
    for secret in _find_secrets(url):
        for form in (secret, unquote(secret)):
            text = text.replace(form, "…")
    return text


def redact_url(url: str) -> str:
    """An address as anybody may see it."""
    for secret in _find_secrets(url):
        url = url.replace(f":{secret}@", ":…@").replace(f"={secret}", "=…")
    return url


def _find_secrets(url: str) -> list[str]:
    rest = url.partition("://")[2]
    query = rest.partition("?")[2].split("&")
    found = [part.partition("=")[2] for part in query if "pass" in part.partition("=")[0]]
    user = rest.partition("?")[0].rpartition("@")[0]
    return [secret for secret in (*found, user.partition(":")[2]) if secret]


# ------------------------------------------------------------------ rows


def _find_entry(connection: Any, scoped_key: ScopedKey) -> tuple[IdempotencyEntry, float] | None:
    columns = _COLUMNS.format(outcome="outcome")
    row = connection.execute(
        f"SELECT {columns} FROM tooli_keys {_WHERE_KEY}", scoped_key.columns
    ).fetchone()
    return None if row is None else _entry_from_row(row)


def _entry_from_row(row: Any) -> tuple[IdempotencyEntry, float]:
    """An entry, and what time it is there."""
    tool, principal, key, fingerprint, state, owner, attempt, started, outcome = row[:9]
    ended, lease_expired, now = row[9:]
    scoped_key = ScopedKey(tool, principal, key)
    entry = IdempotencyEntry(
        scoped_key,
        fingerprint,
        state,
        owner,
        attempt,
        started,
        bytes(outcome),
        ended,
        lease_expired,
    )
    return entry, now
