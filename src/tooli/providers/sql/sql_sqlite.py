"""SQLite: analyze statements, and run them on connections that can do nothing else.

SQLite itself says what a statement does: the authorizer names the tables, and the program of
EXPLAIN shows whether it opens a write transaction. A reading connection opens the file with
`mode=ro` and `query_only`. No connection allows ATTACH, PRAGMA, VACUUM and extensions.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from tooli.errors import DependencyError, Suggestion
from tooli.providers.sql.sql_database import (
    LOCK_SECONDS,
    Analysis,
    CallStop,
    Column,
    PageQuery,
    SqlDatabase,
    order_clause,
)
from tooli.providers.sql.sql_errors import sqlite_error
from tooli.providers.sql.sql_file import Statement, StatementProblem
from tooli.providers.sql.sql_lexer import replace_params, words
from tooli.providers.sql.sql_types import Parameter

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from tooli.core.protocols import JsonObject

MAX_VALUE_BYTES = 64 << 20
"""Maximum size of one value: SQLite cannot be stopped while it makes a value."""
_LIMIT_LENGTH, _LIMIT_ATTACHED = 0, 7
"""Numbers of limits, which the module has from Python 3.11 on."""
_STEPS_BETWEEN_CHECKS = 20_000
_SAFE_PRAGMAS = frozenset(
    (
        *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"),
        *("foreign_key_list", "function_list", "collation_list", "data_version"),
    )
)
_UNSAFE_FUNCTIONS = frozenset(("load_extension", "fts3_tokenizer"))
_REFUSED_ACTIONS = {
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_TRANSACTION: "BEGIN, COMMIT and ROLLBACK",
    sqlite3.SQLITE_SAVEPOINT: "SAVEPOINT",
}
_CHANGES = {
    sqlite3.SQLITE_INSERT: "insert",
    sqlite3.SQLITE_UPDATE: "update",
    sqlite3.SQLITE_DELETE: "delete",
    sqlite3.SQLITE_CREATE_TABLE: "create",
    sqlite3.SQLITE_CREATE_INDEX: "create",
    sqlite3.SQLITE_CREATE_VIEW: "create",
    sqlite3.SQLITE_CREATE_TRIGGER: "create",
    sqlite3.SQLITE_DROP_TABLE: "drop",
    sqlite3.SQLITE_DROP_INDEX: "drop",
    sqlite3.SQLITE_DROP_VIEW: "drop",
    sqlite3.SQLITE_DROP_TRIGGER: "drop",
    sqlite3.SQLITE_ALTER_TABLE: "alter",
    sqlite3.SQLITE_REINDEX: "reindex",
    sqlite3.SQLITE_ANALYZE: "analyze",
}
_CATALOGS = ("sqlite_master", "sqlite_temp_master", "sqlite_schema", "sqlite_temp_schema")
_ORDER_PARAMETER = "tooli_after_"

_LIST_TABLES = """
SELECT name, type FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name
"""
_DESCRIBE_TABLE = """
SELECT name, type, "notnull" AS not_null, pk AS primary_key
FROM pragma_table_info(:table) ORDER BY cid
"""

AuthorizerAction = tuple[int, "str | None", "str | None"]


class SqliteDatabase(SqlDatabase):
    """A database in an SQLite file."""

    dry_run_allow = ("fs:write",)

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path = path
        self.name = os.path.basename(path) if name is None else name  # in messages

    # -------------------------------------------------------------- connections

    def _connect(self, stop: CallStop, *, is_read_only: bool) -> sqlite3.Connection:
        """Open the file, which is never created."""
        if not os.path.isfile(self.path):
            raise DependencyError(
                f"The SQLite database {self.name!r} does not exist.",
                suggestion=Suggestion("fix", "Create the file, or correct its path in the app."),
            )
        connection = sqlite3.connect(
            f"{Path(self.path).absolute().as_uri()}?mode={'ro' if is_read_only else 'rw'}",
            uri=True,
            timeout=stop.remaining_time(LOCK_SECONDS) or 0.0,
            isolation_level=None,
            check_same_thread=False,  # a stream may be read from several threads, one by one
        )
        connection.text_factory = _decode
        set_limit: Any = getattr(connection, "setlimit", None)  # Python 3.10 has none
        if set_limit is not None:
            set_limit(_LIMIT_ATTACHED, 0)
            set_limit(_LIMIT_LENGTH, MAX_VALUE_BYTES)
        try:
            connection.execute("PRAGMA schema_version")  # reads the file
        except sqlite3.Error:
            connection.close()
            raise
        connection.set_progress_handler(lambda: stop.is_over, _STEPS_BETWEEN_CHECKS)
        stop.on_stop(connection.interrupt)
        return connection

    @contextmanager
    def _session(self, stop: CallStop, *, is_read_only: bool) -> Generator[sqlite3.Connection]:
        """Yield a connection that can only do what a statement may do."""
        connection = None
        try:
            connection = self._connect(stop, is_read_only=is_read_only)
            pragma = "query_only" if is_read_only else "foreign_keys"
            connection.execute(f"PRAGMA {pragma} = ON")
            connection.set_authorizer(_authorize)
            stop.check()
            yield connection
        except sqlite3.Error as failure:
            stop.check()
            raise sqlite_error(failure, self.name) from None
        finally:
            if connection is not None:
                connection.close()

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
        """Run a statement on a connection that cannot write."""
        bound = dict(zip(analysis.names, values, strict=True))
        sql = analysis.sql
        if page is not None:
            clause = ""
            if page.order_by:
                clause = order_clause(page, lambda at: f":{_ORDER_PARAMETER}{at}")
                bound.update({f"{_ORDER_PARAMETER}{i}": v for i, v in enumerate(page.after)})
            sql = f"SELECT * FROM (\n{sql}\n){clause} LIMIT :tooli_limit OFFSET :tooli_offset"
            limit = -1 if page.limit is None else page.limit
            bound.update(tooli_limit=limit, tooli_offset=page.offset)
        with self._session(stop, is_read_only=True) as connection:
            yield _Rows(connection.execute(sql, bound), stop)

    @contextmanager
    def write(
        self, analysis: Analysis, values: Sequence[Any], stop: CallStop
    ) -> Generator[_SqliteChange]:
        """Run a statement in a transaction, which is rolled back unless it is committed."""
        with self._session(stop, is_read_only=False) as connection:
            connection.set_authorizer(_authorize_all)
            connection.execute("BEGIN IMMEDIATE")
            connection.set_authorizer(_authorize)
            try:
                cursor = connection.execute(
                    analysis.sql, dict(zip(analysis.names, values, strict=True))
                )
                yield _SqliteChange(connection, cursor, stop)
            finally:
                connection.set_authorizer(_authorize_all)
                if connection.in_transaction:
                    connection.set_progress_handler(None, 0)
                    connection.execute("ROLLBACK")

    def catalog_statements(self) -> list[Statement]:
        """Return the statements that list and describe the tables."""
        table = Parameter("table", "text", description="The name of a table or view.")
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

    # -------------------------------------------------------------- analysis

    def analyze(
        self, statements: Sequence[Statement], *, writes: bool | None
    ) -> Iterator[Analysis | StatementProblem]:
        """Return what SQLite says about each statement; no statement runs."""
        stop = CallStop()
        try:
            connection = self._connect(stop, is_read_only=True)
        except sqlite3.Error as failure:
            raise sqlite_error(failure, self.name) from None
        try:
            viewer = self._connect(stop, is_read_only=True)
            try:
                strict = _strict_tables(viewer)
                for statement in statements:
                    try:
                        found = _analyze(connection, statement)
                        if found[0].reads_only:
                            yield _with_columns(viewer, *found, strict)
                        else:
                            yield found[0]
                    except StatementProblem as problem:
                        yield problem
            finally:
                viewer.close()
        except sqlite3.Error as failure:
            raise sqlite_error(failure, self.name) from None
        finally:
            connection.close()


class _Rows:
    """The rows of a statement that reads."""

    def __init__(self, cursor: sqlite3.Cursor, stop: CallStop) -> None:
        self._cursor = cursor
        self._stop = stop
        self.names = tuple([column[0] for column in cursor.description or ()])

    def fetch(self, count: int) -> list[tuple[Any, ...]]:
        """Return the next rows."""
        self._stop.check()
        return self._cursor.fetchmany(count)


class _SqliteChange:
    """A statement that has run in a transaction."""

    def __init__(
        self, connection: sqlite3.Connection, cursor: sqlite3.Cursor, stop: CallStop
    ) -> None:
        self._connection = connection
        self._stop = stop
        self.names = tuple([column[0] for column in cursor.description or ()])
        self.rows = cursor.fetchall() if self.names else []  # finishes a RETURNING
        self.affected = len(self.rows) if self.names else max(cursor.rowcount, 0)

    def commit(self) -> None:
        """Commit, unless the call has to end: then nothing has changed."""
        self._stop.check()
        self._connection.set_authorizer(_authorize_all)
        self._connection.execute("COMMIT")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _authorize(action: int, name: str | None, other: str | None, *_: object) -> int:
    """Refuse what no statement may do."""
    if action in _REFUSED_ACTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (name not in _SAFE_PRAGMAS):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and other in _UNSAFE_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _authorize_all(*_: object) -> int:
    """Allow everything: for BEGIN, COMMIT and ROLLBACK. Python 3.10 cannot remove an authorizer."""
    return sqlite3.SQLITE_OK


# ------------------------------------------------------------------ analysis


class _Recorder(dict[str, None]):
    """The parameters of a statement: SQLite asks for the value of each."""

    def __missing__(self, name: str) -> None:
        self[name] = None


def _analyze(
    connection: sqlite3.Connection, statement: Statement
) -> tuple[Analysis, list[AuthorizerAction]]:
    """Return the analysis of a statement without its columns, and what SQLite asks to allow."""
    actions: list[AuthorizerAction] = []

    def record(action: int, name: str | None, other: str | None, *_: object) -> int:
        actions.append((action, name, other))
        return _authorize(action, name, other)

    connection.set_authorizer(record)
    bound = _Recorder()
    try:
        program = connection.execute(f"EXPLAIN {statement.sql}", bound).fetchall()
    except (sqlite3.Error, sqlite3.Warning) as failure:
        raise StatementProblem(_refusal(actions) or str(failure)) from None
    refusal = _refusal(actions)
    codes = {action for action, _, _ in actions}
    if not refusal and not codes & {sqlite3.SQLITE_SELECT, *_CHANGES}:
        refusal = "SQLite does not say what it does; use SELECT, INSERT, UPDATE or DELETE"
    if refusal:
        raise StatementProblem(refusal)
    names = tuple(bound)
    is_write = any([row[1] == "Transaction" and row[3] for row in program])
    changes = [
        (_CHANGES[action], name or "")
        for action, name, _ in actions
        if action in _CHANGES and name not in _CATALOGS
    ]
    found = words(statement.sql, is_postgres=False)
    replaces = not {("replace", "into"), ("or", "replace")}.isdisjoint(pairwise(found))
    is_additive = {verb for verb, _ in changes} == {"insert"} and not replaces
    return Analysis(
        sql=statement.sql,
        names=names,
        parameters=_parameters(statement, names),
        reads_only=not is_write,
        is_additive=is_write and is_additive,
        actions=tuple(dict.fromkeys(changes)) if is_write else (),
        returns_rows=is_write and any([row[1] == "ResultRow" for row in program]),
        is_checked=True,
    ), actions


def _refusal(actions: list[AuthorizerAction]) -> str:
    """Return why a statement is not allowed, or ""."""
    for action, name, other in actions:
        if action in _REFUSED_ACTIONS:
            return f"{_REFUSED_ACTIONS[action]} is not allowed in a statement"
        if action == sqlite3.SQLITE_PRAGMA and name not in _SAFE_PRAGMAS:
            return f"PRAGMA {name} is not allowed in a statement"
        if action == sqlite3.SQLITE_FUNCTION and other in _UNSAFE_FUNCTIONS:
            return f"the function {other} is not allowed in a statement"
    return ""


def _parameters(statement: Statement, names: tuple[str, ...]) -> tuple[Parameter, ...]:
    """Return the declared parameters, and those that only the SQL has."""
    declared = [parameter.name for parameter in statement.parameters]
    unused = [name for name in declared if name not in names]
    if unused:
        raise StatementProblem(f"its SQL does not use the parameter :{unused[0]}")
    others = [Parameter(name, "any", is_declared=False) for name in names if name not in declared]
    return (*statement.parameters, *others)


def _strict_tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the tables whose columns have only values of their type."""
    try:
        rows = connection.execute("PRAGMA table_list").fetchall()
    except sqlite3.Error:
        rows = []
    return frozenset([row[1] for row in rows if row[5]])


