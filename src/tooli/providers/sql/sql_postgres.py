"""Postgres: analyze statements, and run them in transactions that can do nothing else.

Postgres prepares each statement, which names its parameters and columns, and explains it, which
shows what it changes. No statement runs for that. A statement that reads runs in a READ ONLY
transaction, through a cursor of the server. psycopg is imported when a connection is made.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any

from tooli.core.held_keys import hold_key
from tooli.errors import DependencyError, Suggestion, ToolError
from tooli.providers.sql.postgres_analysis import PostgresAnalyzer
from tooli.providers.sql.sql_database import (
    CONNECT_SECONDS,
    LOCK_SECONDS,
    Analysis,
    CallStop,
    PageQuery,
    SqlDatabase,
    order_clause,
)
from tooli.providers.sql.sql_errors import postgres_error
from tooli.providers.sql.sql_file import Statement
from tooli.providers.sql.sql_types import Parameter

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tooli.providers.sql.sql_file import StatementProblem

MAX_IDLE_CONNECTIONS = 4
MAX_IDLE_SECONDS = 60.0
ANALYSIS_SECONDS = 30.0
CANCEL_SECONDS = 1.0
"""How long the server has to accept the end of a statement."""
_DEFAULTS = {
    "application_name": "tooli",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Connection options that the URL can override. They detect a lost network in about ten seconds."""

_LIST_TABLES = """
SELECT n.nspname AS schema, c.relname AS name,
       CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END AS type
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog',
      'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%'
      AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2
"""
_DESCRIBE_TABLE = """
SELECT a.attname AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AS not_null, pg_catalog.col_description(a.attrelid, a.attnum) AS comment
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = pg_catalog.to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped
      AND pg_catalog.has_table_privilege(a.attrelid, 'SELECT') ORDER BY a.attnum
"""


