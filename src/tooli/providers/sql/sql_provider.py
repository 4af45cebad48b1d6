"""SQLProvider: named SQL statements as tools.

    app.add_provider(SQLProvider("shop.db", "statements.sql"), namespace="shop")

A statement that reads returns pages, or a stream. A statement that writes runs in a transaction,
which a dry run rolls back. Its arguments are bound, so they never become SQL. The module that reads
the statements is loaded when the tools are first needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from threading import Event, Lock, Thread

from tooli.core.timeout_values import parse_timeout
from tooli.errors import DefinitionError, calling_location
from tooli.providers.provider import Provider

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.providers.sql.sql_tools import SqlTools

DEFAULT_TIMEOUT = 30.0
DEFAULT_PAGE_SIZE = 100
DEFAULT_MAX_ROWS = 10_000
POLL_SECONDS = 0.5
"""Seconds between two checks of the files."""
_CHECKS_BETWEEN_CONNECTIONS = 20
"""Checks of the files until a database is tried again that could not be reached."""


class SQLProvider(Provider):
    """A provider of named SQL statements.

    Args:
        database: An SQLite file, a URL `postgresql://…`, or `env:NAME` for a variable that has one
            of these. A relative path starts at the folder of the file that calls this.
        statements: A `.sql` file, a folder of them, a dict of names and SQL, or `table:NAME` for a
            table of the database. Without it, the tools are `list-tables` and `describe-table`.
        name: The name in messages. The default is the name of the file of the statements.
        read_only: True leaves out statements that write. False also runs those that read in a
            transaction that may write. None lets the database decide which statements only read.
        timeout: The maximum number of seconds of a statement.
        page_size: The rows of a page, unless the caller sets a limit.
        max_rows: The maximum number of rows of an answer that is not a stream.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        statements: str | os.PathLike[str] | Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        read_only: bool | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        page_size: int = DEFAULT_PAGE_SIZE,
        max_rows: int = DEFAULT_MAX_ROWS,
    ) -> None:
        _check_arguments(database, statements, timeout, page_size, max_rows)
        location, _, _ = calling_location().rpartition(":")
        is_file = os.path.isfile(location)
        self._folder = os.path.dirname(os.path.abspath(location)) if is_file else os.getcwd()
        self._database = os.fspath(database)
        self._statements: str | Mapping[str, str] | None
        self._table = ""
        if statements is None or isinstance(statements, Mapping):
            self._statements = statements
        elif isinstance(statements, str) and statements.startswith("table:"):
            self._statements, self._table = None, statements.removeprefix("table:")
        else:
            self._statements = os.path.normpath(os.path.join(self._folder, os.fspath(statements)))
        self.name = name or self._default_name()
        self.description = f"Statements of {self.name}."
        self.read_only = read_only
        self.timeout = timeout
        self.page_size = min(page_size, max_rows)
        self.max_rows = max_rows
        self._source: SqlTools | None = None
        self._end = Event()
        self._lock = Lock()

    def _default_name(self) -> str:
        base = self._statements
        if self._table:
            return self._table
        if not isinstance(base, str):
            base = self._database
            if "://" in base or base.startswith("env:"):
                return "sql"  # never a part of a URL, which may have a password
        return os.path.splitext(os.path.basename(base))[0] or "sql"

    def __repr__(self) -> str:
        return f"SQLProvider(name={self.name!r})"

    def tools(self) -> Iterable[Tool]:
        """Return a tool for each statement. Statements that are not valid are in `problems`."""
        with self._lock:
            if self._source is None:
                from tooli.providers.sql.sql_tools import SqlTools

                place = (self._database, self._folder)
                self._source = SqlTools(self, *place, self._statements, self._table)
            return self._source.read()

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong with the statements that are left out, and with the database."""
        return {} if self._source is None else self._source.problems

    def watch(self, changed: Callable[[], None]) -> None:
        """Check the files in a thread, and call `changed` after a change."""
        self._end.clear()
        Thread(target=self._poll, args=(changed,), name="tooli-sql", daemon=True).start()

    def close(self) -> None:
        """Stop checking the files, and close the connections."""
        self._end.set()
        if self._source is not None:
            self._source.close()

    def _poll(self, changed: Callable[[], None]) -> None:
        """Call `changed` after a change, once the files have been the same in two checks."""
        last: object = None
        count = 0
        while not self._end.wait(POLL_SECONDS):
            source = self._source
            if source is None:  # the tools were not read yet
                continue
            count += 1
            try:
                found = source.snapshot()
            except (DefinitionError, OSError):  # the folder is being replaced
                continue
            is_due = not source.is_complete and count % _CHECKS_BETWEEN_CONNECTIONS == 0
            if is_due or (found == last and found != source.fingerprint):
                changed()
            last = found


def _check_arguments(
    database: Any, statements: Any, timeout: object, page_size: object, max_rows: object
) -> None:
    """Raise DefinitionError for an argument that cannot be valid."""
    if not isinstance(database, (str, os.PathLike)) or not os.fspath(database):
        raise DefinitionError("SQLProvider(database=…) must be an SQLite file, a URL or 'env:NAME'")
    if os.fspath(database) in (":memory:", "env:"):
        raise DefinitionError(
            f"SQLProvider({os.fspath(database)!r}) must name a file, a URL or a variable"
        )
    if statements is not None and not isinstance(statements, (str, os.PathLike, Mapping)):
        raise DefinitionError("SQLProvider(statements=…) must be a path, or a dict of SQL by name")
    if isinstance(statements, Mapping) and not _has_only_texts(statements):
        raise DefinitionError("SQLProvider(statements=…) must have names and SQL, all texts")
    if timeout is not None and parse_timeout(timeout) is None:
        raise DefinitionError("SQLProvider(timeout=…) must be a number of seconds above 0")
    for name, value in (("page_size", page_size), ("max_rows", max_rows)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise DefinitionError(f"SQLProvider({name}=…) must be a number above 0")


def _has_only_texts(values: Any) -> bool:
    return all([isinstance(part, str) for pair in values.items() for part in pair])
