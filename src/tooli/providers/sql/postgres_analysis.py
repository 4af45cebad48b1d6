"""Ask Postgres what a statement does, and which parameters and columns it has."""

from __future__ import annotations

import json
from typing import Any

from tooli.providers.sql.sql_database import Analysis, Column
from tooli.providers.sql.sql_file import Statement, StatementProblem
from tooli.providers.sql.sql_lexer import replace_params, words
from tooli.providers.sql.sql_types import TYPES, Parameter
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.core.protocols import JsonObject

_UNSAFE_FUNCTIONS = frozenset(
    (
        *("pg_read_file", "pg_read_binary_file", "pg_stat_file", "pg_ls_dir", "pg_ls_logdir"),
        *("pg_ls_waldir", "pg_ls_tmpdir", "pg_ls_archive_statusdir", "lo_import", "lo_export"),
        *("dblink", "dblink_exec", "dblink_connect", "dblink_connect_u", "dblink_send_query"),
        *("set_config", "pg_reload_conf", "pg_rotate_logfile", "pg_terminate_backend"),
        *("pg_cancel_backend", "pg_promote", "query_to_xml", "database_to_xml"),
    )
)
"""Functions that act outside of the transaction, or read files of the server."""

_COLUMN_TYPES: dict[str, str] = {
    "bool": "boolean",
    **dict.fromkeys(("int2", "int4", "int8", "oid"), "integer"),
    **dict.fromkeys(("float4", "float8"), "number"),
    **dict.fromkeys(
        (
            *("text", "varchar", "bpchar", "char", "name", "citext", "uuid", "bytea", "numeric"),
            *("date", "timestamp", "timestamptz", "time", "timetz", "interval", "inet", "cidr"),
            *("money", "xml", "bit", "varbit", "tsvector", "macaddr"),
        ),
        "string",
    ),
}
_PARAMETER_TYPES = {
    "bool": "bool",
    **dict.fromkeys(("int2", "int4", "int8", "oid"), "int"),
    **dict.fromkeys(("float4", "float8"), "float"),
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext"), "text"),
    **dict.fromkeys(("json", "jsonb"), "json"),
    "uuid": "uuid",
    "numeric": "decimal",
    "bytea": "bytes",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "datetime",
}
_NAME = "tooli_statement"