class PostgresDatabase(SqlDatabase):
    """A database on a Postgres server."""

    is_postgres = True
    dry_run_allow = ("net:read", "net:write", "fs:read", "fs:write")

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: deque[tuple[float, Any]] = deque()
        self._pid = os.getpid()
        self._secrets: tuple[str, ...] = ()

    # -------------------------------------------------------------- connections

    def _connect(self, stop: CallStop) -> Any:
        psycopg = load_psycopg()
        try:
            options = psycopg.conninfo.conninfo_to_dict(self._url)
        except psycopg.ProgrammingError:  # its text may contain a part of the password
            raise DependencyError(
                "The URL of the database is not valid.",
                suggestion=Suggestion(
                    "fix", "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
                ),
            ) from None
        self._secrets = tuple([str(options[k]) for k in _SECRET_OPTIONS if options.get(k)])
        for secret in self._secrets:
            hold_key(secret)
        seconds = stop.remaining_time(CONNECT_SECONDS) or CONNECT_SECONDS
        defaults = {**_DEFAULTS, "connect_timeout": str(max(2, round(seconds)))}
        connection = psycopg.connect(
            autocommit=True, prepare_threshold=None, **{**defaults, **options}
        )
        register_loaders(psycopg, connection)
        return connection

    def _take(self, stop: CallStop) -> tuple[Any, bool]:
        """Return a connection, and True if it was used before."""
        if self._pid != os.getpid():  # after a fork: the parent uses these connections
            self._forget_connections()
        while True:
            try:
                since, connection = self._idle.pop()
            except IndexError:
                return self._connect(stop), False
            if monotonic() - since < MAX_IDLE_SECONDS and not connection.closed:
                return connection, True
            connection.close()

    def _release(self, connection: Any) -> None:
        """Keep a connection whose transaction has ended, without what the statement has set."""
        try:
            if connection.closed or len(self._idle) >= MAX_IDLE_CONNECTIONS:
                connection.close()
                return
            connection.execute("DISCARD ALL")
            self._idle.append((monotonic(), connection))
        except Exception:  # the connection is lost, and the result is complete
            connection.close()

    def _forget_connections(self) -> None:
        _inherited.append(self._idle)
        self._idle, self._pid = deque(), os.getpid()

    def close(self) -> None:
        """Close the idle connections."""
        if self._pid != os.getpid():
            return
        while self._idle:
            self._idle.pop()[1].close()

    @contextmanager
    def _transaction(self, stop: CallStop, mode: str) -> Generator[Any]:
        """Yield a connection in a transaction, which is rolled back unless it was committed."""
        connection: Any = None
        psycopg = load_psycopg()
        try:
            connection = self._begin(psycopg, stop, mode)
            yield connection
        except psycopg.Error as failure:
            stop.check()
            raise self._error(failure) from None
        finally:
            if connection is not None:
                self._end(connection)

    def _begin(self, psycopg: Any, stop: CallStop, mode: str) -> Any:
        """Start a transaction. A lost connection is replaced, because nothing has run yet."""
        left = stop.remaining_time()
        # the query after BEGIN makes it impossible to change the mode of the transaction
        begin = f"BEGIN {mode}; SELECT set_config('lock_timeout', '{LOCK_SECONDS:.0f}s', true)"
        if left is not None:
            begin += f", set_config('statement_timeout', '{max(1, round(left * 1000))}', true)"
        while True:
            connection, was_used = self._take(stop)
            try:
                connection.execute(begin)
                stop.on_stop(partial(cancel, connection))
                stop.check()
                return connection
            except psycopg.OperationalError:
                connection.close()
                if not was_used:
                    raise
            except BaseException:
                connection.close()
                raise

    def _end(self, connection: Any) -> None:
        try:
            if not connection.closed and connection.info.transaction_status:
                connection.execute("ROLLBACK")
            self._release(connection)
        except Exception:  # the transaction ends with the connection
            connection.close()

    def _error(self, failure: Exception) -> ToolError:
        return postgres_error(failure, self._secrets)

    # -------------------------------------------------------------- runs

    @contextmanager
    def read(
        self,
        analysis: Analysis,
        values: Sequence[Any],
        stop: CallStop,
        *,
        page: PageQuery | None = None,
    ) -> Generator[_Rows]:
        """Run a statement through a cursor of the server, in a READ ONLY transaction."""
        sql, bound = analysis.sql, list(values)
        if page is not None and page.order_by:
            count = len(bound)
            clause = order_clause(page, lambda at: f"${count + at + 1}")
            sql = f"SELECT * FROM (\n{sql}\n) AS tooli_page{clause}"
            bound += [value if isinstance(value, str) else str(value) for value in page.after]
        psycopg = load_psycopg()
        with (
            self._transaction(stop, "READ ONLY") as connection,
            psycopg.RawServerCursor(connection, "tooli_rows") as cursor,
        ):
            cursor.execute(sql, bound)
            if page is not None and page.offset:
                cursor.scroll(page.offset)
            yield _Rows(cursor, stop)

    @contextmanager
    def write(
        self, analysis: Analysis, values: Sequence[Any], stop: CallStop
    ) -> Generator[_PostgresChange]:
        """Run a statement in a transaction, which is rolled back unless it is committed."""
        psycopg = load_psycopg()
        with (
            self._transaction(stop, "READ WRITE") as connection,
            psycopg.RawCursor(connection) as cursor,
        ):
            cursor.execute(analysis.sql, list(values))
            yield _PostgresChange(connection, cursor, stop)

    # -------------------------------------------------------------- analysis

    def analyze(
        self, statements: Sequence[Statement], *, writes: bool | None
    ) -> list[Analysis | StatementProblem]:
        """Return what Postgres says about each statement; no statement runs."""
        psycopg = load_psycopg()
        connection: Any = None
        try:
            connection, was_used = self._take(CallStop())
            try:
                connection.execute(_ANALYSIS_SETTINGS)
            except psycopg.OperationalError:
                if not was_used:
                    raise
                connection.close()
                connection = self._connect(CallStop())
                connection.execute(_ANALYSIS_SETTINGS)
            analyzer = PostgresAnalyzer(psycopg, connection, writes=writes)
            found = [analyzer.analyze(statement) for statement in statements]
        except psycopg.Error as failure:
            raise self._error(failure) from None
        finally:
            if connection is not None:
                self._end(connection)
        return found

    def catalog_statements(self) -> list[Statement]:
        """Return the statements that list and describe the tables."""
        table = Parameter(
            "table", "text", description="The name of a table or view, such as public.orders."
        )
        return [
            Statement("list-tables", _LIST_TABLES, description="List the tables and views."),
            Statement(
                "describe-table",
                _DESCRIBE_TABLE,
                description="List the columns of a table or view.",
                parameters=(table,),
                missing="There is no table {table!r}.",
            ),
        ]


