"""The interface of a database for `SQLProvider`: analyze statements and run them."""

from __future__ import annotations

from threading import Event

from tooli.core import Record
from tooli.errors import Interrupted
from tooli.providers.sql.sql_file import ONE, SCALAR
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from tooli.core.protocols import JsonObject
    from tooli.pipeline.context import Context
    from tooli.providers.sql.sql_file import Statement, StatementProblem
    from tooli.providers.sql.sql_types import Parameter

    class Rows(Protocol):
        """The rows of a running statement."""

        @property
        def names(self) -> Sequence[str]:
            """The names of the columns."""
            ...

        def fetch(self, count: int) -> Sequence[Sequence[Any]]:
            """Return the next rows, at most `count`; none at the end."""
            ...

    class Change(Protocol):
        """A statement that has run in a transaction."""

        @property
        def affected(self) -> int:
            """The number of rows that were inserted, updated or deleted."""
            ...

        @property
        def names(self) -> Sequence[str]:
            """The columns that the statement returns; none without RETURNING."""
            ...

        @property
        def rows(self) -> Sequence[Sequence[Any]]:
            """The rows that the statement returns."""
            ...

        def commit(self) -> None:
            """Commit the transaction. Without it, the transaction is rolled back."""
            ...


LOCK_SECONDS = 5.0
"""How long a statement waits for a lock, at most."""
CONNECT_SECONDS = 10.0
"""How long a connection may take, at most."""


class Column(Record):
    """A column of a result."""

    name: str
    schema: JsonObject
    convert: Callable[[Any], Any] | None = None


class Analysis(Record):
    """What a database says about a statement without running it."""

    sql: str  # as the database takes it
    names: tuple[str, ...]  # the parameters, in their order
    parameters: tuple[Parameter, ...]
    reads_only: bool = False
    is_additive: bool = False  # it inserts rows, and changes no others
    actions: tuple[tuple[str, str], ...] = ()  # such as ("update", "products")
    columns: tuple[Column, ...] | None = None  # None: not known
    returns_rows: bool = False  # a change that returns rows, whose columns may not be known
    is_checked: bool = False  # False: the database could not be reached

    def item_schema(self) -> JsonObject:
        """Return the JSON Schema of one row."""
        if self.columns is None:
            return {"type": "object"}
        properties = {column.name: column.schema for column in self.columns}
        return {"type": "object", "properties": properties, "required": list(properties)}

    def output_schema(self, result: str) -> JsonObject:
        """Return the JSON Schema of the result."""
        if not self.reads_only:
            schema: JsonObject = {"affected_rows": {"type": "integer"}}
            if self.columns or self.returns_rows:
                schema["rows"] = {"type": "array", "items": self.item_schema()}
            return {"type": "object", "properties": schema, "required": list(schema)}
        if result == ONE:
            return {**self.item_schema(), "type": ["object", "null"]}
        if result == SCALAR:
            return dict(self.columns[0].schema) if self.columns else {}
        return {"type": "array", "items": self.item_schema()}

    def to_row(self, names: Sequence[str], values: Sequence[Any]) -> JsonObject:
        """Return a row as an object."""
        row = dict(zip(names, values, strict=True))
        for column in self.columns or ():
            if column.convert is not None and row.get(column.name) is not None:
                row[column.name] = column.convert(row[column.name])
        for name, value in row.items():
            if value is not None and type(value) not in _PLAIN:
                row[name] = to_json_value(value)
        return row


_PLAIN = frozenset((str, int, float, bool, dict))


def to_json_value(value: Any) -> Any:
    """Return a value of a database as a value that tooli writes as JSON; bytes in base64."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        from base64 import b64encode

        data: bytes = bytes(value)  # pyright: ignore[reportUnknownArgumentType]
        return b64encode(data).decode()
    if is_list(value):
        return [to_json_value(item) for item in value]
    return value


class CallStop:
    """When the statement of a call has to end."""

    def __init__(self, ctx: Context | None = None) -> None:
        self._ctx = ctx
        self._stopped = Event()
        if ctx is not None:
            ctx.on_stop(self._stopped.set)

    def remaining_time(self, longest: float | None = None) -> float | None:
        """Return the seconds until the deadline, at most `longest`; None without a deadline."""
        left = None if self._ctx is None else self._ctx.remaining_time()
        limits = [seconds for seconds in (left, longest) if seconds is not None]
        return min(limits) if limits else None

    @property
    def is_over(self) -> bool:
        """True if the statement has to end now."""
        return self._stopped.is_set() or self.remaining_time() == 0

    def check(self) -> None:
        """Raise Interrupted if the statement has to end."""
        if self.is_over:
            raise Interrupted("The statement was stopped.")

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Call a function when the statement has to end."""
        if self._ctx is not None:
            self._ctx.on_stop(callback)


class SqlDatabase:
    """A database that runs named statements."""

    is_postgres = False
    dry_run_allow: tuple[str, ...] = ()
    """The capabilities of a dry run, which runs a statement and rolls it back."""

    def analyze(
        self, statements: Sequence[Statement], *, writes: bool | None
    ) -> Iterable[Analysis | StatementProblem]:
        """Return what the database says about each statement; no statement runs.

        `writes=True` treats all as statements that write, `writes=False` refuses those that do.
        Raises a ToolError if the database cannot be reached.
        """
        raise NotImplementedError

    def read(
        self,
        analysis: Analysis,
        values: Sequence[Any],
        stop: CallStop,
        *,
        page: PageQuery | None = None,
    ) -> AbstractContextManager[Rows]:
        """Run a statement that only reads, or the part of it that a page has."""
        raise NotImplementedError

    def write(
        self, analysis: Analysis, values: Sequence[Any], stop: CallStop
    ) -> AbstractContextManager[Change]:
        """Run a statement that writes, in a transaction of its own."""
        raise NotImplementedError

    def catalog_statements(self) -> list[Statement]:
        """Return the statements that list and describe the tables."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections."""


class PageQuery(Record):
    """The rows of a page: after some rows, or after the values of the columns of an order."""

    limit: int | None = None  # rows to read, one more than the page has; None: all
    offset: int = 0
    order_by: tuple[tuple[str, bool], ...] = ()
    after: tuple[Any, ...] = ()  # the values of these columns in the last row


def quote_name(name: str) -> str:
    """Return a name of a column as SQL."""
    return '"' + name.replace('"', '""') + '"'


def order_clause(page: PageQuery, placeholder: Callable[[int], str]) -> str:
    """Return the WHERE and ORDER BY of a page that follows the values of an order.

    Rows with NULL in these columns stay in the result, so that the caller notices them.
    """
    names = [quote_name(name) for name, _ in page.order_by]
    directions = [" DESC" if is_descending else "" for _, is_descending in page.order_by]
    order = ", ".join([name + word for name, word in zip(names, directions, strict=True)])
    if not page.after:
        return f" ORDER BY {order}"
    parts: list[str] = []
    for at, (_, is_descending) in enumerate(page.order_by):
        equal = [f"{names[i]} = {placeholder(i)}" for i in range(at)]
        sign = "<" if is_descending else ">"
        parts.append(" AND ".join((*equal, f"{names[at]} {sign} {placeholder(at)}")))
    nulls = [f"{name} IS NULL" for name in names]
    conditions = " OR ".join([f"({part})" for part in (*parts, *nulls)])
    return f" WHERE {conditions} ORDER BY {order}"
