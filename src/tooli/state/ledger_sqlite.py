"""The ledger of one user on one machine: a SQLite database that only they read.

A key is looked up without a lock; only who seems to be the first takes one, looks again, and
writes. The database is never repaired: one that cannot be read is set aside, and as long as
that was not long ago, nobody who must run but once relies on the new one.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic, sleep, time

from tooli.state.damage import damaged, gap, is_busy, recent_gap, set_aside, sqlite
from tooli.state.ledger import (
    KEPT,
    KEPT_OPEN,
    PATIENCE,
    SWEPT,
    Entry,
    Ledger,
    New,
    Slot,
    Token,
    Unavailable,
    judge,
    new_attempt,
    spare_running,
)
from tooli.state.owners import this_process

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sqlite3 import Connection
    from typing import Any, TypeVar

    from tooli.state.ledger import Found

    T = TypeVar("T")

NAME = "idempotency.db"
_EDITION = 1
_TABLE = (
    "CREATE TABLE keys (tool TEXT NOT NULL, principal TEXT NOT NULL, key TEXT NOT NULL, "
    "fingerprint TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL, attempt TEXT NOT NULL, "
    "started REAL NOT NULL, ended REAL, outcome BLOB NOT NULL DEFAULT x'', "
    "PRIMARY KEY (tool, principal, key))"
)
_COLUMNS = "tool, principal, key, fingerprint, state, owner, attempt, started, outcome, ended"
_HEADS = _COLUMNS.replace("outcome", "x''")
_OF_APP = "(tool = ? OR substr(tool, 1, length(?)) = ?)"
_WHERE = "WHERE tool = ? AND principal = ? AND key = ?"
_orphans: list[Any] = []  # connections of a parent process: to close them would drop its locks


class SqliteLedger(Ledger):
    """Keys in a file below the folder of a user's state."""

    def __init__(self, home: str) -> None:
        self._home = home
        self.path = os.path.join(home, NAME)
        self._lock = allocate_lock()
        self._base: Connection | None = None
        self._opened: tuple[int, int, int] | None = None  # by which process; which file
        self._durable: bool | None = None
        self._patience = PATIENCE
        self._gap: str | None = None

    # -------------------------------------------------------------- what a ledger does

    def begin(
        self,
        slot: Slot,
        fingerprint: str,
        *,
        again: bool,
        durable: bool,
        patience: float,
        whole: bool = True,
    ) -> Found:
        """Enter a call, unless the key is taken."""

        def work(base: Connection) -> Found:
            found = _judged(base, slot, fingerprint, again)
            if found is not None:
                return found
            if self._gap is not None and whole:
                self._gap = recent_gap(self.path)
                if self._gap is not None:
                    raise gap(self._gap)
            self._sync(base, durable)
            with _Writing(base):
                found = _judged(base, slot, fingerprint, again)
                if found is not None:
                    return found
                token = Token(slot, new_attempt(), durable, patience)
                return New(token, _enter(base, token, fingerprint))

        return self._do(work, patience)

    def finish(self, token: Token, state: str, outcome: bytes) -> bool:
        """Settle an entry; False where somebody else has taken it over meanwhile."""

        def work(base: Connection) -> bool:
            self._sync(base, token.durable)
            with _Writing(base):
                done = base.execute(
                    f"UPDATE keys SET state = ?, outcome = ?, ended = ? {_WHERE} AND attempt = ?",
                    (state, outcome, time(), *token.slot.place, token.attempt),
                )
                return done.rowcount > 0

        return self._do(work, token.patience)

    def release(self, token: Token) -> None:
        """Take an entry back."""

        def work(base: Connection) -> None:
            with _Writing(base):
                base.execute(
                    f"DELETE FROM keys {_WHERE} AND attempt = ?",
                    (*token.slot.place, token.attempt),
                )

        self._do(work, token.patience)

    def entries(self, app: str, most: int, *, unsettled: bool = False) -> Iterator[Entry]:
        """What is kept for an app, the newest first."""
        which = f"{_OF_APP} AND state <> 'done'" if unsettled else _OF_APP

        def work(base: Connection) -> list[Entry]:
            rows = base.execute(
                f"SELECT {_HEADS} FROM keys WHERE {which} ORDER BY started DESC LIMIT ?",
                (app, f"{app}.", f"{app}.", most),
            )
            return [_entry(row) for row in rows]

        return iter(self._do(work, PATIENCE) if os.path.exists(self.path) else ())

    def forget(self, app: str, key: str, tool: str | None = None, *, running: bool = False) -> int:
        """Drop a key of an app, or of one tool."""
        which = f"WHERE key = ? AND coalesce(tool = ?, 1) AND {_OF_APP}"
        words = (key, tool, app, f"{app}.", f"{app}.")

        def work(base: Connection) -> int:
            self._sync(base, True)
            with _Writing(base):
                if not running:
                    for row in base.execute(f"SELECT {_HEADS} FROM keys {which}", words).fetchall():
                        spare_running(_entry(row), time())
                return base.execute(f"DELETE FROM keys {which}", words).rowcount

        return self._do(work, PATIENCE) if os.path.exists(self.path) else 0

    def close(self) -> None:
        """Let go of the database."""
        if self._lock.acquire(timeout=PATIENCE):
            try:
                self._drop()
            finally:
                self._lock.release()

    # -------------------------------------------------------------- a connection

    def _do(self, work: Callable[[Connection], T], patience: float) -> T:
        """Work on the database, whatever may be wrong with it."""
        try:
            sqlite3 = sqlite()
        except ImportError:
            raise Unavailable(
                "This Python has no sqlite3.", "Set `store` to a postgresql:// address."
            ) from None
        until = monotonic() + patience  # for all of it: the threads of this process, and others
        if not self._lock.acquire(timeout=patience):
            raise _busy(self.path)
        try:
            return self._tried(work, until)
        except sqlite3.OperationalError as failure:
            if is_busy(failure):
                raise _busy(self.path) from failure
            self._drop()
            raise _unusable(self.path, failure) from failure
        except sqlite3.DatabaseError as failure:
            self._drop()
            if type(failure) is not sqlite3.DatabaseError:  # what is wrong is not the file
                raise _unusable(self.path, failure) from failure
            raise damaged(set_aside(self.path), failure) from failure
        except OSError as failure:
            self._drop()
            raise _unusable(self.path, failure) from failure
        finally:
            self._lock.release()

    def _tried(self, work: Callable[[Connection], T], until: float) -> T:
        """SQLite itself waits for a lock, but not for every one: so it is tried until then."""
        sqlite3 = sqlite()
        while True:
            left = max(0.1, int((until - monotonic()) * 10 + 0.99) / 10)  # seldom another number
            try:
                return work(self._connect(left))
            except sqlite3.OperationalError as failure:
                if not is_busy(failure) or monotonic() > until:
                    raise
                sleep(0.002 + os.urandom(1)[0] / 20_000)  # not all at the same moment

    def _connect(self, patience: float) -> Connection:
        """The open database; opened anew after a fork, and where another one is in its place."""
        if self._base is not None and self._opened == _file_at(self.path):
            self._wait_for(self._base, patience)
            return self._base
        self._drop()
        _make_file(self._home, self.path)
        opened = _file_at(self.path)
        base: Connection = sqlite().connect(
            self.path, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            if base.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                base.execute("PRAGMA journal_mode = WAL")
            _prepare(base, self.path)
        except BaseException:
            base.close()
            raise
        self._base, self._opened, self._durable = base, opened, None
        self._patience = patience
        self._gap = recent_gap(self.path)
        return base

    def _drop(self) -> None:
        base, opened = self._base, self._opened
        self._base = self._opened = None
        if base is not None and opened is not None:
            if opened[0] == os.getpid():
                base.close()
            else:
                _orphans.append(base)

    def _wait_for(self, base: Connection, patience: float) -> None:
        if self._patience != patience:
            base.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
            self._patience = patience

    def _sync(self, base: Connection, durable: bool) -> None:
        if self._durable != durable:
            base.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable


class _Writing:
    """One transaction: the lock is taken at its beginning, or nothing is done."""

    def __init__(self, base: Connection) -> None:
        self._base = base

    def __enter__(self) -> None:
        self._base.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: Any, exc: Any, trace: Any) -> None:
        if kind is None:
            try:
                self._base.execute("COMMIT")
                return
            except BaseException:
                self._roll_back()
                raise
        self._roll_back()

    def _roll_back(self) -> None:
        if self._base.in_transaction:
            self._base.execute("ROLLBACK")


