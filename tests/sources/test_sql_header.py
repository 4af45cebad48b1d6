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
        ("-- database: postgresql://ada@localhost/db\n", "postgresql://ada@localhost/db"),
        ("-- database: postgresql:///db?sslmode=disable", "postgresql:///db?sslmode=disable"),
        ("-- database: :memory:", ":memory:"),
        ("-- database: postgresql://%2Frun/db", "postgresql://%2Frun/db"),
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


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://evil.example/db",
        "postgres://ada@10.0.0.1:5432/db",
        "postgresql://localhost,evil.example/db",
        "postgresql://localhost:1,evil.example:2/db",
        "postgresql://localhost@evil.example/db",
        "postgresql:///db?host=evil.example",
        "postgresql://localhost/db?h%6Fstaddr=10.0.0.1",
        "postgresql://localhost/db?service=x",
        "postgresql://localhost/db?sslmode=disable&passfile=/tmp/x",
        "postgresql://[::1/db",
        "postgresql://localhost#@evil.example/db",
        "postgresql://localhost?@evil.example/db",
        "postgresql://a@evil.example@localhost/db",
        "@url-of-evil.example",
    ],
)
def test_file_cannot_name_a_server_elsewhere(tmp_path: Path, url: str) -> None:
    """The server would get PGPASSWORD, and the results of statements."""
    path = write(tmp_path, f"-- database: {url}\n-- name: a\nSELECT 1;")
    with pytest.raises(InputError, match="on another machine") as caught:
        find_database(parse_source(f"sql:{path}"))
    assert caught.value.code == "E1033"
    options = SourceOptions(database=url)
    assert find_database(parse_source(f"sql:{path}", options)) == (url, path)


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