_SECRET_OPTIONS = ("password", "sslpassword")
_ANALYSIS_SETTINGS = (
    "SELECT set_config('default_transaction_read_only', 'on', false), "
    "set_config('plan_cache_mode', 'force_generic_plan', false), "
    f"set_config('statement_timeout', '{ANALYSIS_SECONDS:.0f}s', false), "
    f"set_config('lock_timeout', '{LOCK_SECONDS:.0f}s', false)"
)


class _Rows:
    """The rows of a cursor of the server."""

    def __init__(self, cursor: Any, stop: CallStop) -> None:
        self._cursor = cursor
        self._stop = stop
        self.names = tuple([column.name for column in cursor.description or ()])

    def fetch(self, count: int) -> Sequence[Sequence[Any]]:
        """Return the next rows."""
        self._stop.check()
        return self._cursor.fetchmany(count)


class _PostgresChange:
    """A statement that has run in a transaction."""

    def __init__(self, connection: Any, cursor: Any, stop: CallStop) -> None:
        self._connection = connection
        self._stop = stop
        self.names = tuple([column.name for column in cursor.description or ()])
        self.rows: Sequence[Sequence[Any]] = cursor.fetchall() if self.names else ()
        self.affected = max(cursor.rowcount, 0)

    def commit(self) -> None:
        """Commit, unless the call has to end: then nothing has changed."""
        self._stop.check()
        self._connection.execute("COMMIT")


def cancel(connection: Any) -> None:
    """End the statement of a connection. If the server does not answer, end the connection.

    The old `connection.cancel()` would block all threads until the server answers.
    """
    try:
        connection.cancel_safe(timeout=CANCEL_SECONDS)
    except Exception:
        with socket.socket(fileno=os.dup(connection.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)


_inherited: list[object] = []
"""Connections that another process uses. They are kept, because their end would be sent to it."""


def load_psycopg() -> Any:
    """Return psycopg; raise DependencyError if it is not installed."""
    try:
        import psycopg
    except ImportError as missing:
        raise DependencyError(
            f"A Postgres database needs psycopg, which cannot be loaded: {missing}.",
            suggestion=Suggestion("fix", "Run: pip install 'tooli[postgres]'"),
        ) from None
    if not hasattr(psycopg, "RawServerCursor"):
        raise DependencyError(
            f"A Postgres database needs psycopg 3.2 or newer; this is {psycopg.__version__}.",
            suggestion=Suggestion("fix", "Run: pip install --upgrade 'tooli[postgres]'"),
        )
    return psycopg


def register_loaders(psycopg: Any, connection: Any) -> None:
    """Load dates that Python cannot represent, such as infinity, as their text."""
    from psycopg.types import datetime as loaders

    for name, loader in (
        ("date", loaders.DateLoader),
        ("timestamp", loaders.TimestampLoader),
        ("timestamptz", loaders.TimestamptzLoader),
        ("interval", loaders.IntervalLoader),
        ("time", loaders.TimeLoader),
    ):
        connection.adapters.register_loader(name, _make_loader(psycopg, loader))


def _make_loader(psycopg: Any, loader: Any) -> Any:
    def load(self: Any, data: Any) -> Any:
        try:
            return loader.load(self, data)
        except psycopg.DataError:
            return bytes(data).decode()

    return type(f"{loader.__name__}OrText", (loader,), {"load": load})
