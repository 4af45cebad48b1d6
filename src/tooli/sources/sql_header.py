"""Find the database of an `sql:` source: an option, a line of the file, or the source itself.

    -- database: shop.db
    -- name: find-products
    SELECT …

The line stands before the first statement. A relative path starts at the folder of the file.
"""

from __future__ import annotations

import os
import re

from tooli.errors import InputError, Suggestion
from tooli.sources.credentials import has_credential
from tooli.sources.source_grammar import Source, is_database_path

_MAX_HEADER_BYTES = 1 << 16
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
        folder = os.path.dirname(source.target)
        return os.path.join(folder, database) if is_database_path(database) else database
    raise InputError(
        f"{source.text} names no database.",
        field="database",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Pass --database shop.db, or write the line `-- database: shop.db` before the first "
            "statement of the file.",
        ),
    )
