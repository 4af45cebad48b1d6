"""Map the errors of databases to those of `tooli.errors`.

The text of a database is untrusted: it is cleaned and bounded, and contains no password.
"""

from __future__ import annotations

from tooli.errors import (
    ConflictError,
    DependencyError,
    InputError,
    Interrupted,
    Suggestion,
    TemporaryError,
    ToolRuntimeError,
)
from tooli.schema.described import clean_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from tooli.errors import ToolError

_RETRY = Suggestion("retry_later", "Try again in a few seconds.")
_CHECK_VALUES = Suggestion("retry_with_modified_input", "Correct the values of the call.")
_OTHER_VALUES = Suggestion(
    "retry_with_modified_input", "Check what the database has already, and change the values."
)
_FIX_STATEMENT = Suggestion("abort", "Tell the developer of the app to correct the statement.")


def sqlite_error(failure: sqlite3.Error, database: str) -> ToolError:
    """Return the error for an error of SQLite."""
    text = clean_text(str(failure), 300)
    lowered = text.lower()
    where = f"The SQLite database {database!r}"
    if "interrupted" in lowered:
        return Interrupted("The statement was stopped.")
    if "locked" in lowered or "busy" in lowered:
        return TemporaryError(f"{where} is locked by another program.", suggestion=_RETRY)
    if "constraint failed" in lowered:
        return _sqlite_constraint(text)
    if "datatype mismatch" in lowered or "too big" in lowered or "out of range" in lowered:
        return InputError(f"SQLite refuses the values: {text}", suggestion=_CHECK_VALUES)
    if "malformed json" in lowered or "integer overflow" in lowered:
        return InputError(f"SQLite refuses the values: {text}", suggestion=_CHECK_VALUES)
    if "readonly" in lowered or "read-only" in lowered:
        return ToolRuntimeError(f"{where} cannot be written: {text}", suggestion=_FIX_STATEMENT)
    if "unable to open" in lowered or "not a database" in lowered or "malformed" in lowered:
        return DependencyError(
            f"{where} cannot be read: {text}",
            suggestion=Suggestion("fix", "Check the file and its permissions."),
        )
    if "disk" in lowered or "i/o" in lowered:
        return DependencyError(f"{where} cannot be used: {text}")
    if type(failure).__name__ in ("Warning", "ProgrammingError", "OperationalError"):
        return ToolRuntimeError(f"SQLite refuses the statement: {text}", suggestion=_FIX_STATEMENT)
    return DependencyError(f"{where} has failed: {text}")


def _sqlite_constraint(text: str) -> ToolError:
    kind = text.partition(" constraint failed")[0].lower()
    details = {"constraint": text}
    if kind in ("unique", "primary key", "foreign key"):
        return ConflictError(
            f"Nothing was changed: {text}", suggestion=_OTHER_VALUES, details=details
        )
    return InputError(f"Nothing was changed: {text}", suggestion=_CHECK_VALUES, details=details)


# ------------------------------------------------------------------ Postgres

_TEMPORARY = ("40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300", "53400", "55006")
_CONFLICTS = {"23505": "unique", "23503": "foreign key", "23P01": "exclusion"}


def postgres_error(failure: Any, secrets: tuple[str, ...] = ()) -> ToolError:
    """Return the error for an error of psycopg."""
    state = failure.sqlstate or ""
    text = _postgres_text(failure, secrets)
    if state == "57014":
        return Interrupted("The statement was stopped.")
    if state in _TEMPORARY:
        return TemporaryError(f"Postgres cannot run it now: {text}", suggestion=_RETRY)
    if state in _CONFLICTS:
        details = {"constraint": failure.diag.constraint_name or _CONFLICTS[state]}
        return ConflictError(
            f"Nothing was changed: {text}", suggestion=_OTHER_VALUES, details=details
        )
    if state[:2] == "23":
        details = {"constraint": failure.diag.constraint_name or failure.diag.column_name or state}
        return InputError(f"Nothing was changed: {text}", suggestion=_CHECK_VALUES, details=details)
    if state[:2] == "22":
        return InputError(f"Postgres refuses the values: {text}", suggestion=_CHECK_VALUES)
    if state == "25006":
        return ToolRuntimeError(
            f"The statement writes, although Postgres plans it as one that reads: {text}",
            suggestion=Suggestion("abort", "Tell the developer to add '-- effects: write' to it."),
        )
    if state[:2] in ("28", "3D") or state == "42501":
        return DependencyError(
            f"Postgres denies the access: {text}",
            suggestion=Suggestion("fix", "Check the role, its rights and its password."),
        )
    if state[:2] == "53":
        return TemporaryError(f"Postgres has too few resources: {text}", suggestion=_RETRY)
    if state[:2] in ("08", ""):
        return _connection_error(failure, text)
    if state[:2] in ("42", "0A"):
        return ToolRuntimeError(
            f"Postgres refuses the statement: {text}", suggestion=_FIX_STATEMENT
        )
    return ToolRuntimeError(f"The statement failed: {text}")


def _connection_error(failure: Any, text: str) -> ToolError:
    if type(failure).__name__ not in ("OperationalError", "ConnectionTimeout", "InterfaceError"):
        return DependencyError(f"The database client has failed: {text}")
    lowered = text.lower()
    if "authentication failed" in lowered or "does not exist" in lowered or "no pg_hba" in lowered:
        return DependencyError(
            f"Postgres denies the access: {text}",
            suggestion=Suggestion("fix", "Check the URL: host, database, role and password."),
        )
    return TemporaryError(f"Postgres cannot be reached: {text}", suggestion=_RETRY)


def _postgres_text(failure: Any, secrets: tuple[str, ...]) -> str:
    main = failure.diag.message_primary
    # other details may contain whole rows
    detail = failure.diag.message_detail if failure.sqlstate in _CONFLICTS else None
    text = ". ".join(filter(None, (main, detail))) if main else str(failure)
    for secret in secrets:
        text = text.replace(secret, "…")
    return " ".join(clean_text(text, 400).split())
