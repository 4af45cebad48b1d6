"""SessionStore: the values of `ctx.state`, for sessions that several processes serve.

    ctx.state ─▶ SessionState ─▶ StoredSession ─▶ SessionStore ─▶ a row: version, scopes, values

A change reads the row, and writes it only if its version is the same as before. Otherwise another
call has changed the row, and the change is made again. So `setdefault` and `pop` are atomic in all
processes. The values are JSON: decoding it never runs code.

The table is in the idempotency store: the SQLite file of the user, or the Postgres server of the
setting `store`. It is created when a session first has a value.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import MutableMapping
from hashlib import sha256
from json import dumps, loads
from typing import Any

from tooli.core import Record
from tooli.core.event_loop import is_in_event_loop
from tooli.errors import (
    AuthError,
    InternalError,
    StateError,
    Suggestion,
    TemporaryError,
    ToolError,
)
from tooli.storage.idempotency_sqlite import close_at_exit, get_idempotency_store
from tooli.storage.idempotency_store import STORE_TIMEOUT_SECONDS, StoreUnavailable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from tooli.core.protocols import JsonObject
    from tooli.storage.idempotency_store import IdempotencyStore, SqlConnection

    T = TypeVar("T")

RETENTION_SECONDS = 7 * 24 * 3600.0
"""Seconds for which the values of a session that is not used are kept."""
MAX_STATE_BYTES = 1 << 20
"""Maximum size of the values of one session, as JSON."""
MAX_SESSIONS_PER_CALLER = 100
"""Maximum number of sessions of one caller that have values. Those used least recently lose them.

