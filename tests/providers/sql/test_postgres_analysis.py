from __future__ import annotations

from typing import Any

import pytest
from tests.providers.sql.shops import make_app, postgres_shop

from tooli.providers.sql.sql_file import Statement, parse_statement
from tooli.providers.sql.sql_postgres import PostgresDatabase


@pytest.fixture(scope="module")
def url(postgres_server: str) -> str:
    return postgres_shop(postgres_server)


def analyze(url: str, sql: str, **options: Any) -> Any:
    database = PostgresDatabase(url)
    try:
        statement = parse_statement("a", sql, is_postgres=True)
        (found,) = database.analyze([statement], **{"writes": None, **options})
        return found
    finally:
        database.close()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("COPY products TO PROGRAM 'cat'", "use one SELECT, INSERT"),
        ("COPY products TO '/tmp/x'", "use one SELECT, INSERT"),
        ("CREATE TABLE t (a int)", "use one SELECT, INSERT"),
        ("SET default_transaction_read_only = off", "use one SELECT, INSERT"),
        ("DO $$ BEGIN DELETE FROM products; END $$", "use one SELECT, INSERT"),
        ("COMMIT", "use one SELECT, INSERT"),
        ("EXPLAIN ANALYZE DELETE FROM products", "use one SELECT, INSERT"),
        ("SELECT pg_read_file('/etc/passwd')", "pg_read_file is not allowed"),
        ("SELECT \"lo_import\"('/etc/passwd')", "lo_import is not allowed"),
        ("SELECT set_config('role', 'postgres', false)", "set_config is not allowed"),
        ("SELECT nope FROM products", 'column "nope" does not exist'),
        ("SELECT 1 AS a, 2 AS a", "several columns have the name 'a'"),
    ],
)
def test_statements_that_are_refused(url: str, sql: str, message: str) -> None:
    assert message in str(analyze(url, sql))


def test_two_statements_are_refused_by_the_protocol_as_well(url: str) -> None:
    database = PostgresDatabase(url)
    (found,) = database.analyze([Statement("a", "SELECT 1; DELETE FROM products")], writes=None)
    database.close()
    assert "multiple commands" in str(found)


@pytest.mark.parametrize(
    ("sql", "actions"),
    [
        ("SELECT * FROM products", ()),
        ("DELETE FROM products", (("delete", "products"),)),
        ("SELECT * FROM products FOR UPDATE", (("lock", ""),)),
        (
            "WITH d AS (DELETE FROM products RETURNING id) SELECT count(*) AS n FROM d",
            (("delete", "products"),),
        ),
        (
            "INSERT INTO products (name, price) VALUES (:name, 1) "
            "ON CONFLICT (name) DO UPDATE SET price = 2",
            (("insert", "products"), ("update", "products")),
        ),
        ("INSERT INTO products (name, price) VALUES (:name, 1)", (("insert", "products"),)),
    ],
)
def test_what_a_statement_changes(url: str, sql: str, actions: tuple[Any, ...]) -> None:
    found = analyze(url, sql)
    assert (found.actions, found.reads_only) == (actions, not actions)
    assert found.is_additive is (actions == (("insert", "products"),))


def test_the_author_may_say_that_a_statement_writes(url: str) -> None:
    assert not analyze(url, "-- effects: write\nSELECT 1 AS one").reads_only
    assert not analyze(url, "SELECT 1 AS one", writes=True).reads_only


def test_parameters_and_columns(url: str) -> None:
    found = analyze(
        url,
        "-- :ids int[]\nSELECT id, price, extra, array[name] AS names, int4range(1, 2) AS r "
        "FROM products WHERE id = ANY(:ids) AND price > :price AND name = :name",
    )
    assert [(p.name, p.type, p.is_list) for p in found.parameters] == [
        *(("ids", "int", True), ("price", "float", False), ("name", "text", False))
    ]
    assert found.item_schema()["properties"] == {
        "id": {"type": ["integer", "null"]},
        "price": {"type": ["number", "null"]},
        "extra": {},
        "names": {"type": ["array", "null"]},
        "r": {},
    }
    assert "$1::int8[]" in found.sql and "$2 " in found.sql


def test_types_that_do_not_fit_are_found_by_postgres(url: str) -> None:
    app = make_app(url, {"left$": "-- :n int\nSELECT left('abc', :n)"})
    assert app.call("left", n=2).result == "ab"
    assert app.call("left", n=2**40).error.category == "input"  # type: ignore[union-attr]
