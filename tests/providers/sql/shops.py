"""The same shop in SQLite and in Postgres, for the tests of SQLProvider."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from tooli import Tooli
from tooli.providers import SQLProvider

STATEMENTS = """
-- name: find-products
-- Find products.
-- :min float = 0  The lowest price.
-- :kind book|film?  The kind.
-- tags: shop, reading
SELECT id, name, price, kind FROM products
WHERE price >= :min AND (:kind IS NULL OR kind = :kind) ORDER BY id;

-- name: by_price
-- order by: price desc, id
SELECT id, price FROM products;

-- name: product :one
-- Show a product.
-- :id int
SELECT id, name FROM products WHERE id = :id;

-- name: count$
SELECT count(*) AS n FROM products;

-- name: named
-- :name text
SELECT id, name FROM products WHERE name = :name;

-- name: add!
-- Add a product.
-- :name text
-- :price float
-- :data bytes?
-- :extra json?
-- effects: additive
INSERT INTO products (name, price, data, extra) VALUES (:name, :price, :data, :extra)
RETURNING id, name;

-- name: raise-prices!
-- :by float
UPDATE products SET price = price + :by;

-- name: slow$
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c;

-- name: numbers
-- :n int = 5
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < :n) SELECT n FROM c;
"""

_SQLITE = """
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    price REAL NOT NULL CHECK (price >= 0), kind TEXT, data BLOB, extra JSON);
"""
_POSTGRES = """
CREATE TABLE products (id serial PRIMARY KEY, name text NOT NULL UNIQUE,
    price float8 NOT NULL CHECK (price >= 0), kind text, data bytea, extra jsonb);
"""
_ROWS = "INSERT INTO products (name, price, kind) VALUES "
COUNT = 25


def fill_script() -> str:
    """Return the SQL that adds 25 products, of which two at a time have the same price."""
    rows = [f"('p{i}', {i // 2 * 1.5}, '{'film' if i % 2 else 'book'}')" for i in range(COUNT)]
    return f"{_ROWS}{', '.join(rows)};"


def sqlite_shop(folder: Path) -> str:
    """Create a shop in an SQLite file, and return its path."""
    path = folder / "shop.db"
    connection = sqlite3.connect(path)
    connection.executescript(_SQLITE + fill_script())
    connection.close()
    return str(path)


def postgres_shop(server: str) -> str:
    """Create a shop in a schema of its own with a role of its own, and return its URL."""
    import psycopg

    name = f"shop_{os.urandom(6).hex()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'pa55-{name}'")
        connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        connection.execute(f"ALTER ROLE {name} SET search_path TO {name}")
        connection.execute(f"SET ROLE {name}; SET search_path TO {name};{_POSTGRES}{fill_script()}")
    place = server.rpartition("@")[2]
    return f"postgresql://{name}:pa55-{name}@{place}"


def local_command() -> int:
    """A command of the app itself: Typer refuses an app without one."""
    return 1


def make_app(database: str, statements: object = None, **options: object) -> Tooli:
    """Return an app with the statements above, or with those of a file."""
    app = Tooli("shop")
    app.command("local")(local_command)
    given = statements if statements is not None else parse(STATEMENTS)
    app.add_provider(SQLProvider(database, given, **options))  # type: ignore[arg-type]
    return app


def call_value(app: Tooli, tool: str, **arguments: Any) -> Any:
    """Call a tool and return its result."""
    result = app.call(tool, **arguments)
    assert result.ok, result.error
    return result.result


def call_error(app: Tooli, tool: str, **arguments: Any) -> Any:
    """Call a tool that fails and return its error."""
    result = app.call(tool, **arguments)
    assert not result.ok, result.result
    return result.error


def parse(text: str) -> dict[str, str]:
    """Return the statements of a text as a dict."""
    parts = text.split("-- name: ")[1:]
    return {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in parts}