It is the number of open sessions that a caller can have where sessions are kept in memory.
"""
MAX_PURGED_SESSIONS = 64
"""Maximum number of expired sessions that one change deletes."""
EVENT_LOOP_WAIT_SECONDS = 2.0
"""Seconds to wait for other processes on an event loop. The wait blocks the loop."""
_TOUCH_SECONDS = RETENTION_SECONDS / 20  # reading notes that a session is used, after this time

_CREATE_TABLE = (
    "CREATE TABLE IF NOT EXISTS {table} (app TEXT NOT NULL, session TEXT NOT NULL, "
    "owner TEXT NOT NULL, version TEXT NOT NULL, scopes TEXT NOT NULL, "
    "used DOUBLE PRECISION NOT NULL, content TEXT NOT NULL, PRIMARY KEY (app, session))"
)


class SessionKey(Record):
    """One session of an app, and the caller who uses it."""

    app: str
    session: str  # the digest of its name
    owner: str  # the key of the caller
    scopes: frozenset[str] | None  # of the caller; None: all


class SessionRow(Record):
    """The row of a session."""

    version: str
    content: str | None  # None: it is known already


class SessionStore:
    """The rows of all sessions. Every method raises StoreUnavailable if the store fails."""

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store
        self._prepared: object = None  # the connection on which the table exists
        dialect = store.dialect
        self._dialect = dialect
        table, p = dialect.session_table, dialect.parameter
        now = dialect.epoch.format(dialect.now)
        is_key = f"app = {p} AND session = {p}"
        self._find = (
            f"SELECT version, scopes, CASE WHEN version = {p} THEN NULL ELSE content END, used, "
            f"{now} FROM {table} WHERE {is_key}"
        )
        self._insert = (
            f"INSERT INTO {table} (app, session, owner, version, scopes, used, content) "
            f"VALUES ({p}, {p}, {p}, {p}, {p}, {now}, {p}) ON CONFLICT (app, session) DO NOTHING"
        )
        self._update = (
            f"UPDATE {table} SET version = {p}, scopes = {p}, used = {now}, content = {p} "
            f"WHERE {is_key} AND version = {p}"
        )
        self._touch = f"UPDATE {table} SET used = {now} WHERE {is_key}"
        self._delete_expired = (
            f"DELETE FROM {table} WHERE (app, session) IN (SELECT app, session FROM {table} "
            f"WHERE used < {now} - {RETENTION_SECONDS} ORDER BY used LIMIT {MAX_PURGED_SESSIONS})"
        )
        self._delete_surplus = (
            f"DELETE FROM {table} WHERE (app, session) IN (SELECT app, session FROM {table} "
            f"WHERE app = {p} AND owner = {p} ORDER BY used DESC "
            f"LIMIT {MAX_PURGED_SESSIONS} OFFSET {MAX_SESSIONS_PER_CALLER})"
        )

    def find(self, key: SessionKey, known_version: str) -> SessionRow | None:
        """Return the row of a session, without its content if that has the known version.

        Raises an AuthError if the session was used with scopes that the caller does not have.
        """

        def find_row(connection: SqlConnection) -> SessionRow | None:
            self._prepare(connection)
            values = (known_version, key.app, key.session)
            row = connection.execute(self._find, values).fetchone()
            if row is None:
                return None
            version, scopes, content, used, now = row
            _check_scopes(key, scopes)
            if now - used > _TOUCH_SECONDS:
                connection.execute(self._touch, (key.app, key.session))
            return SessionRow(version, content)

        return self._execute(find_row)

    def write(self, key: SessionKey, known_version: str, version: str, content: str) -> bool:
        """Write the values of a session; return False if it has another version than the known one.

        The known version of a session without values is "".
        """
        scopes = dumps(None if key.scopes is None else sorted(key.scopes))

        def write_row(connection: SqlConnection) -> bool:
            self._prepare(connection)
            self._store.prepare_write(connection, False)
            names = (key.app, key.session)
            if known_version:
                values = (version, scopes, content, *names, known_version)
                count = connection.execute(self._update, values).rowcount
            else:
                values = (*names, key.owner, version, scopes, content)
                count = connection.execute(self._insert, values).rowcount
                connection.execute(self._delete_expired)
                connection.execute(self._delete_surplus, (key.app, key.owner))
            if count > 0:
                return True
            # The connection may have broken after the row was written.
            row = connection.execute(self._find, ("", *names)).fetchone()
            return row is not None and row[0] == version

        return self._execute(write_row)

    def _prepare(self, connection: SqlConnection) -> None:
        """Create the table if it does not exist. This is checked once for each connection."""
        if self._prepared is not connection:
            table = self._dialect.session_table
            self._store.create_table(connection, table, _CREATE_TABLE.format(table=table))
            self._prepared = connection

    def _execute(self, work: Callable[[SqlConnection], T]) -> T:
        seconds = EVENT_LOOP_WAIT_SECONDS if is_in_event_loop() else STORE_TIMEOUT_SECONDS
        return self._store.execute(work, seconds)


def _check_scopes(key: SessionKey, stored: str) -> None:
    """Raise an AuthError unless the caller has every scope that the session was used with."""
    found: list[str] | None = loads(stored)
    if key.scopes is None or (found is not None and key.scopes.issuperset(found)):
        return
    raise AuthError(
        "The session was used with scopes that this token does not have.",
        code="E2001",
        suggestion=Suggestion("fix", "Open a new session, or use a token with the same scopes."),
    )


_open_session_stores: dict[IdempotencyStore, SessionStore] = {}


def get_session_store(url: str | None) -> SessionStore:
    """Return the session store at a URL; without one, that of the current user."""
    store = get_idempotency_store(url)
    found = _open_session_stores.get(store)
    if found is None:
        found = _open_session_stores.setdefault(store, SessionStore(store))
    return found


class StoredSession(MutableMapping[str, Any]):
    """The values of one session in the store, for one request.

    A value that the function has got and changes in place is written by the next change, or by
    `flush` at the end of the call. In a forked process the values are those of `preload`.
    """

    def __init__(
        self,
        store_url: str | None,
        app: str,
        session: str,
        owner: str,
        scopes: frozenset[str] | None,
    ) -> None:
        self._store_url = store_url
        self._key = SessionKey(app, sha256(session.encode()).hexdigest()[:32], owner, scopes)
        self._pid = os.getpid()
        self._lock = allocate_lock()  # the threads of a call share the values
        self._version = ""  # of the row that was read; "": there was none
        self._content: str = "{}"  # its values as JSON
        self._values: dict[str, Any] = {}  # they may have changed in place
        self._failure: ToolError | None = None  # of `preload`

    # -------------------------------------------------------------- reading

    def __getitem__(self, key: str) -> Any:
        return self.load()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.load())

    def __len__(self) -> int:
        return len(self.load())

    def __contains__(self, key: object) -> bool:
        return key in self.load()

    def load(self) -> JsonObject:
        """Read the session and return its values, which must not be changed."""
        if self._pid == os.getpid():
            with self._lock:
                self._read()
        elif self._failure is not None:
            raise self._failure
        return self._values

    def preload(self) -> None:
        """Read the session, for a process that is forked later. An error is raised there."""
        try:
            self.load()
        except ToolError as failure:
            self._failure = failure

    def _read(self) -> None:
        row = self._call_store(lambda store: store.find(self._key, self._version))
        if row is None:
            self._take("", "{}")
        elif row.content is not None:
            self._take(row.version, row.content)

    def _take(self, version: str, content: str) -> None:
        """Take over the values of another version, except those that have changed in place."""
        if version == self._version:
            return
        before: JsonObject = loads(self._content)
        found: JsonObject = loads(content)
        for key, value in self._values.items():
            if key in found and (value == found[key] or value != before.get(key)):
                found[key] = value
        self._version, self._content, self._values = version, content, found

    # -------------------------------------------------------------- changes

    def __setitem__(self, key: str, value: Any) -> None:
        self._change(lambda values: values.__setitem__(key, value))

    def __delitem__(self, key: str) -> None:
        self._change(lambda values: values.__delitem__(key))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a value; set it to the default first if there is none."""
        return self._change(lambda values: values.setdefault(key, default))

    def pop(self, key: str, *default: Any) -> Any:
        """Remove a value and return it, or return the default."""
        return self._change(lambda values: values.pop(key, *default))

    def clear(self) -> None:
        """Remove all values."""
        self._change(lambda values: values.clear())

    def flush(self) -> None:
        """Write the values that have changed in place."""
        if self._values and self._pid == os.getpid():
            self._change(lambda values: None, is_read=True)

    def _change(self, change: Callable[[JsonObject], T], *, is_read: bool = False) -> T:
        """Make a change to the values, again if another process has changed them meanwhile."""
        with self._lock:
            while True:
                if not is_read:
                    self._read()
                is_read = False
                values = dict(self._values)
                result = change(values)
                content = encode_values(values)
                if content == self._content:
                    self._values = values
                    return result
                version = os.urandom(12).hex()
                if self._call_store(
                    lambda store, version=version, content=content: store.write(
                        self._key, self._version, version, content
                    )
                ):
                    self._version, self._content, self._values = version, content, values
                    return result

    def _call_store(self, work: Callable[[SessionStore], T]) -> T:
        try:
            result = work(get_session_store(self._store_url))
        except StoreUnavailable as error:
            raise TemporaryError(
                f"The state of the session cannot be used. {error.reason}",
                code="E4060",
                suggestion=Suggestion("ask_human", error.fix),
            ) from error
        close_at_exit()
        return result


def encode_values(values: JsonObject) -> str:
    """Return values as JSON. Raises an error if one is not JSON, or if they are too large."""
    try:
        content = dumps(values, separators=(",", ":"))
        is_same = loads(content) == values
    except (TypeError, ValueError, RecursionError):
        is_same, content = False, ""
    if not is_same:
        name, value = next((item for item in values.items() if not _is_json(item[1])), ("?", None))
        raise InternalError(
            f"ctx.state[{name!r}] is a value that is not JSON ({type(value).__name__}). This server"
            " keeps the state of sessions in a store, because several processes serve a session.",
            suggestion=Suggestion(
                "fix", "Store a dict, list, str, number, bool or None, such as value.model_dump()."
            ),
        )
    if len(content) > MAX_STATE_BYTES:
        raise StateError(
            f"The values of the session in ctx.state have more than {MAX_STATE_BYTES >> 20} MB.",
            suggestion=Suggestion("fix", "Remove values, or open a new session."),
        )
    return content


def _is_json(value: object) -> bool:
    try:
        return loads(dumps(value)) == value
    except (TypeError, ValueError, RecursionError):
        return False
