from __future__ import annotations

import sqlite3
from types import SimpleNamespace
from typing import Any

import pytest

from tooli.providers.sql.sql_errors import postgres_error, sqlite_error


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (sqlite3.OperationalError("interrupted"), "E4130"),
        (sqlite3.OperationalError("database is locked"), "E4075"),
        (sqlite3.IntegrityError("UNIQUE constraint failed: t.a"), "E3020"),
        (sqlite3.IntegrityError("FOREIGN KEY constraint failed"), "E3020"),
        (sqlite3.IntegrityError("NOT NULL constraint failed: t.a"), "E1000"),
        (sqlite3.IntegrityError("datatype mismatch"), "E1000"),
        (sqlite3.OperationalError("malformed JSON"), "E1000"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "E4000"),
        (sqlite3.OperationalError("unable to open database file"), "E4040"),
        (sqlite3.OperationalError("disk I/O error"), "E4040"),
        (sqlite3.OperationalError("no such table: t"), "E4000"),
        (sqlite3.InternalError("x"), "E4040"),
    ],
)
def test_sqlite(failure: sqlite3.Error, code: str) -> None:
    assert sqlite_error(failure, "shop.db").code == code


def failure(state: str | None, message: str = "no", kind: str = "Error", **diag: Any) -> Any:
    fields = {"message_detail": None, "constraint_name": None, "column_name": None, **diag}
    fields["message_primary"] = message if state else None
    made = type(kind, (Exception,), {"sqlstate": state, "diag": SimpleNamespace(**fields)})
    return made(message)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (failure("57014"), "E4130"),
        (failure("40001"), "E4075"),
        (failure("57P01"), "E4075"),
        (failure("53100"), "E4075"),
        (failure("23505", constraint_name="k"), "E3020"),
        (failure("23502", column_name="c"), "E1000"),
        (failure("22P02"), "E1000"),
        (failure("25006"), "E4000"),
        (failure("28P01"), "E4040"),
        (failure("42501"), "E4040"),
        (failure("42P01"), "E4000"),
        (failure("P0001"), "E4000"),
        (failure("08006", kind="OperationalError"), "E4075"),
        (failure(None, "connection refused", kind="OperationalError"), "E4075"),
        (failure(None, 'database "x" does not exist', kind="OperationalError"), "E4040"),
        (failure(None, "bug", kind="NotSupportedError"), "E4040"),
    ],
)
def test_postgres(error: Any, code: str) -> None:
    assert postgres_error(error).code == code


def test_secrets_and_rows_are_left_out() -> None:
    error = failure(None, "cannot log in with pa55 \x1b[31m", kind="OperationalError")
    assert postgres_error(error, ("pa55",)).message.endswith("cannot log in with …")
    row = "Failing row contains (1, secret)."
    for state, is_shown in (("23514", False), ("23505", True)):
        message = postgres_error(failure(state, "bad row", message_detail=row)).message
        assert (row in message) is is_shown
