"""The ledger of a fleet: one table of a Postgres server, for processes on many machines.

`INSERT … ON CONFLICT` decides who is first. An owner on another machine cannot be looked at,
so each holds a lease by the server's own clock, renewed while it runs; a lease that ran out
is taken for a death.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

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
    from typing import Any, TypeVar

    from tooli.state.ledger import Found

    T = TypeVar("T")

LEASE = 60.0
"""Seconds for which an owner is taken to be alive; renewed three times meanwhile."""
_WIRE = {
    "application_name": "tooli",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""A network that is gone is noticed within some ten seconds, unless the address says otherwise."""

_TABLE = """
CREATE TABLE IF NOT EXISTS tooli_keys (
    tool text NOT NULL, principal text NOT NULL, key text NOT NULL,
    fingerprint text NOT NULL, state text NOT NULL, owner text NOT NULL, attempt text NOT NULL,
    started timestamptz NOT NULL, ended timestamptz, lease timestamptz NOT NULL,
    outcome bytea NOT NULL DEFAULT ''::bytea, PRIMARY KEY (tool, principal, key))
"""
_INDEX = "CREATE INDEX IF NOT EXISTS tooli_keys_by_end ON tooli_keys (coalesce(ended, started))"
_TURN = 0x746F6F6C69  # only one process at a time makes the table
_COLUMNS = """
tool, principal, key, fingerprint, state, owner, attempt, extract(epoch FROM started)::float8,
{outcome}, extract(epoch FROM ended)::float8, lease < clock_timestamp(),
extract(epoch FROM clock_timestamp())::float8
"""
_HEADS = _COLUMNS.format(outcome="''::bytea")
_WHERE = "WHERE tool = %s AND principal = %s AND key = %s"
_OF_APP = "(tool = %s OR starts_with(tool, %s))"
_INSERT = """
INSERT INTO tooli_keys (tool, principal, key, fingerprint, state, owner, attempt, started, lease)
VALUES (%s, %s, %s, %s, 'running', %s, %s, clock_timestamp(),
        clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (tool, principal, key) DO
"""
_FIRST = _INSERT + "NOTHING RETURNING extract(epoch FROM started)::float8"
_OVER = (
    _INSERT
    + """
UPDATE SET fingerprint = excluded.fingerprint, state = 'running', owner = excluded.owner,
    attempt = excluded.attempt, started = excluded.started, ended = NULL, lease = excluded.lease,
    outcome = ''::bytea
WHERE tooli_keys.attempt = %s AND tooli_keys.state = %s
RETURNING extract(epoch FROM started)::float8
"""
)
_SWEEP = f"""
DELETE FROM tooli_keys WHERE (tool, principal, key) IN (
    SELECT tool, principal, key FROM tooli_keys
    WHERE coalesce(ended, started) < clock_timestamp() - make_interval(secs => {KEPT})
      AND (state = 'done'
           OR coalesce(ended, started) < clock_timestamp() - make_interval(secs => {KEPT_OPEN}))
    ORDER BY coalesce(ended, started) LIMIT {SWEPT} FOR UPDATE SKIP LOCKED)
"""