def _with_columns(
    viewer: sqlite3.Connection,
    analysis: Analysis,
    actions: list[AuthorizerAction],
    strict: frozenset[str],
) -> Analysis:
    """Return the analysis with the columns, which a temporary view of the statement has."""
    without_params, _ = replace_params(analysis.sql, lambda _: "NULL", is_postgres=False)
    read = {name for action, name, _ in actions if action == sqlite3.SQLITE_READ and name}
    try:
        viewer.execute(f"CREATE TEMP VIEW tooli_columns AS {without_params}")
        try:
            rows = viewer.execute("PRAGMA temp.table_info(tooli_columns)").fetchall()
        finally:
            viewer.execute("DROP VIEW temp.tooli_columns")
    except sqlite3.Error:
        return analysis
    names = [row[1] for row in rows]
    for name in names:
        base, _, number = name.rpartition(":")
        if number.isdigit() and base in names:
            raise StatementProblem(f"several columns have the name {base!r}; name them with AS")
    is_strict = bool(read) and read <= strict
    return analysis.replace(columns=tuple([_column(r[1], r[2] or "", is_strict) for r in rows]))


def _column(name: str, declared: str, is_strict: bool) -> Column:
    """Return a column of a declared type. Only STRICT tables have no other values."""
    kind = declared.upper()
    if "BOOL" in kind:
        return Column(name, {"type": ["boolean", "number", "string", "null"]}, _to_bool)
    if "JSON" in kind:
        return Column(name, {"description": declared}, _from_json)
    if any([word in kind for word in ("CHAR", "CLOB", "TEXT")]):
        return Column(name, {"type": ["string", "null"]})
    if is_strict and kind in _STRICT_TYPES:
        return Column(name, {"type": [_STRICT_TYPES[kind], "null"]})
    schema: JsonObject = {"type": ["number", "string", "null"]}
    return Column(name, {**schema, "description": declared} if declared else schema)


_STRICT_TYPES = {"INT": "integer", "INTEGER": "integer", "REAL": "number", "BLOB": "string"}


def _to_bool(value: Any) -> Any:
    return bool(value) if value in (0, 1) else value


def _from_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
