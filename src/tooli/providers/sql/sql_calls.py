"""Run the statement of a tool: a page, a stream, one row, or a change."""

from __future__ import annotations

import json

from tooli.core.result_types import Page, PageRequest
from tooli.core.tool import MISSING
from tooli.errors import InputError, NotFoundError, Suggestion, ToolError, ToolRuntimeError
from tooli.providers.sql.sql_database import CallStop, PageQuery, to_json_value
from tooli.providers.sql.sql_file import MANY, SCALAR
from tooli.providers.sql.sql_types import database_value
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.pipeline.context import Context
    from tooli.providers.sql.sql_database import Analysis, SqlDatabase
    from tooli.providers.sql.sql_file import Statement

_FETCH = 500
"""Rows that a stream reads at once."""


class StatementCall:
    """The function of a tool: runs a statement with the arguments of a call."""

    def __init__(
        self,
        database: SqlDatabase,
        statement: Statement,
        analysis: Analysis,
        max_rows: int,
        *,
        writes: bool | None = None,
    ) -> None:
        self._database = database
        self._statement = statement
        self._analysis = analysis
        self._max_rows = max_rows
        self._writes = writes

    def __call__(self, arguments: Mapping[str, Any], ctx: Context) -> Any:
        """Run the statement; return its rows, its row, its value, or what it has changed."""
        analysis = self._analysis if self._analysis.is_checked else self._check_now(ctx)
        values = self._bind(analysis, arguments)
        stop = CallStop(ctx)
        if not analysis.reads_only:
            return self._change(analysis, values, stop, ctx)
        if self._statement.result != MANY:
            return self._read_one(analysis, values, stop)
        page = ctx.page
        query = self._page_query(page.cursor)
        if self._is_read_as_stream(page):
            return self._stream(analysis, values, query, stop)
        rows = self._read_page(analysis, values, query, page, stop)
        if page.limit is None or page.limit > self._max_rows:
            self._warn_of_rest(rows, ctx)
        if not rows.items and self._statement.missing and page.cursor is None:
            raise NotFoundError(self._statement.missing.format(**arguments))
        return rows

    def _is_read_as_stream(self, page: PageRequest) -> bool:
        """True if tooli takes as many rows as it needs: of a stream, or for a filter."""
        if page.limit is None and page.is_streamed:
            return True
        if page.position >= self._max_rows:  # of the cursor of a stream
            return True
        needs_rows = page.is_filtered or page.position > 0
        return needs_rows and page.limit is not None and page.limit <= self._max_rows

    def _warn_of_rest(self, rows: Page[JsonObject], ctx: Context) -> None:
        if rows.next_cursor is not None:
            ctx.warn(
                f"The result has more than {self._max_rows:,} rows, the maximum of one answer. "
                "Continue with the cursor, or request a stream."
            )

    def _check_now(self, ctx: Context) -> Analysis:
        """Return the analysis of a statement whose database could not be reached before.

        It may turn out to write, which the stages before did not know.
        """
        for result in self._database.analyze([self._statement], writes=self._writes):
            if isinstance(result, Exception):
                raise ToolRuntimeError(
                    f"The statement cannot run: {result}",
                    suggestion=Suggestion("abort", "Tell the developer of the app."),
                )
            if result.reads_only:
                return result
            if self._writes is False:
                raise ToolRuntimeError("The statement writes, and the app only reads.")
            is_additive = result.is_additive and "additive" in self._statement.effects
            if not (is_additive or ctx.options.yes or ctx.dry_run):
                raise InputError(
                    f"{ctx.tool} may destroy data and needs a confirmation.",
                    code="E1010",
                    suggestion=Suggestion(
                        "ask_human", "Check the effects with a dry run, then confirm the call."
                    ),
                )
            return result
        raise ToolRuntimeError("The statement cannot run.")

    def _bind(self, analysis: Analysis, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the values of the parameters, in their order."""
        parameters = {parameter.name: parameter for parameter in analysis.parameters}
        values: list[Any] = []
        for name in analysis.names:
            parameter = parameters[name]
            value = arguments.get(name, None if parameter.default is MISSING else parameter.default)
            try:
                is_postgres = self._database.is_postgres
                values.append(database_value(parameter, value, is_postgres=is_postgres))
            except ValueError as failure:
                raise InputError(f"{name!r} {failure}", code="E1003", field=name) from None
        return values

    # -------------------------------------------------------------- reading

    def _stream(
        self, analysis: Analysis, values: Sequence[Any], query: PageQuery, stop: CallStop
    ) -> Iterator[JsonObject]:
        """Yield the rows one by one; only a few are in memory."""
        is_all = not query.offset and not query.order_by
        page = None if is_all else query
        with self._database.read(analysis, values, stop, page=page) as rows:
            names = rows.names
            while found := rows.fetch(_FETCH):
                for row in found:
                    yield analysis.to_row(names, row)

    def _read_one(self, analysis: Analysis, values: Sequence[Any], stop: CallStop) -> Any:
        """Return the first row, or its first value; None without a row."""
        with self._database.read(analysis, values, stop) as rows:
            found = rows.fetch(1)
            if not found:
                return None
            row = analysis.to_row(rows.names, found[0])
            return next(iter(row.values())) if self._statement.result == SCALAR else row

    def _page_query(self, cursor: str | None) -> PageQuery:
        """Return where a page starts; raise InputError if the cursor is not one of these."""
        order_by = self._statement.order_by
        if cursor is None:
            return PageQuery(order_by=order_by)
        try:
            state = json.loads(cursor)
        except ValueError:
            raise _cursor_error() from None
        if order_by and is_list(state) and len(state) == len(order_by):
            return PageQuery(order_by=order_by, after=tuple(state))
        if not order_by and isinstance(state, int):
            return PageQuery(offset=state)
        raise _cursor_error()

    def _read_page(
        self,
        analysis: Analysis,
        values: Sequence[Any],
        query: PageQuery,
        request: PageRequest,
        stop: CallStop,
    ) -> Page[JsonObject]:
        """Return one page, and the cursor of the next one if there is one."""
        limit = min(request.limit or self._max_rows, self._max_rows)
        query = query.replace(limit=limit + 1)
        with self._database.read(analysis, values, stop, page=query) as rows:
            names, found = rows.names, list(_fetch_all(rows, limit + 1))
        if query.order_by:
            self._check_order(names, found, limit)
        items = [analysis.to_row(names, row) for row in found[:limit]]
        if len(found) <= limit:
            return Page(items, total=len(items) if request.cursor is None else None)
        if not query.order_by:
            return Page(items, next_cursor=json.dumps(query.offset + limit))
        at = [names.index(name) for name, _ in query.order_by]
        last = [to_key_value(found[limit - 1][i]) for i in at]
        return Page(items, next_cursor=json.dumps(last, ensure_ascii=False))

    def _check_order(self, names: Sequence[str], rows: list[Sequence[Any]], limit: int) -> None:
        """Raise ToolRuntimeError if rows could be lost between two pages."""
        columns = [name for name, _ in self._statement.order_by]
        at = [names.index(name) for name in columns]
        listed = ", ".join(columns)
        if any([row[i] is None for row in rows for i in at]):
            raise _order_error(listed, "there are rows in which one of them is NULL")
        if len(rows) > limit and all([rows[limit - 1][i] == rows[limit][i] for i in at]):
            raise _order_error(listed, "there are several rows with the same values")

    # -------------------------------------------------------------- writing

    def _change(
        self, analysis: Analysis, values: Sequence[Any], stop: CallStop, ctx: Context
    ) -> JsonObject:
        """Run a statement in a transaction; a dry run plans it, and rolls it back."""
        with self._database.write(analysis, values, stop) as change:
            target = ", ".join(dict.fromkeys([name for _, name in analysis.actions if name]))
            verb = analysis.actions[0][0] if analysis.actions else "run"
            effect = {"affected_rows": change.affected}
            is_dry_run = ctx.plan(
                verb, target or self._statement.name, details=effect, state=effect
            )
            result: JsonObject = dict(effect)
            if change.names:
                result["rows"] = [analysis.to_row(change.names, row) for row in change.rows]
            if not is_dry_run:
                change.commit()
            return result


def _fetch_all(rows: Any, count: int) -> Iterator[Sequence[Any]]:
    """Yield rows, at most `count`."""
    while count > 0 and (found := rows.fetch(min(count, _FETCH))):
        count -= len(found)
        yield from found


def to_key_value(value: Any) -> Any:
    """Return a value of a row as a cursor stores it."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return value
    converted = to_json_value(value)
    return converted if isinstance(converted, str) else str(converted)


def _cursor_error() -> ToolError:
    return InputError(
        "The cursor does not belong to this statement, or the statement has changed.",
        code="E1042",
        field="cursor",
        suggestion=Suggestion("retry_with_modified_input", "Start again without a cursor."),
    )


def _order_error(columns: str, problem: str) -> ToolError:
    return ToolRuntimeError(
        f"The pages of the statement cannot be ordered by {columns}: {problem}.",
        suggestion=Suggestion(
            "abort", "Tell the developer to order the pages by unique columns without NULL."
        ),
    )