class PostgresLedger(Ledger):
    """Keys in a table of a database that many machines reach."""

    def __init__(self, address: str, *, lease: float = LEASE) -> None:
        self._address = address
        self._lease = lease
        self._lock = allocate_lock()
        self._base: Any = None
        self._process = 0
        self._held: set[str] = set()  # attempts whose lease is to be renewed
        self._beats = allocate_lock()  # around what decides whether somebody renews them
        self._beating: Any = None
        self._patience = PATIENCE

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
        token = Token(slot, new_attempt(), durable, patience)
        mine = (fingerprint, this_process(), token.attempt, self._lease)

        def work(base: Any) -> Found:
            while True:
                found = _find(base, slot)
                if found is None:
                    entered = base.execute(_FIRST, (*slot.place, *mine)).fetchone()
                    if entered is None:
                        continue  # somebody was faster
                    if token.attempt[0] == "0":  # now and then
                        base.execute(_SWEEP)
                    return New(token, entered[0])
                entry, now = found
                if entry.attempt == token.attempt:  # the connection broke after it was entered
                    return New(token, entry.started)
                answer = judge(entry, fingerprint, again, now)
                if answer is not None:
                    return answer
                stale = (entry.attempt, entry.state)
                entered = base.execute(_OVER, (*slot.place, *mine, *stale)).fetchone()
                if entered is not None:
                    return New(token, entered[0])

        answer = self._do(work, patience)
        if isinstance(answer, New):
            self._hold(token.attempt)
        return answer

    def finish(self, token: Token, state: str, outcome: bytes) -> bool:
        """Settle an entry; False where somebody else has taken it over meanwhile."""

        def work(base: Any) -> bool:
            done = base.execute(
                "UPDATE tooli_keys SET state = %s, outcome = %s, ended = clock_timestamp() "
                f"{_WHERE} AND attempt = %s",
                (state, outcome, *token.slot.place, token.attempt),
            )
            return done.rowcount > 0

        try:
            return self._do(work, token.patience)
        finally:
            self._held.discard(token.attempt)

    def release(self, token: Token) -> None:
        """Take an entry back."""
        self._held.discard(token.attempt)
        place = (*token.slot.place, token.attempt)
        self._do(
            lambda base: base.execute(f"DELETE FROM tooli_keys {_WHERE} AND attempt = %s", place),
            token.patience,
        )

    def entries(self, app: str, most: int, *, unsettled: bool = False) -> Iterator[Entry]:
        """What is kept for an app, the newest first."""
        which = f"{_OF_APP} AND state <> 'done'" if unsettled else _OF_APP

        def work(base: Any) -> list[Entry]:
            rows = base.execute(
                f"SELECT {_HEADS} FROM tooli_keys WHERE {which} ORDER BY started DESC LIMIT %s",
                (app, f"{app}.", most),
            )
            return [_entry(row)[0] for row in rows]

        return iter(self._do(work, PATIENCE))

    def forget(self, app: str, key: str, tool: str | None = None, *, running: bool = False) -> int:
        """Drop a key of an app, or of one tool."""
        which = f"WHERE key = %s AND coalesce(tool = %s::text, true) AND {_OF_APP}"
        words = (key, tool, app, f"{app}.")

        def work(base: Any) -> int:
            with base.transaction():
                if not running:
                    rows = base.execute(
                        f"SELECT {_HEADS} FROM tooli_keys {which} FOR UPDATE", words
                    )
                    for entry, now in map(_entry, rows):
                        spare_running(entry, now)
                return base.execute(f"DELETE FROM tooli_keys {which}", words).rowcount

        return self._do(work, PATIENCE)

    def close(self) -> None:
        """Let go of the connection, unless a call is still running."""
        if not self._held and self._lock.acquire(timeout=PATIENCE):
            try:
                self._drop()
            finally:
                self._lock.release()

    # -------------------------------------------------------------- a connection

    def _do(self, work: Callable[[Any], T], patience: float) -> T:
        """Work on the database; once more where an old connection turns out to be dead."""
        psycopg = _psycopg()
        until = monotonic() + patience  # for all of it: the threads of this process, and others
        if not self._lock.acquire(timeout=patience):
            reason = "The store of idempotency keys is busy for too long."
            raise Unavailable(reason, "Try again.", busy=True)
        try:
            left = max(0.1, int((until - monotonic()) * 10 + 0.99) / 10)  # seldom another number
            old = self._base is not None and self._process == os.getpid()
            try:
                return work(self._connect(psycopg, left))
            except psycopg.OperationalError as failure:
                self._drop()
                if not old or isinstance(failure, psycopg.errors.QueryCanceled):  # it took too long
                    raise
                return work(self._connect(psycopg, left))
        except psycopg.Error as failure:
            self._drop()
            raise self._unusable(failure) from None  # the cause may hold the password
        finally:
            self._lock.release()

    def _connect(self, psycopg: Any, patience: float) -> Any:
        if self._base is not None and self._process == os.getpid():
            self._wait_for(self._base, patience)
            return self._base
        if self._process != os.getpid():
            self._held, self._beating = set(), None  # a fork: the parent renews its own
            self._beats = allocate_lock()
        wire = {**_WIRE, "connect_timeout": str(max(2, int(patience)))}
        wire = {name: said for name, said in wire.items() if f"{name}=" not in self._address}
        base = psycopg.connect(self._address, autocommit=True, **wire)
        try:
            self._wait_for(base, patience, anew=True)
            if base.execute("SELECT to_regclass('tooli_keys')").fetchone()[0] is None:
                with base.transaction():
                    base.execute("SELECT pg_advisory_xact_lock(%s)", (_TURN,))
                    base.execute(_TABLE)
                    base.execute(_INDEX)
        except BaseException:
            base.close()
            raise
        self._base, self._process = base, os.getpid()
        return base

    def _wait_for(self, base: Any, patience: float, *, anew: bool = False) -> None:
        if anew or self._patience != patience:
            base.execute(f"SET statement_timeout = {int(patience * 1000)}")
            self._patience = patience

    def _drop(self) -> None:
        base, self._base = self._base, None
        if base is not None and self._process == os.getpid():
            base.close()

    def _unusable(self, failure: Exception) -> Unavailable:
        said = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
        said = without_password(said, self._address)
        return Unavailable(
            f"The store of idempotency keys cannot be used: {said}",
            "See whether the server of the setting `store` runs and takes this user, then try "
            "again.",
        )

    # -------------------------------------------------------------- leases

    def _hold(self, attempt: str) -> None:
        """Renew the lease of an attempt until it is settled."""
        from threading import Thread

        with self._beats:
            self._held.add(attempt)
            if self._beating is None:
                self._beating = Thread(target=self._beat, name="tooli-leases", daemon=True)
                self._beating.start()

    def _beat(self) -> None:
        from threading import Event

        waiting = Event()  # never set: only time passes
        while True:
            waiting.wait(self._lease / 3)
            with self._beats:  # whoever holds something from now on starts another thread
                held = list(self._held)
                if not held:
                    self._beating = None
                    return
            try:
                self._do(
                    lambda base, held=held: base.execute(
                        "UPDATE tooli_keys SET lease = clock_timestamp() + "
                        "make_interval(secs => %s) WHERE attempt = ANY(%s) AND state = 'running'",
                        (self._lease, held),
                    ),
                    self._lease / 3,
                )
            except Unavailable:
                continue  # the server may come back before the lease has run out


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as missing:
        raise Unavailable(
            f"Keys are to be kept in Postgres, and psycopg cannot be loaded ({missing}).",
            "Install it: pip install 'tooli[postgres]'",
        ) from missing
    return psycopg


