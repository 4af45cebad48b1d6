"""The ledger of one user on one machine: a SQLite database that only they read.

A key is looked up without a lock; only who seems to be the first takes one, looks again, and
writes. The database is never repaired: one that cannot be read is set aside, and as long as
that was not long ago, nobody who must run but once relies on the new one.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic, sleep, time

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
from tooli.storage.quarantine import (
    find_recent_quarantine,
    is_busy,
    load_sqlite,
    make_damaged_error,
    make_quarantined_error,
    quarantine_database,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sqlite3 import Connection
    from typing import Any, TypeVar

    from tooli.storage.idempotency_store import BeginResult

    T = TypeVar("T")

DATABASE_NAME = "idempotency.db"
_SCHEMA_VERSION = 1
_CREATE_TABLE = (
    "CREATE TABLE keys (tool TEXT NOT NULL, principal TEXT NOT NULL, key TEXT NOT NULL, "
    "fingerprint TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL, attempt TEXT NOT NULL, "
    "started REAL NOT NULL, ended REAL, outcome BLOB NOT NULL DEFAULT x'', "
    "PRIMARY KEY (tool, principal, key))"
)
_COLUMNS = "tool, principal, key, fingerprint, state, owner, attempt, started, outcome, ended"
_COLUMNS_WITHOUT_OUTCOME = _COLUMNS.replace("outcome", "x''")
_APP_FILTER = "(tool = ? OR substr(tool, 1, length(?)) = ?)"
_WHERE_KEY = "WHERE tool = ? AND principal = ? AND key = ?"
_inherited_connections: list[
    Any
] = []  # connections of a parent process: to close them would drop its locks


class SqliteIdempotencyStore(IdempotencyStore):
    """Keys in a file below the folder of a user's state."""

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self.path = os.path.join(state_dir, DATABASE_NAME)
        self._lock = allocate_lock()
        self._connection: Connection | None = None
        self._opened_file: tuple[int, int, int] | None = None  # by which process; which file
        self._durable: bool | None = None
        self._busy_timeout = STORE_TIMEOUT_SECONDS
        self._quarantined_path: str | None = None

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

        def work(connection: Connection) -> BeginResult:
            found = _evaluate_key(connection, scoped_key, fingerprint, can_rerun)
            if found is not None:
                return found
            if self._quarantined_path is not None and require_intact:
                self._quarantined_path = find_recent_quarantine(self.path)
                if self._quarantined_path is not None:
                    raise make_quarantined_error(self._quarantined_path)
            self._set_durability(connection, durable)
            with _WriteTransaction(connection):
                found = _evaluate_key(connection, scoped_key, fingerprint, can_rerun)
                if found is not None:
                    return found
                token = AttemptToken(scoped_key, generate_attempt_id(), durable, timeout)
                return NewAttempt(token, _insert_running(connection, token, fingerprint))

        return self._execute(work, timeout)

    def finish(self, token: AttemptToken, state: str, outcome: bytes) -> bool:
        """Settle an entry; False where somebody else has taken it over meanwhile."""

        def work(connection: Connection) -> bool:
            self._set_durability(connection, token.durable)
            with _WriteTransaction(connection):
                done = connection.execute(
                    f"UPDATE keys SET state = ?, outcome = ?, ended = ? {_WHERE_KEY} AND attempt = ?",
                    (state, outcome, time(), *token.scoped_key.columns, token.attempt),
                )
                return done.rowcount > 0

        return self._execute(work, token.timeout)

    def release(self, token: AttemptToken) -> None:
        """Take an entry back."""

        def work(connection: Connection) -> None:
            with _WriteTransaction(connection):
                connection.execute(
                    f"DELETE FROM keys {_WHERE_KEY} AND attempt = ?",
                    (*token.scoped_key.columns, token.attempt),
                )

        self._execute(work, token.timeout)

    def entries(
        self, app: str, limit: int, *, unfinished_only: bool = False
    ) -> Iterator[IdempotencyEntry]:
        """What is kept for an app, the newest first."""
        condition = f"{_APP_FILTER} AND state <> 'done'" if unfinished_only else _APP_FILTER

        def work(connection: Connection) -> list[IdempotencyEntry]:
            rows = connection.execute(
                f"SELECT {_COLUMNS_WITHOUT_OUTCOME} FROM keys WHERE {condition} ORDER BY started DESC LIMIT ?",
                (app, f"{app}.", f"{app}.", limit),
            )
            return [_entry_from_row(row) for row in rows]

        return iter(self._execute(work, STORE_TIMEOUT_SECONDS) if os.path.exists(self.path) else ())

    def forget(
        self, app: str, key: str, tool: str | None = None, *, include_running: bool = False
    ) -> int:
        """Drop a key of an app, or of one tool."""
        condition = f"WHERE key = ? AND coalesce(tool = ?, 1) AND {_APP_FILTER}"
        values = (key, tool, app, f"{app}.", f"{app}.")

        def work(connection: Connection) -> int:
            self._set_durability(connection, True)
            with _WriteTransaction(connection):
                if not include_running:
                    for row in connection.execute(
                        f"SELECT {_COLUMNS_WITHOUT_OUTCOME} FROM keys {condition}", values
                    ).fetchall():
                        check_not_running(_entry_from_row(row), time())
                return connection.execute(f"DELETE FROM keys {condition}", values).rowcount

        return self._execute(work, STORE_TIMEOUT_SECONDS) if os.path.exists(self.path) else 0

    def close(self) -> None:
        """Let go of the database."""
        if self._lock.acquire(timeout=STORE_TIMEOUT_SECONDS):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    # -------------------------------------------------------------- a connection

    def _execute(self, work: Callable[[Connection], T], timeout: float) -> T:
        """Work on the database, whatever may be wrong with it."""
        try:
            sqlite3 = load_sqlite()
        except ImportError:
            raise StoreUnavailable(
                "This Python has no sqlite3.", "Set `store` to a postgresql:// address."
            ) from None
        deadline = monotonic() + timeout  # for all of it: the threads of this process, and others
        if not self._lock.acquire(timeout=timeout):
            raise _make_busy_error(self.path)
        try:
            return self._retry_while_busy(work, deadline)
        except sqlite3.OperationalError as failure:
            if is_busy(failure):
                raise _make_busy_error(self.path) from failure
            self._disconnect()
            raise _make_unusable_error(self.path, failure) from failure
        except sqlite3.DatabaseError as failure:
            self._disconnect()
            if type(failure) is not sqlite3.DatabaseError:  # what is wrong is not the file
                raise _make_unusable_error(self.path, failure) from failure
            raise make_damaged_error(quarantine_database(self.path), failure) from failure
        except OSError as failure:
            self._disconnect()
            raise _make_unusable_error(self.path, failure) from failure
        finally:
            self._lock.release()

    def _retry_while_busy(self, work: Callable[[Connection], T], deadline: float) -> T:
        """SQLite itself waits for a lock, but not for every one: so it is tried until then."""
        sqlite3 = load_sqlite()
        while True:
            remaining = max(
                0.1, int((deadline - monotonic()) * 10 + 0.99) / 10
            )  # seldom another number
            try:
                return work(self._connect(remaining))
            except sqlite3.OperationalError as failure:
                if not is_busy(failure) or monotonic() > deadline:
                    raise
                sleep(0.002 + os.urandom(1)[0] / 20_000)  # not all at the same moment

    def _connect(self, timeout: float) -> Connection:
        """The open database; opened anew after a fork, and where another one is in its place."""
        if self._connection is not None and self._opened_file == _file_identity(self.path):
            self._set_timeout(self._connection, timeout)
            return self._connection
        self._disconnect()
        _create_private_file(self._state_dir, self.path)
        opened = _file_identity(self.path)
        connection: Connection = load_sqlite().connect(
            self.path, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            _create_schema(connection, self.path)
        except BaseException:
            connection.close()
            raise
        self._connection, self._opened_file, self._durable = connection, opened, None
        self._busy_timeout = timeout
        self._quarantined_path = find_recent_quarantine(self.path)
        return connection

    def _disconnect(self) -> None:
        connection, opened = self._connection, self._opened_file
        self._connection = self._opened_file = None
        if connection is not None and opened is not None:
            if opened[0] == os.getpid():
                connection.close()
            else:
                _inherited_connections.append(connection)

    def _set_timeout(self, connection: Connection, timeout: float) -> None:
        if self._busy_timeout != timeout:
            connection.execute(f"PRAGMA busy_timeout = {int(timeout * 1000)}")
            self._busy_timeout = timeout

    def _set_durability(self, connection: Connection, durable: bool) -> None:
        if self._durable != durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable


class _WriteTransaction:
    """One transaction: the lock is taken at its beginning, or nothing is done."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: Any, exc: Any, trace: Any) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
                return
            except BaseException:
                self._roll_back()
                raise
        self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _create_schema(connection: Connection, path: str) -> None:
    """Make the table, where nobody has."""
    if connection.execute("PRAGMA user_version").fetchone()[0] == _SCHEMA_VERSION:
        return
    with _WriteTransaction(connection):
        schema_version = connection.execute("PRAGMA user_version").fetchone()[0]
        if schema_version == 0:
            connection.execute(_CREATE_TABLE)
            connection.execute("CREATE INDEX keys_by_end ON keys (coalesce(ended, started))")
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        elif schema_version != _SCHEMA_VERSION:
            raise StoreUnavailable(
                f"{path} was written by another version of tooli.",
                "Use the newer version, or set TOOLI_STATE_DIR to a folder of its own.",
            )


# ------------------------------------------------------------------ rows


def _entry_from_row(row: Any) -> IdempotencyEntry:
    tool, principal, key, fingerprint, state, owner, attempt, started, outcome, ended = row
    scoped_key = ScopedKey(tool, principal, key)
    return IdempotencyEntry(scoped_key, fingerprint, state, owner, attempt, started, outcome, ended)


def _evaluate_key(
    connection: Connection, scoped_key: ScopedKey, fingerprint: str, can_rerun: bool
) -> BeginResult | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM keys {_WHERE_KEY}", scoped_key.columns
    ).fetchone()
    return (
        None
        if row is None
        else evaluate_entry(_entry_from_row(row), fingerprint, can_rerun, time())
    )


def _insert_running(connection: Connection, token: AttemptToken, fingerprint: str) -> float:
    """Write a call down as running; since when it is."""
    now = time()
    connection.execute(
        "INSERT OR REPLACE INTO keys (tool, principal, key, fingerprint, state, owner, attempt, "
        "started) VALUES (?, ?, ?, ?, 'running', ?, ?, ?)",
        (*token.scoped_key.columns, fingerprint, current_process(), token.attempt, now),
    )
    connection.execute(
        "DELETE FROM keys WHERE rowid IN (SELECT rowid FROM keys "
        "WHERE coalesce(ended, started) < ? AND (state = 'done' OR coalesce(ended, started) < ?) "
        f"ORDER BY coalesce(ended, started) LIMIT {MAX_PURGED_ENTRIES})",
        (now - RETENTION_SECONDS, now - UNFINISHED_RETENTION_SECONDS),
    )
    return now


# ------------------------------------------------------------------ files


def _file_identity(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return os.getpid(), found.st_dev, found.st_ino


def _create_private_file(folder: str, path: str) -> None:
    """An empty file that only its user reads: SQLite makes those beside it alike."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass


# ------------------------------------------------------------------ what goes wrong


def _make_busy_error(path: str) -> StoreUnavailable:
    reason = f"{path} is in use by other processes for too long."
    return StoreUnavailable(reason, "Try again.", is_busy=True)


def _make_unusable_error(path: str, failure: Exception) -> StoreUnavailable:
    message = getattr(failure, "strerror", None) or failure
    return StoreUnavailable(
        f"{path} cannot be used: {message}.",
        "Make room or make it writable, or set TOOLI_STATE_DIR to a folder that is.",
    )