class PostgresAnalyzer:
    """Analyzes statements on a connection whose transactions are READ ONLY."""

    def __init__(self, psycopg: Any, connection: Any, *, writes: bool | None) -> None:
        self._psycopg = psycopg
        self._connection = connection
        self._writes = writes

    def analyze(self, statement: Statement) -> Analysis | StatementProblem:
        """Return what Postgres says about a statement, or what is wrong with it."""
        try:
            return self._analyze(statement)
        except StatementProblem as problem:
            return problem

    def _analyze(self, statement: Statement) -> Analysis:
        unsafe = _UNSAFE_FUNCTIONS & {*words(statement.sql, is_postgres=True)}
        if unsafe:
            raise StatementProblem(f"the function {min(unsafe)} is not allowed in a statement")
        declared = {parameter.name: parameter for parameter in statement.parameters}
        sql, names = self._prepare(statement, declared)
        try:
            described = self._connection.pgconn.describe_prepared(_NAME.encode())
            parameters = tuple(self._parameters(statement, names, described, declared))
            columns = tuple(self._columns(described))
            changes = self._changes(len(names))
        finally:
            self._execute(f"DEALLOCATE {_NAME}")
        seen: set[str] = set()
        for column in columns:
            if column.name in seen:
                problem = f"several columns have the name {column.name!r}; name them with AS"
                raise StatementProblem(problem)
            seen.add(column.name)
        writes = bool(changes) or self._writes is True or "write" in statement.effects
        return Analysis(
            sql=sql,
            names=names,
            parameters=parameters,
            reads_only=not writes,
            is_additive=bool(changes) and {verb for verb, _ in changes} == {"insert"},
            actions=changes,
            columns=columns or None,
            is_checked=True,
        )

    # -------------------------------------------------------------- the statement

    def _prepare(
        self, statement: Statement, declared: dict[str, Parameter]
    ) -> tuple[str, tuple[str, ...]]:
        """Prepare a statement; return its SQL with $1 for the first parameter, and their names.

        The types of its header are casts. Where Postgres does not accept these casts, it finds the
        types itself. Postgres prepares SELECT, INSERT, UPDATE, DELETE, MERGE and VALUES only, and
        only one statement.
        """
        failures: list[str] = []
        for has_casts in (True, False):
            numbers: dict[str, int] = {}

            def replacement(name: str, has_casts: bool = has_casts, n: Any = numbers) -> str:
                number = n.setdefault(name, len(n) + 1)
                return f"${number}{_cast(declared.get(name)) if has_casts else ''}"

            sql, names = replace_params(statement.sql, replacement, is_postgres=True)
            unused = [name for name in declared if name not in names]
            if unused:
                raise StatementProblem(f"its SQL does not use the parameter :{unused[0]}")
            try:
                self._execute(f"PREPARE {_NAME} AS {sql}")
                return sql, names
            except self._psycopg.Error as failure:
                self._raise_if_lost(failure)
                failures.append(failure.diag.message_primary or str(failure))
        raise StatementProblem(_explain_refusal(clean_text(failures[0], 300)))

    def _execute(self, sql: str) -> Any:
        """Run a command with the protocol that takes one command only; return its result."""
        result = self._connection.pgconn.exec_params(sql.encode(), None)
        if result.status not in (
            self._psycopg.pq.ExecStatus.COMMAND_OK,
            self._psycopg.pq.ExecStatus.TUPLES_OK,
        ):
            raise self._psycopg.errors.error_from_result(result)
        return result

    def _raise_if_lost(self, failure: Exception) -> None:
        if self._connection.closed or self._connection.broken:
            raise failure

    def _changes(self, count: int) -> tuple[tuple[str, str], ...]:
        """Return what the plan of the prepared statement changes."""
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        try:
            result = self._execute(f"EXPLAIN (FORMAT JSON) EXECUTE {_NAME}{values}")
            plan = json.loads(result.get_value(0, 0))
        except self._psycopg.Error as failure:
            self._raise_if_lost(failure)
            text = failure.diag.message_primary or str(failure)
            raise StatementProblem(f"Postgres cannot plan it: {clean_text(text, 300)}") from None
        return tuple(dict.fromkeys(_plan_changes(plan)))

    # -------------------------------------------------------------- types

    def _parameters(
        self,
        statement: Statement,
        names: tuple[str, ...],
        described: Any,
        declared: dict[str, Parameter],
    ) -> Iterator[Parameter]:
        yield from statement.parameters
        for position, name in enumerate(names):
            if name not in declared:
                type_name, is_array = self._type_name(described.param_type(position))
                kind = _PARAMETER_TYPES.get(type_name, "text")
                yield Parameter(name, kind, is_list=is_array, is_declared=False)

    def _columns(self, described: Any) -> Iterator[Column]:
        encoding = self._connection.info.encoding
        for position in range(described.nfields):
            name = described.fname(position).decode(encoding)
            type_name, is_array = self._type_name(described.ftype(position))
            yield Column(name, _column_schema(type_name, is_array), _CONVERTERS.get(type_name))

    def _type_name(self, oid: int) -> tuple[str, bool]:
        """Return the name of a type, and True if it is an array of that type."""
        info = self._psycopg.adapters.types.get(oid)
        if info is None:
            return "", False
        return info.name, info.array_oid == oid


def _cast(parameter: Parameter | None) -> str:
    if parameter is None or not TYPES[parameter.type].postgres:
        return ""
    return f"::{TYPES[parameter.type].postgres}{'[]' if parameter.is_list else ''}"


def _column_schema(type_name: str, is_array: bool) -> JsonObject:
    if is_array:
        return {"type": ["array", "null"]}
    kind = _COLUMN_TYPES.get(type_name)
    schema: JsonObject = {"type": [kind, "null"]} if kind else {}
    if kind == "string" and type_name not in ("text", "varchar", "bpchar", "name"):
        schema["description"] = type_name
    return schema


def _to_text(value: Any) -> Any:
    return value if isinstance(value, str) or is_list(value) else str(value)


_RANGES = ("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange")
_CONVERTERS: dict[str, Any] = dict.fromkeys((*_RANGES, "inet", "cidr"), _to_text)


def _plan_changes(plan: Any) -> Iterator[tuple[str, str]]:
    """Yield what the nodes of a plan change, such as ("update", "products")."""
    if is_list(plan):
        for part in plan:
            yield from _plan_changes(part)
    elif is_object(plan):
        kind = plan.get("Node Type")
        if kind == "ModifyTable":
            table = str(plan.get("Relation Name", ""))
            yield str(plan.get("Operation", "change")).lower(), table
            if plan.get("Conflict Resolution") == "UPDATE":
                yield "update", table
        elif kind == "LockRows":
            yield "lock", ""
        for key in ("Plan", "Plans"):
            yield from _plan_changes(plan.get(key))


def _explain_refusal(text: str) -> str:
    if text.startswith("syntax error at or near"):
        return f"{text}; use one SELECT, INSERT, UPDATE, DELETE, MERGE or VALUES"
    return text
