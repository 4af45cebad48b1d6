"""Store idempotency keys: which calls have started with a key, and their outcomes.

    begin ─┬─▶ NewAttempt: run the call ──▶ finish("done" │ "broken", outcome) │ release
           ├─▶ StoredReplay: the call has run; this is its outcome
           ├─▶ KeyMismatch: the key belongs to a call with other arguments
           ├─▶ AlreadyRunning: another process runs the call now
           └─▶ IndeterminateAttempt: the process that ran the call was stopped

The entry is written before the tool runs and finished after it. If the process dies in between,
the entry stays unfinished, so a call never runs twice unnoticed. The store does not interpret the
outcome bytes.

This module contains the SQL statements and the code that all databases share.
`idempotency_sqlite` and `idempotency_postgres` add the connection and a `SqlDialect`.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

from tooli.core import Record
from tooli.storage.state_files import read_boot_id, read_proc_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol, TypeAlias, TypeVar

    T = TypeVar("T")

    class SqlCursor(Protocol):
        """The result of a statement."""

        @property
        def rowcount(self) -> int: ...
        def fetchone(self) -> Any: ...
        def fetchall(self) -> Iterable[Any]: ...

    class SqlConnection(Protocol):
        """A connection in autocommit mode."""

        def execute(self, _sql: str, parameters: Sequence[Any] = ..., /) -> SqlCursor: ...
        def close(self) -> None: ...


RETENTION_SECONDS = 48 * 3600.0
"""Seconds for which the outcome of a call is kept."""
UNFINISHED_RETENTION_SECONDS = 30 * 24 * 3600.0
"""Seconds for which an unfinished call is kept."""
STORE_TIMEOUT_SECONDS = 10.0
"""Default number of seconds to wait for other processes."""
OWNER_LEASE_SECONDS = 3600.0
"""Seconds for which an owner counts as alive if its process cannot be checked from here."""
MAX_PURGED_ENTRIES = 64
"""Maximum number of expired entries that one call deletes."""


# ------------------------------------------------------------------ entries


class ScopedKey(Record):
    """An idempotency key in its scope: a tool and a principal."""

    tool: str
    principal: str  # "" for callers without a principal
    key: str

    @property
    def columns(self) -> tuple[str, str, str]:
        """The values of the primary key."""
        return self.tool, self.principal, self.key


class AttemptToken(Record):
    """The right to finish an entry, until another process takes the entry over."""

    scoped_key: ScopedKey
    attempt: str
    durable: bool = True
    timeout: float = STORE_TIMEOUT_SECONDS  # seconds to wait when the entry is finished


class NewAttempt(Record):
    """The key is new: run the call, then finish the entry."""

    token: AttemptToken
    started_at: float


class StoredReplay(Record):
    """The call has run, and this is its outcome."""

    outcome: bytes
    started_at: float


class AlreadyRunning(Record):
    """Another process runs the call now."""

    started_at: float
    owner: str


class KeyMismatch(Record):
    """The key belongs to a call with other arguments."""

    started_at: float


class IndeterminateAttempt(Record):
    """The call was stopped while it ran. `outcome` is empty if its process died."""

    started_at: float
    owner: str
    outcome: bytes = b""


if TYPE_CHECKING:
    BeginResult: TypeAlias = (
        NewAttempt | StoredReplay | AlreadyRunning | KeyMismatch | IndeterminateAttempt
    )


class IdempotencyEntry(Record):
    """One row of the store."""

    scoped_key: ScopedKey
    fingerprint: str
    state: str  # "running" | "done" | "broken": stopped while it ran
    owner: str
    attempt: str
    started: float
    outcome: bytes = b""
    ended: float | None = None
    lease_expired: bool | None = None  # None: this store has no leases


class StoreUnavailable(Exception):  # noqa: N818
    """The store cannot be used. The exception has a reason and a fix."""

    def __init__(
        self, reason: str, fix: str, *, damaged_path: str | None = None, is_busy: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
        self.is_busy = is_busy  # other processes hold the lock; a retry may succeed
        self.damaged_path = damaged_path  # path of the unreadable database


class KeyStillRunning(Exception):  # noqa: N818
    """A key cannot be forgotten because its call is running."""

    def __init__(self, entry: IdempotencyEntry) -> None:
        super().__init__(entry.scoped_key.key)
        self.entry = entry


def evaluate_entry(
    entry: IdempotencyEntry, fingerprint: str, can_rerun: bool, now: float
) -> BeginResult | None:
    """Return the result of `begin` for a call whose key has an entry.

    Returns None if the call may take the entry over.
    """
    retention = RETENTION_SECONDS if entry.state == "done" else UNFINISHED_RETENTION_SECONDS
    if now - (entry.ended or entry.started) > retention and not is_running(entry, now):
        return None
    if entry.fingerprint != fingerprint:
        return KeyMismatch(entry.started)
    if entry.state == "done":
        return StoredReplay(entry.outcome, entry.started)
    if is_running(entry, now):
        return AlreadyRunning(entry.started, entry.owner)
    return None if can_rerun else IndeterminateAttempt(entry.started, entry.owner, entry.outcome)


def is_running(entry: IdempotencyEntry, now: float) -> bool:
    """True if the call of an entry is running, as far as this process can tell."""
    if entry.state != "running":
        return False
    boot, _, _, start = _split_identity(entry.owner)
    if entry.lease_expired is not None and not boot:
        return not entry.lease_expired  # the PID may belong to any machine
    alive = is_alive(entry.owner)
    is_certain = bool(start) or entry.owner == current_process()
    if alive is False or (alive is True and is_certain):
        return alive
    if entry.lease_expired is not None:
        return not entry.lease_expired
    is_from_this_boot = boot == _split_identity(current_process())[0]
    return is_from_this_boot and now - entry.started < OWNER_LEASE_SECONDS


# ------------------------------------------------------------------ owners

# On Linux `is_alive` is reliable, because the start time distinguishes a process from a later one
# with the same PID. On other systems only the PID is known, so the age of the entry counts as well.
_identity_by_pid: dict[int, str] = {}


def current_process() -> str:
    """Return the identity of this process: `boot:namespace:pid:start`. Unknown parts are empty."""
    pid = os.getpid()
    if pid not in _identity_by_pid:
        _identity_by_pid.clear()  # after a fork
        prefix = f"{read_boot_id()}:{_pid_namespace()}"
        _identity_by_pid[pid] = f"{prefix}:{pid}:{_state_and_start_time(pid)[1]}"
    return _identity_by_pid[pid]


def is_alive(owner: str) -> bool | None:
    """True if a process is running; None if that cannot be checked from here."""
    current = current_process()
    if owner == current:
        return True
    boot, namespace, pid, start = _split_identity(owner)
    own_parts = _split_identity(current)
    if not pid.isdigit() or (boot, namespace) != own_parts[:2]:
        return None
    if start:
        state, found = _state_and_start_time(int(pid))
        return found == start and state not in ("Z", "X")
    return _pid_exists(int(pid))


def _split_identity(owner: str) -> tuple[str, str, str, str]:
    boot, namespace, pid, start = [*owner.split(":"), "", "", "", ""][:4]
    return boot, namespace, pid, start


def _pid_namespace() -> str:
    """Return the ID of the PID namespace. Each container on a machine has its own PIDs."""
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return ""


def _state_and_start_time(pid: int) -> tuple[str, str]:
    """Return the state and the start time of a process; empty strings if there is none."""
    stat = read_proc_file(f"/proc/{pid}/stat")
    fields = stat[stat.rfind(")") + 2 :].split()  # the program name may contain ")"
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


def _pid_exists(pid: int) -> bool | None:
    if os.name == "nt":  # on Windows, os.kill(pid, 0) sends Ctrl-C
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True


# ------------------------------------------------------------------ statements


class SqlDialect(Record):
    """The parts of the statements that differ between databases.

    Templates have `{}` where an expression is inserted.
    """

    table: str
    session_table: str  # see storage/session_store.py
    parameter: str  # placeholder of a parameter
    now: str  # the current time
    timestamp: str  # template: seconds since 1970 → the type of the column `started`
    epoch: str  # template: the column `started` → seconds since 1970
    interval: str  # template: number of seconds → a value that can be subtracted from a time
    empty_bytes: str
    set_timeout: str  # template: milliseconds → statement that sets the timeout of a connection
    lease: str | None = None  # end of a new lease; None if the table has no leases
    for_update: str = ""  # locks selected rows
    for_purge: str = ""  # locks selected rows, and skips rows that others have locked


class _Statements:
    """The statements of the store in one dialect."""

    def __init__(self, dialect: SqlDialect) -> None:
        table, p, now = dialect.table, dialect.parameter, dialect.now
        epoch, age = dialect.epoch.format, "coalesce(ended, started)"
        lease_expired = "NULL" if dialect.lease is None else f"lease < {now}"
        lease_column = "" if dialect.lease is None else ", lease"
        lease_value = "" if dialect.lease is None else f", {dialect.lease}"
        lease_update = "" if dialect.lease is None else ", lease = excluded.lease"
        columns = (
            f"{epoch(now)}, tool, principal, key, fingerprint, state, owner, attempt, "
            f"{epoch('started')}, {epoch('ended')}, {lease_expired}"
        )
        listed = f"{columns}, {dialect.empty_bytes} FROM {table}"
        is_key = f"tool = {p} AND principal = {p} AND key = {p}"
        of_app = f"(tool = {p} OR substr(tool, 1, {p}) = {p})"
        # The join returns a row with the time of the database even if there is no entry.
        self.find = (
            f"SELECT {columns}, outcome FROM (SELECT 1) AS one LEFT JOIN {table} ON {is_key}"
        )
        self.claim = (
            f"INSERT INTO {table} (tool, principal, key, fingerprint, owner, attempt, started, "
            f"state{lease_column}) VALUES ({p}, {p}, {p}, {p}, {p}, {p}, "
            f"{dialect.timestamp.format(p)}, 'running'{lease_value}) "
            "ON CONFLICT (tool, principal, key) DO UPDATE SET fingerprint = excluded.fingerprint, "
            "state = 'running', owner = excluded.owner, attempt = excluded.attempt, "
            f"started = excluded.started, ended = NULL, outcome = {dialect.empty_bytes}"
            f"{lease_update} WHERE {table}.attempt = {p} AND {table}.state = {p}"
        )
        self.finish = (
            f"UPDATE {table} SET state = {p}, outcome = {p}, ended = {now} "
            f"WHERE {is_key} AND attempt = {p}"
        )
        self.release = f"DELETE FROM {table} WHERE {is_key} AND attempt = {p}"
        self.list_all = f"SELECT {listed} WHERE {of_app} ORDER BY started DESC LIMIT {p}"
        self.list_unfinished = (
            f"SELECT {listed} WHERE {of_app} AND state <> 'done' ORDER BY started DESC LIMIT {p}"
        )
        self.find_by_key = f"SELECT {listed} WHERE {of_app} AND key = {p}"
        self.forget = f"DELETE FROM {table} WHERE {of_app} AND key = {p}"
        self.of_tool = f" AND tool = {p}"
        self.for_update = dialect.for_update
        self.purge = (
            f"DELETE FROM {table} WHERE (tool, principal, key) IN "
            f"(SELECT tool, principal, key FROM {table} "
            f"WHERE {age} < {now} - {dialect.interval.format(RETENTION_SECONDS)} "
            f"AND (state = 'done' OR {age} < {now} - "
            f"{dialect.interval.format(UNFINISHED_RETENTION_SECONDS)}) "
            f"ORDER BY {age} LIMIT {MAX_PURGED_ENTRIES}{dialect.for_purge})"
        )


def _entry_from_row(row: Any) -> tuple[float, IdempotencyEntry | None]:
    """Return the time of the database, and the entry if the row has one."""
    now, tool, principal, key, fingerprint, state, owner, attempt, started, ended, lapsed, data = (
        row
    )
    if tool is None:
        return now, None
    scoped_key = ScopedKey(tool, principal, key)
    return now, IdempotencyEntry(
        scoped_key, fingerprint, state, owner, attempt, started, bytes(data), ended, lapsed
    )


# ------------------------------------------------------------------ the store


class IdempotencyStore:
    """A store of idempotency keys in an SQL database.

    Every method is atomic. Every method except `close` raises StoreUnavailable if the database
    cannot be used.
    """

    def __init__(self, dialect: SqlDialect) -> None:
        self.dialect = dialect
        self._statements = _Statements(dialect)
        self._lock = allocate_lock()
        self._connection: Any = None
        self._connection_timeout: float | None = None  # seconds; None if it is not set

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
        """Start a call with a key, unless the key is in use.

        Args:
            scoped_key: the key.
            fingerprint: identifies the tool and its arguments.
            can_rerun: a stopped call may run again.
            durable: the entry must survive a power failure.
            timeout: seconds to wait for other processes.
            require_intact: refuse the call if a damaged database may have held its key.
        """
        token = AttemptToken(scoped_key, os.urandom(12).hex(), durable, timeout)
        attempt_values = (fingerprint, current_process(), token.attempt)

        def begin_call(connection: SqlConnection) -> BeginResult:
            while True:  # repeat if another process changes the entry between find and claim
                row = connection.execute(self._statements.find, scoped_key.columns).fetchone()
                now, entry = _entry_from_row(row)
                replaced = ("", "")
                if entry is not None:
                    if entry.attempt == token.attempt:  # the connection broke after the insert
                        return NewAttempt(token, entry.started)
                    result = evaluate_entry(entry, fingerprint, can_rerun, now)
                    if result is not None:
                        return result
                    replaced = (entry.attempt, entry.state)
                self._prepare_claim(require_intact)
                self.prepare_write(connection, durable)
                values = (*scoped_key.columns, *attempt_values, now, *replaced)
                if connection.execute(self._statements.claim, values).rowcount > 0:
                    if token.attempt[0] == "0":  # one call in sixteen
                        connection.execute(self._statements.purge)
                    return NewAttempt(token, now)

        result = self.execute(begin_call, timeout)
        if isinstance(result, NewAttempt):
            self._attempt_started(token)
        return result

    def finish(self, token: AttemptToken, state: str, outcome: bytes) -> bool:
        """Finish an entry; return False if another process has taken it over."""
        values = (state, outcome, *token.scoped_key.columns, token.attempt)

        def finish_entry(connection: SqlConnection) -> bool:
            self.prepare_write(connection, token.durable)
            return connection.execute(self._statements.finish, values).rowcount > 0

        return self.execute(finish_entry, token.timeout)

    def release(self, token: AttemptToken) -> None:
        """Delete an entry, so that the next call with its key is new."""
        values = (*token.scoped_key.columns, token.attempt)
        self.execute(
            lambda connection: connection.execute(self._statements.release, values), token.timeout
        )

    def entries(
        self, app: str, limit: int, *, unfinished_only: bool = False
    ) -> Iterator[IdempotencyEntry]:
        """Yield the entries of an app without their outcomes, newest first."""
        if not self._exists():
            return iter(())
        statements = self._statements
        statement = statements.list_unfinished if unfinished_only else statements.list_all
        rows = self.execute(
            lambda connection: connection.execute(statement, (*_app_values(app), limit)).fetchall(),
            STORE_TIMEOUT_SECONDS,
        )
        return iter([entry for row in rows if (entry := _entry_from_row(row)[1]) is not None])

    def forget(
        self, app: str, key: str, tool: str | None = None, *, include_running: bool = False
    ) -> int:
        """Delete the entries of a key in an app, or in one tool; return how many were deleted.

        Raises:
            KeyStillRunning: one of the calls is running, and `include_running` is False. Nothing
                was deleted.
        """
        if not self._exists():
            return 0
        statements = self._statements
        of_tool = "" if tool is None else statements.of_tool
        values = (*_app_values(app), key, *(() if tool is None else (tool,)))

        def forget_key(connection: SqlConnection) -> int:
            self.prepare_write(connection, True)
            with self._transaction(connection):
                if not include_running:
                    find = statements.find_by_key + of_tool + statements.for_update
                    for row in connection.execute(find, values).fetchall():
                        now, entry = _entry_from_row(row)
                        if entry is not None and is_running(entry, now):
                            raise KeyStillRunning(entry)
                return connection.execute(statements.forget + of_tool, values).rowcount

        return self.execute(forget_key, STORE_TIMEOUT_SECONDS)

    def check(self, timeout: float) -> None:
        """Raise StoreUnavailable if the store does not answer within `timeout` seconds."""
        self.execute(lambda connection: connection.execute("SELECT 1"), timeout)

    def close(self) -> None:
        """Close the connection. The next call opens it again."""
        if self._lock.acquire(timeout=STORE_TIMEOUT_SECONDS):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    def execute(self, work: Callable[[SqlConnection], T], timeout: float) -> T:
        """Call `work` with the connection and return its result, within `timeout` seconds."""
        driver = self._load_driver()
        deadline = monotonic() + timeout  # includes waiting for other threads of this process
        if not self._lock.acquire(timeout=timeout):
            reason = "The idempotency store is in use by other threads."
            raise StoreUnavailable(reason, "Try again.", is_busy=True)
        try:
            return self._run(driver, work, deadline)
        finally:
            self._lock.release()

    def _set_timeout(self, connection: SqlConnection, timeout: float) -> None:
        if self._connection_timeout != timeout:
            connection.execute(self.dialect.set_timeout.format(int(timeout * 1000)))
            self._connection_timeout = timeout

    # -------------------------------------------------------------- implemented by subclasses

    def create_table(self, connection: SqlConnection, table: str, *statements: str) -> None:
        """Create a table if it does not exist."""
        raise NotImplementedError

    def _load_driver(self) -> Any:
        """Return the module that connects to the database."""
        raise NotImplementedError

    def _run(self, driver: Any, work: Callable[[SqlConnection], T], deadline: float) -> T:
        """Call `work` with the connection while the lock is held; retry it if that can help."""
        raise NotImplementedError

    def _disconnect(self) -> None:
        """Close the connection if there is one."""
        raise NotImplementedError

    def _transaction(self, connection: SqlConnection) -> AbstractContextManager[object]:
        """Return a context manager that commits at its end and rolls back after an exception."""
        raise NotImplementedError

    def _exists(self) -> bool:
        """True if the database may exist. If not, `entries` and `forget` do not create it."""
        return True

    def prepare_write(self, connection: SqlConnection, durable: bool) -> None:
        """Prepare the connection for a statement that writes."""

    def _attempt_started(self, token: AttemptToken) -> None:
        """Called when the call of a token starts to run."""

    def _prepare_claim(self, require_intact: bool) -> None:
        """Raise StoreUnavailable if the store must not accept new keys."""


def seconds_until(deadline: float) -> float:
    """Return the seconds until a deadline, rounded up to tenths, at least one tenth.

    Rounding makes most timeouts equal, so that the timeout of the connection is rarely set again.
    """
    return max(0.1, int((deadline - monotonic()) * 10 + 0.99) / 10)


def _app_values(app: str) -> tuple[str, int, str]:
    """Return the parameters that select the tools of an app."""
    return app, len(app) + 1, f"{app}."
