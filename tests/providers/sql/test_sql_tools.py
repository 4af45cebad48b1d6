from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.providers.sql.shops import COUNT, STATEMENTS, make_app, sqlite_shop
from tests.providers.sql.shops import call_value as value

from tooli import Tooli
from tooli.errors import DefinitionError
from tooli.providers import SQLProvider


def test_problems_hide_no_other_statement(database: str) -> None:
    statements = {
        "good": "SELECT 1 AS one",
        "two": "SELECT 1; DROP TABLE products",
        "attach": "ATTACH 'other.db' AS other",
        "unknown": "SELECT * FROM nowhere",
        "syntax": "SELEC 1",
        "begin": "BEGIN",
        "twice": "SELECT 1 AS a, 2 AS a",
        "unused": "-- :id int\nSELECT 1",
        "additive": "-- effects: additive\nDELETE FROM products",
        "empty": "-- nothing",
        "position": "SELECT ?" if "://" not in database else "SELECT $1",
        "a name": "SELECT 1",
    }
    app = make_app(database, statements)
    assert [tool.name for tool in app.catalog] == ["local", "good"]
    assert value(app, "good") == [{"one": 1}]
    assert len(app.catalog.problems) == len(statements) - 1


def test_a_file_and_its_changes(tmp_path: Path) -> None:
    file = tmp_path / "shop.sql"
    file.write_text(STATEMENTS, encoding="utf-8")
    provider = SQLProvider(sqlite_shop(tmp_path), file)
    app = Tooli("shop")
    app.add_provider(provider)
    assert provider.name == "shop" and len(list(app.catalog)) == 9
    file.write_bytes(b"-- name: a\nSELECT '\xff'")
    assert len(list(provider.tools())) == 9
    assert provider.problems == {
        "shop.sql": "line 2: it is not UTF-8; its last statements are kept"
    }
    file.write_text("-- name: a\nSELECT 1 AS one;\nSELECT", encoding="utf-8")
    assert list(provider.tools()) == [] and len(provider.problems) == 1


def test_a_folder_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "sql"
    (folder / "user_admin").mkdir(parents=True)
    (folder / "total.sql").write_text("SELECT count(*) AS n FROM products")
    (folder / "user_admin" / "all.sql").write_text("-- name: list\nSELECT 1 AS one")
    (folder / "_private.sql").write_text("SELECT 2 AS two")
    app = Tooli("shop")
    app.add_provider(SQLProvider(sqlite_shop(tmp_path), folder), namespace="db")
    assert {".".join(tool.path) for tool in app.catalog} == {"db.total", "db.user-admin.list"}


def test_a_missing_file_of_statements(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="does not exist"):
        SQLProvider(sqlite_shop(tmp_path), tmp_path / "nowhere.sql").tools()


def test_the_database_of_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE", f"sqlite:///{sqlite_shop(tmp_path)}")
    assert value(make_app("env:SHOP_DATABASE"), "count") == COUNT


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("mysql://u:secret-pw@host/db", "'mysql' are not supported"),
        ("env:TOOLI_TEST_NO_DATABASE", "variable TOOLI_TEST_NO_DATABASE is not set"),
    ],
)
def test_databases_that_do_not_work(database: str, message: str) -> None:
    provider = SQLProvider(database, {"a": "SELECT 1 AS one"})
    with pytest.raises(DefinitionError, match=message) as caught:
        provider.tools()
    assert "secret-pw" not in f"{caught.value}{provider!r}{provider.name}{provider.description}"


def test_a_table_of_statements(database: str) -> None:
    columns = "name text, sql text, description text, parameters text"
    rows = [
        ("cheap", "SELECT id FROM products WHERE price <= :max;", "Find.\nMore.", ":max float = 1"),
        ("count$", "SELECT count(*) AS n FROM products", None, "-- timeout: 5\n--tags: a"),
        ("broken", "SELECT 1; DELETE FROM products", None, None),
        ("cheap", "SELECT 2 AS two", None, None),
    ]
    if "://" in database:
        import psycopg

        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(f"CREATE TABLE statements ({columns})")
            for row in rows:
                connection.execute("INSERT INTO statements VALUES (%s, %s, %s, %s)", row)
    else:
        other = sqlite3.connect(database)
        other.execute(f"CREATE TABLE statements ({columns})")
        other.executemany("INSERT INTO statements VALUES (?, ?, ?, ?)", rows)
        other.commit()
        other.close()
    app = make_app(database, "table:statements")
    cheap, count = app.find("cheap"), app.find("count")
    assert cheap is not None and count is not None and len(list(app.catalog)) == 3
    assert (cheap.doc.summary, count.limits.timeout, count.guidance.tags) == ("Find.", 5, ("a",))
    assert value(app, "cheap", max=0) == [{"id": 1}, {"id": 2}]
    assert value(app, "count") == COUNT
    problems = " ".join(str(problem) for problem in app.catalog.problems.values())
    assert "several statements" in problems and "an earlier row has its name" in problems


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("nowhere", "cannot be read"),
        ("products", "no column 'sql'"),
        ('x"; DROP', "cannot be read"),
    ],
)
def test_tables_without_statements(database: str, table: str, message: str) -> None:
    provider = SQLProvider(database, f"table:{table}")
    assert provider.name == table
    with pytest.raises(DefinitionError, match=message):
        provider.tools()
    provider.close()


@pytest.mark.parametrize("value", ["s3cret-v4lue", "s3cret-v4lue://host/x", "/tmp/s3cret-v4lue"])
def test_variable_that_is_no_database(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of statements may name any variable: no message contains its value."""
    monkeypatch.setenv("OTHER_SECRET", value)
    app = make_app("env:OTHER_SECRET", {"a": "SELECT 1 AS one"})
    texts = [str(app.catalog.problems), str(app.call("a").error), str(app.call("a").meta)]
    assert "OTHER_SECRET" in "".join(texts)
    assert not any("s3cret" in text for text in texts)
