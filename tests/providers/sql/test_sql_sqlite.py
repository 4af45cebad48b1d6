from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.providers.sql.shops import COUNT, make_app, sqlite_shop

from tooli.errors import ToolError
from tooli.providers.sql.sql_database import Analysis, CallStop
from tooli.providers.sql.sql_file import Statement
from tooli.providers.sql.sql_sqlite import SqliteDatabase


@pytest.fixture
def path(tmp_path: Path) -> str:
    return sqlite_shop(tmp_path)


def analyze(path: str, sql: str) -> Any:
    (found,) = SqliteDatabase(path).analyze([Statement("a", sql)], writes=None)
    return found


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ATTACH 'x.db' AS x", "ATTACH is not allowed"),
        ("DETACH x", "DETACH is not allowed"),
        ("PRAGMA writable_schema = 1", "PRAGMA writable_schema is not allowed"),
        ("PRAGMA journal_mode = OFF", "PRAGMA journal_mode is not allowed"),
        ("VACUUM", "does not say what it does"),
        ("VACUUM INTO 'x.db'", "does not say what it does"),
        ("BEGIN", "BEGIN, COMMIT and ROLLBACK is not allowed"),
        ("SAVEPOINT a", "SAVEPOINT is not allowed"),
        ("SELECT load_extension('x')", "load_extension is not allowed"),
        ("EXPLAIN SELECT 1", "syntax error"),
        ("SELECT 1; DELETE FROM products", "one statement"),
        ("SELECT nope FROM products", "no such column"),
    ],
)
def test_statements_that_are_refused(path: str, sql: str, message: str) -> None:
    assert message in str(analyze(path, sql))
    assert not Path("x.db").exists()


@pytest.mark.parametrize(
    ("sql", "actions", "is_additive"),
    [
        ("INSERT INTO products (name, price) VALUES (:a, 1)", {("insert", "products")}, True),
        ("DELETE FROM products", {("delete", "products")}, False),
        (
            "INSERT INTO products (id, name, price) VALUES (1, 'a', 1) "
            "ON CONFLICT (id) DO UPDATE SET price = 2",
            {("insert", "products"), ("update", "products")},
            False,
        ),
        ("CREATE TABLE t (a)", {("create", "t")}, False),
        ("DROP TABLE products", {("drop", "products"), ("delete", "products")}, False),
        ("WITH c AS (SELECT 1) UPDATE products SET price = 1", {("update", "products")}, False),
        ("REPLACE INTO products VALUES (1, 'a', 1, '', '', '')", {("insert", "products")}, False),
        (
            "INSERT OR REPLACE INTO products (id, name, price) VALUES (1, 'a', 1)",
            {("insert", "products")},
            False,
        ),
        (
            "INSERT INTO products (name, price) SELECT replace(name, '1', '2'), 1 FROM products",
            {("insert", "products")},
            True,
        ),
    ],
)
def test_what_a_statement_changes(
    path: str, sql: str, actions: set[tuple[str, str]], is_additive: bool
) -> None:
    found = analyze(path, sql)
    assert not found.reads_only and actions <= set(found.actions)
    assert found.is_additive is is_additive


def test_what_a_trigger_changes_counts(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE log (a); CREATE TRIGGER t AFTER INSERT ON products BEGIN "
        "DELETE FROM log; END;"
    )
    connection.close()
    found = analyze(path, "INSERT INTO products (name, price) VALUES ('a', 1)")
    assert ("delete", "log") in found.actions and not found.is_additive


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM products",
        "CREATE TABLE t (a)",
        "ATTACH 'attached.db' AS x",
        "SELECT load_extension('x')",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO 'attached.db'",
    ],
)
def test_a_reading_connection_cannot_write(path: str, sql: str) -> None:
    """Even if the analysis were wrong, or the statement of another file."""
    database = SqliteDatabase(path)
    with pytest.raises(ToolError), database.read(Analysis(sql, (), ()), (), CallStop()) as rows:
        rows.fetch(1)
    assert not Path("attached.db").exists()
    with database.read(Analysis("SELECT count(*) FROM products", (), ()), (), CallStop()) as rows:
        assert rows.fetch(1) == [(COUNT,)]


@pytest.mark.parametrize("sql", ["ATTACH 'attached.db' AS x", "COMMIT", "PRAGMA foreign_keys = 0"])
def test_a_writing_connection_cannot_leave_its_transaction(path: str, sql: str) -> None:
    with (
        pytest.raises(ToolError),
        SqliteDatabase(path).write(Analysis(sql, (), ()), (), CallStop()),
    ):
        pass
    assert not Path("attached.db").exists()


def test_columns_of_loose_and_strict_tables(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE s (i INTEGER, r REAL, t TEXT, b BLOB) STRICT;"
        "CREATE TABLE l (i INTEGER, v VARCHAR(9), f BOOLEAN, j JSON, n, d DECIMAL(9, 2));"
        "INSERT INTO l VALUES ('text', 5, 1, '[1]', x'ff', 2.5), (1, 'x', 'y', '[', NULL, 'z');"
    )
    connection.close()
    strict = analyze(path, "SELECT * FROM s").item_schema()["properties"]
    assert [column["type"][0] for column in strict.values()] == [
        *("integer", "number", "string", "string")
    ]
    loose = analyze(path, "SELECT *, i + 1 AS e FROM l").item_schema()["properties"]
    assert loose["i"] == {"type": ["number", "string", "null"], "description": "INTEGER"}
    assert (loose["v"], loose["e"]) == (
        {"type": ["string", "null"]},
        {"type": ["number", "string", "null"]},
    )
    app = make_app(path, {"all": "SELECT * FROM l"})
    assert app.call("all").result == [
        {"i": "text", "v": "5", "f": True, "j": [1], "n": "/w==", "d": 2.5},
        {"i": 1, "v": "x", "f": "y", "j": "[", "n": None, "d": "z"},
    ]


def test_full_text_search_reads(path: str) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.executescript(
            "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('red fox');"
        )
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no full text search")
    finally:
        connection.close()
    app = make_app(path, {"find": "-- :q text\nSELECT body FROM notes WHERE notes MATCH :q"})
    tool = app.find("find")
    assert tool is not None and tool.behavior.read_only
    assert app.call("find", q="fox").result == [{"body": "red fox"}]


def test_parameters_without_a_declaration_take_any_plain_value(path: str) -> None:
    app = make_app(path, {"same": "SELECT :a AS a, :b AS b"})
    assert app.call("same", a="1", b=None).result == [{"a": "1", "b": None}]
    assert app.call("same", a=1, b=True).result == [{"a": 1, "b": 1}]
    assert app.call("same", a=1).error.code == "E1002"  # type: ignore[union-attr]
    assert app.call("same", a=1, b=[1]).error.code == "E1003"  # type: ignore[union-attr]


def test_text_that_is_not_utf8_is_read(path: str) -> None:
    app = make_app(path, {"a$": "SELECT CAST(x'61ff' AS TEXT)"})
    assert app.call("a").result == "a\ufffd"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot set limits of SQLite")
def test_a_value_that_is_too_large_is_refused(path: str) -> None:
    app = make_app(path, {"big$": "-- :n int\nSELECT zeroblob(:n)"})
    found = app.call("big", n=900_000_000).error
    assert found is not None and (found.code, "too big" in found.message) == ("E1000", True)
