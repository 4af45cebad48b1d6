from __future__ import annotations

import builtins
import os
from typing import Any

import pytest
from tests.providers.sql.shops import COUNT, make_app, postgres_shop

from tooli import Tooli
from tooli.errors import DependencyError, ToolError
from tooli.providers import SQLProvider
from tooli.providers.sql.sql_database import Analysis, CallStop
from tooli.providers.sql.sql_file import Statement
from tooli.providers.sql.sql_postgres import PostgresDatabase, load_psycopg


@pytest.fixture
def url(postgres_server: str) -> str:
    return postgres_shop(postgres_server)


def fetch(database: PostgresDatabase, sql: str) -> Any:
    with database.read(Analysis(sql, (), ()), (), CallStop()) as rows:
        return rows.fetch(5)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM products",
        "WITH d AS (DELETE FROM products RETURNING id) SELECT * FROM d",
        "SELECT 1; DELETE FROM products",
        "SELECT write_row()",
        "SELECT nextval('products_id_seq')",
        "SELECT set_config('transaction_read_only', 'off', true)",
    ],
)
def test_a_reading_transaction_cannot_write(url: str, sql: str) -> None:
    """Even if the analysis were wrong."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION write_row() RETURNS int LANGUAGE sql AS "
            "$$ INSERT INTO products (name, price) VALUES ('f', 1) RETURNING id $$"
        )
    database = PostgresDatabase(url)
    with pytest.raises(ToolError):
        fetch(database, sql)
    assert fetch(database, "SELECT count(*) FROM products") == [(COUNT,)]
    database.close()


def test_what_a_statement_sets_does_not_stay(url: str) -> None:
    database = PostgresDatabase(url)
    fetch(database, "SELECT set_config('application_name', 'changed', false)")
    assert fetch(database, "SELECT current_setting('application_name')") == [("tooli",)]
    database.close()


def test_a_lost_connection_is_replaced_before_the_call(url: str) -> None:
    import psycopg

    app = make_app(url)
    assert app.call("count").result == COUNT
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE usename = current_user AND pid <> pg_backend_pid()"
        )
    assert app.call("add", name="x", price=1).result["affected_rows"] == 1
    assert app.call("count").result == COUNT + 1


def test_values_of_every_kind(url: str) -> None:
    statement = (
        "SELECT 'infinity'::timestamptz AS a, '0001-01-01 BC'::date AS b, 1.10::numeric AS c, "
        "array[1, NULL] AS d, 9223372036854775807 AS e, 'NaN'::float8 AS f, int4range(1, 3) AS g, "
        "'10.0.0.1/8'::inet AS h, interval '26 hours' AS i, NULL AS j, row(1, 'a') AS k, "
        "'2026-01-31'::date AS l, '2026-01-31 10:00'::timestamp AS m, array['\\xff'::bytea] AS n"
    )
    result = make_app(url, {"all :one": statement}).call("all")
    assert result.to_dict()["result"] == {
        "a": "infinity",
        "b": "0001-01-01 BC",
        "c": "1.10",
        "d": [1, None],
        "e": 9223372036854775807,
        "f": None,
        "g": "[1, 3)",
        "h": "10.0.0.1/8",
        "i": "P1DT2H",
        "j": None,
        "k": ["1", "a"],
        "l": "2026-01-31",
        "m": "2026-01-31T10:00:00",
        "n": ["/w=="],
    }


def test_parameters_of_every_kind(url: str) -> None:
    kinds = {
        "text": ("text", "ü"),
        "int": ("int", 2**62),
        "float": ("float", 1.5),
        "bool": ("bool", True),
        "date": ("date", "2026-01-31"),
        "stamp": ("timestamp", "2026-01-31T10:00:00"),
        "time": ("time", "10:00:00"),
        "uuid": ("uuid", "12345678-1234-5678-1234-567812345678"),
        "decimal": ("decimal", "1.50"),
        "bytes": ("bytes", "/wA="),
        "json": ("json", {"a": [1]}),
        "ints": ("int[]", [1, 2]),
        "texts": ("text[]", ["{", "a,b", '"']),
        "days": ("date[]", ["2026-01-31"]),
    }
    header = "\n".join([f"-- :p_{name} {kind}" for name, (kind, _) in kinds.items()])
    columns = ", ".join([f":p_{name} AS {name}_" for name in kinds])
    app = make_app(url, {"same :one": f"{header}\nSELECT {columns}"})
    found = app.call("same", **{f"p_{name}": value for name, (_, value) in kinds.items()})
    assert found.ok, found.error
    assert found.to_dict()["result"] == {f"{name}_": value for name, (_, value) in kinds.items()}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda url: url.replace("pa55", "wrong"), "E4040"),
        (lambda url: url.rpartition("/")[0] + "/nowhere", "E4040"),
        (lambda url: url.rpartition("@")[0] + "@127.0.0.1:1/postgres", "E4075"),
        (lambda url: url + "?no_such_option=1", "E4040"),
    ],
    ids=["password", "database", "port", "option"],
)
def test_connections_that_fail(url: str, change: Any, code: str) -> None:
    app = make_app(change(url))
    found = app.call("count")
    assert found.error is not None and found.error.code == code
    problems = " ".join(str(problem) for problem in app.catalog.problems.values())
    assert "not checked yet" in problems
    for text in (str(found.error), problems, repr(list(app.catalog))):
        assert "pa55" not in text and "wrong-" not in text


def test_a_fork_does_not_use_the_connections_of_its_parent(url: str) -> None:
    database = PostgresDatabase(url)
    parent = fetch(database, "SELECT pg_backend_pid()")
    database._pid = os.getpid() + 1
    assert fetch(database, "SELECT pg_backend_pid()") != parent
    database._pid = os.getpid() + 1
    database.close()
    database._pid = os.getpid()
    database.close()


def test_idle_connections_are_few(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tooli.providers.sql import sql_postgres

    monkeypatch.setattr(sql_postgres, "MAX_IDLE_SECONDS", 0.0)
    database = PostgresDatabase(url)
    first = fetch(database, "SELECT pg_backend_pid()")
    assert fetch(database, "SELECT pg_backend_pid()") != first
    monkeypatch.setattr(sql_postgres, "MAX_IDLE_CONNECTIONS", 0)
    fetch(database, "SELECT 1")
    assert len(database._idle) == 0


def test_psycopg_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name == "psycopg":
            raise ImportError("No module named 'psycopg'")
        return real_import(name, *args)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(DependencyError) as caught:
        load_psycopg()
    assert caught.value.suggestion is not None
    assert "pip install 'tooli[postgres]'" in caught.value.suggestion.fix
    monkeypatch.undo()
    import psycopg

    monkeypatch.delattr(psycopg, "RawServerCursor")
    with pytest.raises(DependencyError, match=r"3\.2 or newer"):
        load_psycopg()


def test_a_provider_without_statements_and_without_a_server() -> None:
    app = Tooli("tables")
    app.add_provider(SQLProvider("postgresql://u:pa55@127.0.0.1:1/x"), namespace="db")
    found = app.call("db.list-tables")
    assert found.error is not None and found.error.code == "E4075"
    assert "pa55" not in str(found.error)


def test_a_statement_that_fails_to_plan_is_a_problem(url: str) -> None:
    database = PostgresDatabase(url)
    statements = [Statement("a", "SELECT 1 AS one"), Statement("b", "SELECT 1/0 AS one")]
    good, bad = database.analyze(statements, writes=None)
    database.close()
    assert isinstance(good, Analysis) and "division by zero" in str(bad)