def without_password(text: str, address: str) -> str:
    """A text in which the password of an address does not stand, nor the address itself."""
    from urllib.parse import unquote

    text = text.replace(address, without_secrets(address))
    for secret in _secrets(address):
        for form in (secret, unquote(secret)):
            text = text.replace(form, "…")
    return text


def without_secrets(address: str) -> str:
    """An address as anybody may see it."""
    for secret in _secrets(address):
        address = address.replace(f":{secret}@", ":…@").replace(f"={secret}", "=…")
    return address


def _secrets(address: str) -> list[str]:
    whole = address.partition("://")[2]
    said = whole.partition("?")[2].split("&")
    found = [part.partition("=")[2] for part in said if "pass" in part.partition("=")[0]]
    user = whole.partition("?")[0].rpartition("@")[0]
    return [secret for secret in (*found, user.partition(":")[2]) if secret]


# ------------------------------------------------------------------ rows


def _find(base: Any, slot: Slot) -> tuple[Entry, float] | None:
    columns = _COLUMNS.format(outcome="outcome")
    row = base.execute(f"SELECT {columns} FROM tooli_keys {_WHERE}", slot.place).fetchone()
    return None if row is None else _entry(row)


def _entry(row: Any) -> tuple[Entry, float]:
    """An entry, and what time it is there."""
    tool, principal, key, fingerprint, state, owner, attempt, started, outcome = row[:9]
    ended, lapsed, now = row[9:]
    slot = Slot(tool, principal, key)
    entry = Entry(slot, fingerprint, state, owner, attempt, started, bytes(outcome), ended, lapsed)
    return entry, now
