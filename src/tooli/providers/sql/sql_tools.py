"""Read the statements of an `SQLProvider`, and make their tools."""

from __future__ import annotations

import os
from typing import Any

from tooli.core.tool import Behavior
from tooli.errors import DefinitionError, ToolError
from tooli.providers.provider import described_tool
from tooli.providers.sql.sql_calls import StatementCall
from tooli.providers.sql.sql_database import Analysis, CallStop, SqlDatabase, quote_name
from tooli.providers.sql.sql_file import (
    MANY,
    Statement,
    StatementProblem,
    parse_sql_file,
    parse_statement,
    read_sql_file,
    sql_files,
)
from tooli.providers.sql.sql_postgres import PostgresDatabase
from tooli.providers.sql.sql_sqlite import SqliteDatabase
from tooli.providers.sql.sql_types import ParameterCheck
from tooli.schema.described import clean_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.providers.sql.sql_provider import SQLProvider

MAX_TABLE_ROWS = 10_000
"""Maximum number of statements that a table may have."""
_POSTGRES_SCHEMES = ("postgresql://", "postgres://")


class SqlTools:
    """The tools of a provider, and the database that they use.

    A relative path of the database starts at the folder. The statements are at a path, in a dict,
    or in a table.
    """

    def __init__(
        self,
        provider: SQLProvider,
        database: str,
        folder: str,
        statements: str | Mapping[str, str] | None,
        table: str = "",
    ) -> None:
        self._provider = provider
        self._database_text = database
        self._folder = folder
        self._statements = statements
        self._table = table
        self._database: SqlDatabase | None = None
        self._files: dict[str, tuple[list[Statement], dict[str, str]]] = {}
        self.problems: Mapping[str, str] = {}
        self.fingerprint: object = None  # of the files that were read
        self.is_complete = True  # False: the database could not be reached

    def read(self) -> list[Tool]:
        """Return a tool for each statement, and note the problems of the others."""
        self.fingerprint = self.snapshot()
        statements, problems = self._read_statements()
        database = self._open_database()
        found: list[Tool] = []
        try:
            results = list(database.analyze(statements, writes=self._writes))
            self.is_complete = True
        except ToolError as failure:
            if not statements:
                raise
            self.is_complete = False
            problems["database"] = f"{failure.message} The statements are not checked yet."
            results = [_unchecked(statement) for statement in statements]
        for statement, result in zip(statements, results, strict=True):
            try:
                if isinstance(result, StatementProblem):
                    raise result
                found.append(self._make_tool(database, statement, result))
            except (StatementProblem, DefinitionError) as failure:
                reason = getattr(failure, "message", None) or str(failure)
                problems[".".join(statement.path)] = clean_text(reason, 500)
        self.problems = problems
        return found

    @property
    def _writes(self) -> bool | None:
        read_only = self._provider.read_only
        return None if read_only is None else not read_only

    def _make_tool(self, database: SqlDatabase, statement: Statement, found: Analysis) -> Tool:
        behavior = self._behavior(statement, found)
        parameters = found.parameters
        schema: JsonObject = {
            "type": "object",
            "properties": {p.name: p.schema() for p in parameters},
            "required": [p.name for p in parameters if p.required],
        }
        may_read = behavior.read_only or not found.is_checked
        returns_page = may_read and statement.result == MANY
        run = StatementCall(
            database, statement, found, self._provider.max_rows, writes=self._writes
        )
        options: dict[str, Any] = {"paginated": self._provider.page_size} if returns_page else {}
        tool = described_tool(
            statement.path,
            run,
            input_schema=schema,
            output_schema=found.output_schema(statement.result) if found.is_checked else None,
            description=statement.description or _summary(found, statement),
            annotations=behavior,
            stops_itself=True,
            timeout=statement.timeout or self._provider.timeout,
            tags=statement.tags,
            **options,
        )
        if not behavior.read_only:  # a dry run runs it, and rolls it back
            setattr(tool.fn, "tooli_supports_dry_run", True)  # noqa: B010
            setattr(tool.fn, "tooli_dry_run_allow", database.dry_run_allow)  # noqa: B010
        check = ParameterCheck(parameters, schema, tool.key)
        limits = tool.limits.replace(returns_page=returns_page)
        return tool.replace(argument_check=check, is_streaming=returns_page, limits=limits)

    def _behavior(self, statement: Statement, found: Analysis) -> Behavior:
        """Return the effects: what the database says, and what the author adds."""
        if not found.is_checked:  # a call checks it first, and refuses to destroy data
            return Behavior()
        if found.reads_only:
            return Behavior(read_only=True)
        if self._provider.read_only:
            raise StatementProblem("it writes, and the provider has read_only=True")
        is_additive = "additive" in statement.effects
        if is_additive and not found.is_additive:
            raise StatementProblem("it changes rows, so that it is not 'effects: additive'")
        return Behavior(destructive=not is_additive, idempotent="idempotent" in statement.effects)

    # -------------------------------------------------------------- statements

    def _read_statements(self) -> tuple[list[Statement], dict[str, str]]:
        is_postgres = self._resolve_database().startswith(_POSTGRES_SCHEMES)
        if self._table:
            return self._read_table(self._open_database(), self._table)
        if self._statements is None:
            return self._open_database().catalog_statements(), {}
        if not isinstance(self._statements, str):
            return self._parse_mapping(self._statements, is_postgres)
        if not os.path.exists(self._statements):
            raise DefinitionError(f"{self._statements} does not exist")
        files: dict[str, tuple[list[Statement], dict[str, str]]] = {}
        for path, name in sql_files(self._statements):
            try:
                files[name] = parse_sql_file(read_sql_file(path), name, is_postgres=is_postgres)
            except StatementProblem as problem:
                before, _ = self._files.get(name, ([], {}))
                kept = "; its last statements are kept" if before else ""
                files[name] = before, {name: f"{problem}{kept}"}
        self._files = files
        statements = [statement for found, _ in files.values() for statement in found]
        problems = {key: text for _, found in files.values() for key, text in found.items()}
        return statements, problems

    def _read_table(
        self, database: SqlDatabase, table: str
    ) -> tuple[list[Statement], dict[str, str]]:
        """Read the statements in a table of the database."""
        name = ".".join([quote_name(part) for part in table.split(".")])
        (found,) = database.analyze([Statement("table", f"SELECT * FROM {name}")], writes=False)
        if isinstance(found, StatementProblem):
            raise DefinitionError(f"the table {table!r} of statements cannot be read: {found}")
        statements: dict[str, str] = {}
        problems: dict[str, str] = {}
        with database.read(found, (), CallStop()) as rows:
            missing = {"name", "sql"} - {*rows.names}
            if missing:
                raise DefinitionError(f"the table {table!r} has no column {min(missing)!r}")
            for row in rows.fetch(MAX_TABLE_ROWS):
                texts = {k: str(v or "") for k, v in zip(rows.names, row, strict=True)}
                title = texts["name"]
                if title in statements:
                    problems[clean_text(title, 100)] = "an earlier row has its name"
                    continue
                header = [*texts.get("description", "").splitlines()]
                header += texts.get("parameters", "").splitlines()
                lines = [f"-- {line.strip().removeprefix('--').strip()}" for line in header]
                statements[title] = "\n".join([*lines, texts["sql"]])
        made, others = self._parse_mapping(statements, database.is_postgres)
        return made, {**problems, **others}

    def _parse_mapping(
        self, statements: Mapping[str, str], is_postgres: bool
    ) -> tuple[list[Statement], dict[str, str]]:
        found: list[Statement] = []
        problems: dict[str, str] = {}
        for name, sql in statements.items():
            try:
                found.append(parse_statement(name, sql, is_postgres=is_postgres))
            except StatementProblem as problem:
                problems[clean_text(name, 100)] = str(problem)
        return found, problems

    # -------------------------------------------------------------- database

    def _resolve_database(self) -> str:
        """Return the file or the URL of the database; raise DefinitionError if it has none."""
        text = self._database_text
        if text.startswith("env:"):
            variable = text[4:]
            text = os.environ.get(variable, "")
            if not text:
                raise DefinitionError(
                    f"the environment variable {variable} is not set; it has to contain the "
                    "database: an SQLite file or a URL postgresql://…"
                )
        for prefix in ("sqlite:///", "sqlite:"):
            text = text.removeprefix(prefix)
        scheme = text.partition("://")[0] if "://" in text else ""
        if scheme and not text.startswith(_POSTGRES_SCHEMES):
            is_variable = self._database_text.startswith("env:")  # its value may be a secret
            kind = f"of {self._database_text}" if is_variable else f"of the kind {scheme[:20]!r}"
            raise DefinitionError(
                f"databases {kind} are not supported; use an SQLite file or a URL postgresql://…"
            )
        return text

    def _open_database(self) -> SqlDatabase:
        """Return the database. No connection is made yet."""
        if self._database is None:
            text = self._resolve_database()
            if text.startswith(_POSTGRES_SCHEMES):
                self._database = PostgresDatabase(text)
            else:
                # the variable may not contain a database at all, but a secret
                name = self._database_text if self._database_text.startswith("env:") else None
                self._database = SqliteDatabase(os.path.join(self._folder, text), name)
        return self._database

    # -------------------------------------------------------------- files

    def snapshot(self) -> object:
        """Return what identifies the content of the files."""
        found: list[tuple[str, int, int, int]] = []
        if isinstance(self._statements, str):
            for path, name in sql_files(self._statements):
                try:
                    info = os.stat(path)
                except OSError:
                    continue
                found.append((name, info.st_mtime_ns, info.st_size, info.st_ino))
        return found

    def close(self) -> None:
        """Close the connections."""
        if self._database is not None:
            self._database.close()


def _unchecked(statement: Statement) -> Analysis:
    """Return what only the file says about a statement."""
    names = tuple([parameter.name for parameter in statement.parameters])
    return Analysis(sql=statement.sql, names=names, parameters=statement.parameters)


def _summary(found: Analysis, statement: Statement) -> str:
    """Return the description of a statement whose author has written none."""
    if found.columns:
        return f"Return {', '.join([column.name for column in found.columns])[:200]}."
    verbs = [f"{verb} {table}" for verb, table in found.actions]
    return f"{', '.join(verbs)[:200].capitalize()}." if verbs else f"Run {statement.name}."
