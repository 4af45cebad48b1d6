"""Find the database of an `sql:` source: an option, a line of the file, or the source itself.

    -- database: shop.db
    -- name: find-products
    SELECT …

The line stands before the first statement. A relative path starts at the folder of the file.
"""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl

from tooli.errors import InputError, Suggestion
from tooli.sources.credentials import has_credential
from tooli.sources.source_grammar import Source, is_database_path

_MAX_HEADER_BYTES = 1 << 16
_LOCAL_URL = re.compile(
    r"postgres(?:ql)?://(?:[\w.%~-]*@)?"
    r"(?:localhost|127\.0\.0\.1|\[::1\]|%2[Ff][\w.%~-]*)?(?::\d*)?(?:/[\w.%~-]*)?(?:\?([^#]*))?"
)
"""libpq and `urllib.parse` read unusual URLs differently, so only plain ones are accepted."""
_LOCAL_OPTIONS = frozenset(("application_name", "connect_timeout", "options", "sslmode"))
"""Options of a URL that name neither a server nor a file."""
_SQLITE_MAGIC = b"SQLite format 3\0"


def find_database(source: Source) -> tuple[str, str | None]:
    """Return the database of a source, and its file of statements if it has one."""
    target, database = source.target, source.options.database
    if database is not None:
        return database, target
    if not is_database_path(target):
        return target, None
    head = b"" if os.path.isdir(target) else _read_head(target)
    if head.startswith(_SQLITE_MAGIC):
        return target, None
    return _read_database(source, head.decode("utf-8", "replace")), target


def _is_remote(database: str) -> bool:
    """True unless a text is `env:NAME`, or certainly the URL of a server on this machine."""
    if database.startswith(("env:", ":memory:")):
        return False
    found = _LOCAL_URL.fullmatch(database)
    options = [] if found is None else parse_qsl(found[1] or "", keep_blank_values=True)
    return found is None or any([name not in _LOCAL_OPTIONS for name, _ in options])


def _read_head(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_MAX_HEADER_BYTES)


def _read_database(source: Source, head: str) -> str:
    """Return the database that the lines before the first statement name."""
    for line in head.splitlines():
        words = line.strip()
        if re.match(r"--\s*name\s*:", words) or (words and not words.startswith("--")):
            break
        found = re.fullmatch(r"--\s*database\s*:\s*(\S.*)", words)
        if found is None:
            continue
        database = found[1].strip()
        if has_credential(database):
            raise InputError(
                f"{source.text}: the line `-- database:` contains a credential.",
                code="E1032",
                field="source",
                suggestion=Suggestion(
                    "fix", "Put the URL into a variable, and write -- database: env:VARIABLE"
                ),
            )
        if is_database_path(database):
            return os.path.join(os.path.dirname(source.target), database)
        if _is_remote(database):
            raise InputError(
                f"{source.text}: the line `-- database:` names a server on another machine, which "
                "would get the credentials of your environment, such as PGPASSWORD.",
                code="E1033",
                field="database",
                suggestion=Suggestion(
                    "retry_with_modified_input",
                    "If you trust this server, pass it with --database. A file can also name a "
                    "variable: -- database: env:VARIABLE",
                ),
            )
        return database
    raise InputError(
        f"{source.text} names no database.",
        field="database",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Pass --database shop.db, or write the line `-- database: shop.db` before the first "
            "statement of the file.",
        ),
    )
