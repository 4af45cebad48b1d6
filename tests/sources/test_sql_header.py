"""The database of an sql: source."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tooli.errors import InputError
from tooli.sources.source_grammar import SourceOptions, parse_source
from tooli.sources.sql_header import find_database


def write(folder: Path, text: str) -> str:
    path = folder / "q.sql"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "database"),
    [
        ("-- database: shop.db\n-- name: a\nSELECT 1;", "{folder}/shop.db"),
        ("-- Queries.\n\n--database:env:SHOP_DB\n-- name: a\n", "env:SHOP_DB"),
        ("-- database: postgresql://ada@h/db\n", "postgresql://ada@h/db"),
    ],
)
def test_database_in_the_file(tmp_path: Path, text: str, database: str) -> None:
    path = write(tmp_path, text)
    expected = database.format(folder=tmp_path)
    assert find_database(parse_source(f"sql:{path}")) == (expected, path)
    options = SourceOptions(database="other.db")
    assert find_database(parse_source(f"sql:{path}", options)) == ("other.db", path)


@pytest.mark.parametrize(
    "text", ["", "-- name: a\n-- database: late.db\nSELECT 1;", "SELECT 1;\n-- database: x.db"]
)
def test_file_without_a_database(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="names no database") as caught:
        find_database(parse_source(f"sql:{write(tmp_path, text)}"))
    assert caught.value.field == "database"


def test_password_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "-- database: postgresql://ada:hunter2@h/db\n")
    with pytest.raises(InputError, match="contains a credential") as caught:
        find_database(parse_source(f"sql:{path}"))
    assert "hunter2" not in str(caught.value.to_dict())


def test_source_that_is_a_database(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE a (b)")
    connection.close()
    assert find_database(parse_source(f"sql:{path}")) == (path, None)
    assert find_database(parse_source("sql:env:SHOP")) == ("env:SHOP", None)
    assert find_database(parse_source("sql:postgresql://h/db")) == ("postgresql://h/db", None)


def test_folder_of_statements(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names no database"):
        find_database(parse_source(f"sql:{tmp_path}"))
    options = SourceOptions(database="shop.db")
    assert find_database(parse_source(f"sql:{tmp_path}", options)) == ("shop.db", str(tmp_path))