def _prepare(base: Connection, path: str) -> None:
    """Make the table, where nobody has."""
    if base.execute("PRAGMA user_version").fetchone()[0] == _EDITION:
        return
    with _Writing(base):
        edition = base.execute("PRAGMA user_version").fetchone()[0]
        if edition == 0:
            base.execute(_TABLE)
            base.execute("CREATE INDEX keys_by_end ON keys (coalesce(ended, started))")
            base.execute(f"PRAGMA user_version = {_EDITION}")
        elif edition != _EDITION:
            raise Unavailable(
                f"{path} was written by another version of tooli.",
                "Use the newer version, or set TOOLI_STATE_DIR to a folder of its own.",
            )


# ------------------------------------------------------------------ rows


def _entry(row: Any) -> Entry:
    tool, principal, key, fingerprint, state, owner, attempt, started, outcome, ended = row
    slot = Slot(tool, principal, key)
    return Entry(slot, fingerprint, state, owner, attempt, started, outcome, ended)


def _judged(base: Connection, slot: Slot, fingerprint: str, again: bool) -> Found | None:
    row = base.execute(f"SELECT {_COLUMNS} FROM keys {_WHERE}", slot.place).fetchone()
    return None if row is None else judge(_entry(row), fingerprint, again, time())


def _enter(base: Connection, token: Token, fingerprint: str) -> float:
    """Write a call down as running; since when it is."""
    now = time()
    base.execute(
        "INSERT OR REPLACE INTO keys (tool, principal, key, fingerprint, state, owner, attempt, "
        "started) VALUES (?, ?, ?, ?, 'running', ?, ?, ?)",
        (*token.slot.place, fingerprint, this_process(), token.attempt, now),
    )
    base.execute(
        "DELETE FROM keys WHERE rowid IN (SELECT rowid FROM keys "
        "WHERE coalesce(ended, started) < ? AND (state = 'done' OR coalesce(ended, started) < ?) "
        f"ORDER BY coalesce(ended, started) LIMIT {SWEPT})",
        (now - KEPT, now - KEPT_OPEN),
    )
    return now


# ------------------------------------------------------------------ files


def _file_at(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return os.getpid(), found.st_dev, found.st_ino


def _make_file(home: str, path: str) -> None:
    """An empty file that only its user reads: SQLite makes those beside it alike."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass


# ------------------------------------------------------------------ what goes wrong


def _busy(path: str) -> Unavailable:
    reason = f"{path} is in use by other processes for too long."
    return Unavailable(reason, "Try again.", busy=True)


def _unusable(path: str, failure: Exception) -> Unavailable:
    said = getattr(failure, "strerror", None) or failure
    return Unavailable(
        f"{path} cannot be used: {said}.",
        "Make room or make it writable, or set TOOLI_STATE_DIR to a folder that is.",
    )
