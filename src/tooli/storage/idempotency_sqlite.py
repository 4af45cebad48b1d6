"""The idempotency store of one user on one machine: an SQLite file that only the user can read.

A damaged database is never repaired. It is renamed and kept, and a new one is created. The damaged
database may contain the key of a call that must not run twice. So such calls are refused for
`RETENTION_SECONDS`, or until the damaged database is deleted.

A new database gets its path only when it is complete. So an empty file, a database without tables
or a journal without a database is damaged, not new.

`get_idempotency_store` returns this store, or the Postgres store if a URL is configured.
"""

from __future__ import annotations

import atexit
import os
from time import monotonic, sleep, time

from tooli.storage.idempotency_store import (
    RETENTION_SECONDS,
    IdempotencyStore,
    SqlDialect,
    StoreUnavailable,
    seconds_until,
)
from tooli.storage.state_files import (
    FileLock,
    check_private_folder,
    delete_own_files,
    get_state_dir,
    is_hex,
    make_private_folder,
    remove_file,
    write_private_file,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection
    from typing import Any, TypeVar

    from tooli.storage.idempotency_store import SqlConnection

    T = TypeVar("T")

DATABASE_NAME = "idempotency.db"
_SCHEMA_VERSION = 1
_CREATE_TABLE = (
    "CREATE TABLE keys (tool TEXT NOT NULL, principal TEXT NOT NULL, key TEXT NOT NULL, "
    "fingerprint TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL, attempt TEXT NOT NULL, "
    "started REAL NOT NULL, ended REAL, outcome BLOB NOT NULL DEFAULT x'', "
    "PRIMARY KEY (tool, principal, key))"
)
_CREATE_INDEX = "CREATE INDEX keys_by_end ON keys (coalesce(ended, started))"
_DIALECT = SqlDialect(
    table="keys",
    session_table="sessions",
    parameter="?",
    now="unix_time()",  # registered by _open_database
    timestamp="{}",
    epoch="{}",
    interval="{}",
    empty_bytes="x''",
    set_timeout="PRAGMA busy_timeout = {}",
)
_inherited_connections: list[Connection] = []
"""Connections of a parent process. They stay open: a child process must not close them."""


class SqliteIdempotencyStore(IdempotencyStore):
    """Idempotency keys in a file in the user's state directory."""

    def __init__(self, state_dir: str) -> None:
        super().__init__(_DIALECT)
        self._state_dir = state_dir
        self.path = os.path.join(state_dir, DATABASE_NAME)
        self._opened_file: tuple[int, int, int] | None = None  # process, device and inode
        self._durable: bool | None = None
        self._quarantined_path: str | None = None

    def _exists(self) -> bool:
        return os.path.exists(self.path)

    # -------------------------------------------------------------- connection

    def _load_driver(self) -> Any:
        try:
            return _load_sqlite()
        except ImportError:
            raise StoreUnavailable(
                "This Python was built without sqlite3.",
                "Set `store` to a postgresql:// URL.",
            ) from None

    def _run(self, driver: Any, work: Callable[[SqlConnection], T], deadline: float) -> T:
        """Run some work on the database; turn every failure into StoreUnavailable."""
        try:
            return self._retry_while_busy(driver, work, deadline)
        except driver.OperationalError as failure:
            if _is_busy(failure):
                raise _make_busy_error(self.path) from failure
            self._disconnect()
            raise _make_unusable_error(self.path, failure) from failure
        except driver.DatabaseError as failure:
            self._disconnect()
            if type(failure) is not driver.DatabaseError:  # a subclass does not mean damage
                raise _make_unusable_error(self.path, failure) from failure
            path = _quarantine_database(self.path)
            raise _make_damaged_error(
                f"The idempotency database is damaged ({failure}) and was moved to {path}.", path
            ) from failure
        except OSError as failure:
            self._disconnect()
            raise _make_unusable_error(self.path, failure) from failure

    def _retry_while_busy(
        self, driver: Any, work: Callable[[SqlConnection], T], deadline: float
    ) -> T:
        """Retry the work until the deadline while the database is locked.

        SQLite's own timeout does not cover every lock.
        """
        while True:
            try:
                return work(self._connect(seconds_until(deadline)))
            except driver.OperationalError as failure:
                if not _is_busy(failure) or monotonic() > deadline:
                    raise
                sleep(0.002 + os.urandom(1)[0] / 20_000)  # random, so that retries do not collide

    def _connect(self, timeout: float) -> Connection:
        """Return the connection; reopen it after a fork and if the file was replaced."""
        if self._connection is not None and self._opened_file == _file_identity(self.path):
            self._set_timeout(self._connection, timeout)
            return self._connection
        self._disconnect()
        folder = os.path.dirname(self.path)
        make_private_folder(folder)
        check_private_folder(folder)
        if not os.path.exists(self.path):
            _create_database(self.path, timeout)
        opened_file = _file_identity(self.path)
        self._connection = _open_database(self.path, timeout)
        self._opened_file, self._durable = opened_file, None
        self._connection_timeout = timeout
        self._quarantined_path = _find_recent_quarantine(self.path)
        return self._connection

    def _disconnect(self) -> None:
        connection, opened_file = self._connection, self._opened_file
        self._connection = self._opened_file = None
        if connection is not None and opened_file is not None:
            if opened_file[0] == os.getpid():
                connection.close()
            else:
                _inherited_connections.append(connection)

    def create_table(self, connection: SqlConnection, table: str, *statements: str) -> None:
        """Create a table if it does not exist: the statements say that."""
        del table
        for statement in statements:
            connection.execute(statement)

    def _transaction(self, connection: Any) -> Connection:
        return _start_transaction(connection)

    def prepare_write(self, connection: SqlConnection, durable: bool) -> None:
        if self._durable != durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def _prepare_claim(self, require_intact: bool) -> None:
        if self._quarantined_path is not None and require_intact:
            self._quarantined_path = _find_recent_quarantine(self.path)
            if self._quarantined_path is not None:
                path = self._quarantined_path
                raise _make_damaged_error(
                    f"The keys in the damaged idempotency database {path} are unknown.", path
                )


def _create_database(path: str, timeout: float) -> None:
    """Create a complete database that only the user can read, unless another process does."""
    folder, file_name = os.path.split(path)
    with FileLock(f"{path}.lock"):
        if os.path.exists(path):
            return
        delete_own_files(folder, lambda name, _: _is_draft_name(name, file_name))
        if os.path.exists(f"{path}-wal"):
            raise _load_sqlite().DatabaseError("the file is missing, but its journal exists")
        draft = f"{path}.new-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            write_private_file(draft, b"")
            connection = _open_connection(draft, timeout)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                with _start_transaction(connection):
                    connection.execute(_CREATE_TABLE)
                    connection.execute(_CREATE_INDEX)
                    connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            finally:
                connection.close()
            _publish_file(draft, path)
        finally:
            for suffix in ("", "-wal", "-shm"):
                remove_file(draft + suffix)


def _is_draft_name(name: str, file_name: str) -> bool:
    """True for a draft of a process that was killed, and for the journals of the draft."""
    draft = name.removesuffix("-wal").removesuffix("-shm")
    prefix = f"{file_name}.new-"
    pid, _, random_chars = draft[len(prefix) :].partition("-")
    return draft.startswith(prefix) and pid.isdigit() and is_hex(random_chars, 8)


def _publish_file(draft: str, path: str) -> None:
    """Move a file to its path, but never replace another one."""
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # the file system has no hard links: the lock protects the path
        os.rename(draft, path)


def _open_connection(path: str, timeout: float) -> Connection:
    """Open a connection in autocommit mode."""
    return _load_sqlite().connect(
        path, timeout=timeout, isolation_level=None, check_same_thread=False
    )


def _open_database(path: str, timeout: float) -> Connection:
    """Open a database that exists; raise DatabaseError if it has no tables."""
    connection = _open_connection(path, timeout)
    try:
        connection.create_function("unix_time", 0, time)
        version = _read_schema_version(connection)
        if version == 0:
            raise _load_sqlite().DatabaseError("it is empty")
        if version != _SCHEMA_VERSION:
            raise StoreUnavailable(
                f"{path} was written by another version of tooli.",
                "Use the newer version, or set TOOLI_STATE_DIR to another folder.",
            )
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _start_transaction(connection: Connection) -> Connection:
    """Take the write lock. The connection is a context manager: it commits or rolls back."""
    connection.execute("BEGIN IMMEDIATE")
    return connection


def _read_schema_version(connection: Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _load_sqlite() -> Any:
    """Return the C part of `sqlite3`. The Python part imports `datetime`, which is slow."""
    try:
        import _sqlite3 as module  # pyright: ignore
    except ImportError:
        import sqlite3 as module
    return module  # pyright: ignore


def _is_busy(failure: Exception) -> bool:
    """True if the only problem is a lock that another process holds."""
    text = str(failure)
    return "locked" in text or "busy" in text


# ------------------------------------------------------------------ files


def _file_identity(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return os.getpid(), found.st_dev, found.st_ino


def _find_recent_quarantine(path: str) -> str | None:
    """Return the path of a database that was damaged within `RETENTION_SECONDS`, or None."""
    folder, name = os.path.split(path)
    prefix = f"{name}.damaged-"
    for found in os.listdir(folder):
        timestamp = found[len(prefix) :] if found.startswith(prefix) else ""
        if timestamp.isdigit() and int(timestamp) / 1000 > time() - RETENTION_SECONDS:
            return os.path.join(folder, found)
    return None


def _quarantine_database(path: str) -> str:
    """Rename a damaged database and return its new path, or the old path if that fails."""
    with FileLock(f"{path}.lock"):  # without it, a second process may rename the new database
        if _is_intact(path):  # another process has renamed it
            return _find_recent_quarantine(path) or path
        quarantined_path = f"{path}.damaged-{int(time() * 1000)}"
        try:
            # The journal is renamed first, so that a new database does not find it.
            for suffix in ("-wal", "-shm", ""):
                if os.path.exists(path + suffix):
                    os.rename(path + suffix, quarantined_path + suffix)
            if not os.path.exists(quarantined_path):  # only the journal was there
                write_private_file(quarantined_path, b"")
        except OSError:
            return path
        return quarantined_path


def _is_intact(path: str) -> bool:
    if not os.path.exists(path):
        return False
    sqlite3 = _load_sqlite()
    try:
        connection = sqlite3.connect(path, timeout=1.0)
        try:
            is_ok = connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            return is_ok and _read_schema_version(connection) != 0
        finally:
            connection.close()
    except sqlite3.Error as failure:
        return _is_busy(failure)


# ------------------------------------------------------------------ errors


def _make_busy_error(path: str) -> StoreUnavailable:
    reason = f"The idempotency database {path} is in use by other processes."
    return StoreUnavailable(reason, "Try again.", is_busy=True)


def _make_unusable_error(path: str, failure: Exception) -> StoreUnavailable:
    message = getattr(failure, "strerror", None) or failure
    return StoreUnavailable(
        f"The idempotency database {path} cannot be used: {message}.",
        "Free disk space or make the file writable, or set TOOLI_STATE_DIR to a writable folder.",
    )


def _make_damaged_error(reason: str, quarantined_path: str) -> StoreUnavailable:
    hours = int(RETENTION_SECONDS // 3600)
    return StoreUnavailable(
        reason,
        f"Check which calls of the last {hours} hours took effect, then delete {quarantined_path}. "
        "After that, keys are accepted again.",
        damaged_path=quarantined_path,
    )


# ------------------------------------------------------------------ open stores

# The key contains the process ID, because a forked process needs its own locks and files.
_open_stores: dict[tuple[int, str], IdempotencyStore] = {}
_pids_with_exit_hook: list[int] = []


def get_idempotency_store(url: str | None) -> IdempotencyStore:
    """Return the store at a URL; without one, the SQLite store of the current user."""
    cache_key = os.getpid(), get_state_dir() if url is None else url
    if cache_key not in _open_stores:
        _open_stores.setdefault(cache_key, _open_store(url))
    return _open_stores[cache_key]


def _open_store(url: str | None) -> IdempotencyStore:
    if url is None:
        return SqliteIdempotencyStore(get_state_dir())
    from tooli.storage.idempotency_postgres import PostgresIdempotencyStore

    return PostgresIdempotencyStore(url)


def load_secrets_key(url: str | None) -> bytes:
    """Return the key for digests of secrets in the store at a URL.

    With a key, nobody who can read only the store can test guesses of a secret. Machines that share
    a store derive the key from `TOOLI_SEAL_KEY`. The key of the SQLite store is a file next to it.
    """
    from tooli.storage.signing import load_or_create_key, load_shared_key

    key = load_or_create_key("idempotency") if url is None else load_shared_key("idempotency")
    if key is not None:
        return key
    if url is None:
        raise StoreUnavailable(
            "The key file for secrets cannot be created in the state folder.",
            "Set TOOLI_STATE_DIR to a folder that only you can write to.",
        )
    raise StoreUnavailable(
        "TOOLI_SEAL_KEY is not set, so machines cannot compare the secret in this call.",
        "Set TOOLI_SEAL_KEY to the same secret on all machines that share the store.",
    )


def close_at_exit() -> None:
    """Close the stores of this process when it ends."""
    pid = os.getpid()
    if pid not in _pids_with_exit_hook:
        _pids_with_exit_hook.append(pid)
        atexit.register(_close_all)


def _close_all() -> None:
    for (pid, _), store in list(_open_stores.items()):
        if pid == os.getpid():
            store.close()
