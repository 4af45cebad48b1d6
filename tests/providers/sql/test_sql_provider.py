"""SQLProvider on SQLite and Postgres, through the interfaces of an app."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.providers.sql.shops import COUNT, STATEMENTS, make_app, sqlite_shop
from tests.providers.sql.shops import call_error as error
from tests.providers.sql.shops import call_value as value

from tooli import Tooli
from tooli.errors import DefinitionError
from tooli.providers import SQLProvider
from tooli.providers.sql import sql_provider
from tooli.testing import Case, assert_parity

INJECTIONS = (
    "' OR '1'='1",
    "'; DROP TABLE products; --",
    'x" OR 1=1 --',
    "\\'; DELETE FROM products; --",
    "$$; DROP TABLE products; $$",
    "%s %(name)s {name} :name $1 ?",
    "p1/*",
    "\u02bc OR 1=1",
    "p1\n--",
)


@pytest.fixture
def app(database: str) -> Tooli:
    return make_app(database)


# ------------------------------------------------------------------ what the database says


def test_effects_are_found_out(app: Tooli) -> None:
    found = {tool.name: tool.behavior for tool in app.catalog if tool.name != "local"}
    assert not app.catalog.problems
    assert {name for name, effects in found.items() if effects.read_only} == {
        *("find-products", "by-price", "product", "count", "named", "slow", "numbers")
    }
    assert {name for name, effects in found.items() if effects.destructive} == {"raise-prices"}
    assert not any(effects.open_world for effects in found.values())


def test_schemas(app: Tooli) -> None:
    tool = app.find("find-products")
    assert tool is not None and tool.guidance.tags == ("shop", "reading")
    assert tool.schema == {
        "type": "object",
        "properties": {
            "min": {"type": "number", "default": 0, "description": "The lowest price."},
            "kind": {
                "type": ["string", "null"],
                "enum": ["book", "film", None],
                "description": "The kind.",
            },
        },
        "required": [],
    }
    items = tool.guidance.output_schema["items"]  # type: ignore[index]
    assert list(items["properties"]) == ["id", "name", "price", "kind"]  # type: ignore[index]
    assert items["properties"]["name"] == {"type": ["string", "null"]}  # type: ignore[index]
    added = app.find("add")
    assert added is not None
    assert list(added.guidance.output_schema["properties"]) == ["affected_rows", "rows"]  # type: ignore


@pytest.mark.parametrize(
    ("tool", "arguments", "options"),
    [
        ("find-products", {"min": 12.0, "kind": "book"}, {"limit": 3}),
        ("find-products", {"min": 99.0}, {}),
        ("product", {"id": 3}, {}),
        ("count", {}, {}),
        ("named", {"name": INJECTIONS[1]}, {}),
        ("find-products", {"kind": "x"}, {}),
        ("product", {}, {}),
        ("product", {"id": 2**63}, {}),
        ("raise-prices", {"by": 1.0}, {}),
        ("raise-prices", {"by": -100.0}, {"yes": True}),
        ("add", {"name": "p1", "price": 1.0}, {}),
    ],
)
def test_all_interfaces_agree(
    app: Tooli, tool: str, arguments: dict[str, Any], options: dict[str, Any]
) -> None:
    assert_parity(app, Case(tool, arguments, options))


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("text", INJECTIONS)
def test_a_text_never_becomes_sql(app: Tooli, text: str) -> None:
    assert value(app, "named", name=text) == []
    assert value(app, "add", name=text, price=1)["affected_rows"] == 1
    assert [row["name"] for row in value(app, "named", name=text)] == [text]
    assert value(app, "count") == COUNT + 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("product", {"id": "1 OR 1=1"}),
        ("find-products", {"min": "0 OR 1=1"}),
        ("find-products", {"kind": "book' OR '1'='1"}),
        ("add", {"name": "x", "price": 1, "data": "'); DROP TABLE products; --"}),
        ("numbers", {"n": "5; DROP TABLE products"}),
        ("named", {"name": ["p1"]}),
        ("named", {"name": {"$ne": ""}}),
        ("named", {"name": "p\0"}),
        ("named", {"name": "\ud800"}),
        ("named", {"name": None}),
        ("product", {"id": 1.5}),
        ("add", {"name": "x", "price": float("inf")}),
        ("named", {"title": "p1"}),
    ],
)
def test_wrong_values_are_refused(app: Tooli, tool: str, arguments: dict[str, Any]) -> None:
    found = error(app, tool, **arguments)
    assert found.category == "input"
    assert value(app, "count") == COUNT


def test_bytes_and_json_are_stored(app: Tooli, database: str) -> None:
    extra = {"a": ["'; --", None, 1.5], "ü": "\u2028"}
    value(app, "add", name="with", price=1, data="/wD+", extra=extra)
    other = make_app(
        database,
        {"get :one": "-- :name text\nSELECT data, extra FROM products WHERE name = :name"},
    )
    assert value(other, "get", name="with") == {"data": "/wD+", "extra": extra}


def test_no_row_is_null(app: Tooli) -> None:
    assert value(app, "product", id=999) is None


# ------------------------------------------------------------------ pages


def collect(app: Tooli, tool: str, **options: Any) -> list[list[dict[str, Any]]]:
    pages: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while True:
        found = app.call(tool, **options, **cursor)
        assert found.ok, found.error
        pages.append(found.result)
        following = (found.meta.get("page") or {}).get("next_cursor")
        if following is None:
            return pages
        cursor = {"cursor": following}


@pytest.mark.parametrize("tool", ["find-products", "by-price"])
@pytest.mark.parametrize(
    "options", [{"limit": 4}, {"limit": 5}, {"limit": 4, "max_items": 3}, {"limit": 100}]
)
def test_pages_have_every_row_once(app: Tooli, tool: str, options: dict[str, Any]) -> None:
    pages = collect(app, tool, **options)
    ids = [row["id"] for page in pages for row in page]
    assert sorted(ids) == list(range(1, COUNT + 1))
    assert max(len(page) for page in pages) == min(
        options.get("max_items", 4e9), options["limit"], COUNT
    )


def test_rows_are_added_between_two_pages(app: Tooli) -> None:
    first = app.call("by-price", limit=10)
    value(app, "add", name="most expensive", price=1000)
    value(app, "add", name="cheap", price=0)
    rest: list[dict[str, Any]] = []
    page = first
    while page.meta.get("page", {}).get("next_cursor"):
        page = app.call("by-price", limit=10, cursor=page.meta["page"]["next_cursor"])
        rest += page.result
    ids = [row["id"] for row in (*first.result, *rest)]
    assert sorted(ids) == [*range(1, COUNT + 1), COUNT + 2]


def test_a_filter_reads_as_many_rows_as_it_needs(app: Tooli) -> None:
    pages = collect(app, "numbers", n=1000, limit=3, filter="n > 994")
    assert [[row["n"] for row in page] for page in pages] == [[995, 996, 997], [998, 999, 1000], []]


def test_an_answer_is_bounded_and_a_stream_is_not(database: str) -> None:
    app = make_app(database, max_rows=10, page_size=4)
    assert len(value(app, "find-products")) == 4
    found = app.call("find-products", limit=0)
    assert len(found.result) == 10 and "more than 10 rows" in found.meta["warnings"][0]
    assert len(list(app.stream("find-products", limit=0))) == COUNT
    assert [len(page) for page in collect(app, "find-products", limit=0)] == [10, 10, 5]


def test_the_cursor_of_a_stream_continues_in_an_answer(database: str) -> None:
    app = make_app(database, max_rows=5)
    stream = app.stream("find-products", limit=0, max_items=12)
    rows = list(stream)
    assert len(rows) == 12


def test_a_stream_ends_early(app: Tooli) -> None:
    stream = app.stream("numbers", n=10**12, limit=0)
    assert [next(stream)["n"] for _ in range(3)] == [1, 2, 3]
    stream.close()
    assert value(app, "count") == COUNT


def test_pages_that_would_lose_rows_are_errors(database: str) -> None:
    by_price = "-- order by: {}\nSELECT id, price, kind FROM products"
    app = make_app(
        database,
        {
            "twice": by_price.format("price"),
            "null": by_price.format("extra").replace("kind", "extra"),
        },
    )
    assert "several rows with the same values" in error(app, "twice", limit=3).message
    assert "is NULL" in error(app, "null", limit=3).message


# ------------------------------------------------------------------ changes


def test_a_change_is_confirmed_planned_and_applied(app: Tooli) -> None:
    before = value(app, "find-products", limit=1)
    assert error(app, "raise-prices", by=1.0).code == "E1010"
    plan = value(app, "raise-prices", by=1.0, dry_run=True)
    assert plan["actions"][0]["details"] == {"affected_rows": COUNT}
    assert plan["actions"][0]["target"] == "products"
    assert value(app, "find-products", limit=1) == before
    assert value(app, "raise-prices", by=1.0, apply=plan["token"], yes=True) == {
        "affected_rows": COUNT
    }
    assert value(app, "find-products", limit=1)[0]["price"] == before[0]["price"] + 1


def test_a_plan_is_refused_after_a_change_of_the_rows(app: Tooli) -> None:
    plan = value(app, "raise-prices", by=1.0, dry_run=True)
    value(app, "add", name="new", price=1)
    assert error(app, "raise-prices", by=1.0, apply=plan["token"], yes=True).code == "E3053"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"name": "p1", "price": 1}, "E3020"), ({"name": "p99", "price": -1}, "E1000")],
)
def test_constraints(app: Tooli, arguments: dict[str, Any], code: str) -> None:
    found = error(app, "add", **arguments)
    assert (found.code, value(app, "count")) == (code, COUNT)
    assert "Nothing was changed" in found.message and "null" not in found.message


def test_a_read_only_provider_leaves_out_what_writes(database: str) -> None:
    app = make_app(database, read_only=True)
    assert {"add", "raise-prices"}.isdisjoint(tool.name for tool in app.catalog)
    problems = " ".join(str(problem) for problem in app.catalog.problems.values())
    assert problems.count("it writes, and the provider has read_only=True") == 2


# ------------------------------------------------------------------ deadlines


def test_a_slow_statement_is_stopped(database: str) -> None:
    app = make_app(database, timeout=2)  # `count` needs less on a busy machine, too
    assert error(app, "slow").code == "E4050"
    assert value(app, "count") == COUNT


def test_a_call_may_set_a_shorter_timeout(app: Tooli) -> None:
    assert error(app, "slow", timeout=0.2).code == "E4050"
    rows = app.stream("numbers", n=10**12, limit=0, timeout=0.3)
    with pytest.raises(Exception, match="did not finish within"):
        for _ in rows:
            pass


# ------------------------------------------------------------------ tables


def test_tables_are_listed_and_described(database: str) -> None:
    app = Tooli("tables")
    app.add_provider(SQLProvider(database))
    assert {tool.name for tool in app.catalog} == {"list-tables", "describe-table"}
    assert "products" in [row["name"] for row in value(app, "list-tables")]
    columns = value(app, "describe-table", table="products")
    assert [row["name"] for row in columns] == ["id", "name", "price", "kind", "data", "extra"]
    found = error(app, "describe-table", table="x'; --")
    assert (found.code, "There is no table" in found.message) == ("E3010", True)


# ------------------------------------------------------------------ problems


def test_a_server_reads_changed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_provider, "POLL_SECONDS", 0.01)
    file = tmp_path / "shop.sql"
    file.write_text("-- name: a\nSELECT 1 AS one", encoding="utf-8")
    provider = SQLProvider(sqlite_shop(tmp_path), file)
    assert [tool.key for tool in provider.tools()] == ["a"]
    changed = Event()
    provider.watch(changed.set)
    try:
        file.write_text("-- name: b\nSELECT 1 AS one", encoding="utf-8")
        assert changed.wait(60)
        assert [tool.key for tool in provider.tools()] == ["b"]
    finally:
        provider.close()


def test_a_missing_database_is_reported_and_tried_again(tmp_path: Path) -> None:
    app = make_app(str(tmp_path / "shop.db"))
    found = error(app, "count")
    assert found.code == "E4040" and "'shop.db' does not exist" in found.message
    assert not (tmp_path / "shop.db").exists()
    sqlite_shop(tmp_path)
    assert value(app, "count") == COUNT
    assert error(app, "raise-prices", by=1.0).code == "E1010"
    assert value(app, "raise-prices", by=1.0, yes=True) == {"affected_rows": COUNT}
    assert value(app, "add", name="x", price=1)["affected_rows"] == 1


def test_a_missing_database_has_no_tables(tmp_path: Path) -> None:
    app = Tooli("tables")
    app.add_provider(SQLProvider(tmp_path / "none.db"), namespace="db")
    assert error(app, "db.list-tables").code == "E4040"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("",), {}, "must be an SQLite file"),
        ((5,), {}, "must be an SQLite file"),
        ((":memory:",), {}, "must name a file"),
        (("env:",), {}, "must name a file"),
        (("a.db", 5), {}, "must be a path"),
        (("a.db", {"a": 5}), {}, "all texts"),
        (("a.db",), {"timeout": 0}, "number of seconds"),
        (("a.db",), {"max_rows": 0}, "max_rows"),
        (("a.db",), {"page_size": True}, "page_size"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], options: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        SQLProvider(*arguments, **options)


def test_relative_paths_start_at_the_file_of_the_app(tmp_path: Path) -> None:
    sqlite_shop(tmp_path)
    (tmp_path / "shop.sql").write_text(STATEMENTS, encoding="utf-8")
    (tmp_path / "app.py").write_text(
        "from tooli import Tooli\nfrom tooli.providers import SQLProvider\n"
        "app = Tooli('shop')\napp.add_provider(SQLProvider('shop.db', 'shop.sql'))\napp()\n"
    )
    command = [sys.executable, str(tmp_path / "app.py"), "numbers", "--jsonl", "--n", "3"]
    done = subprocess.run(command, cwd=os.path.dirname(sys.executable), capture_output=True)
    assert done.stdout == b'{"n":1}\n{"n":2}\n{"n":3}\n', done.stderr


# ------------------------------------------------------------------ two at once


def run_in_threads(count: int, work: Callable[[int], None]) -> list[BaseException]:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_many_writers_at_once(app: Tooli) -> None:
    def add(number: int) -> None:
        for turn in range(3):
            assert value(app, "add", name=f"n{number}-{turn}", price=1)["affected_rows"] == 1

    assert run_in_threads(6, add) == []
    assert value(app, "count") == COUNT + 18


def test_a_locked_database_is_temporary(tmp_path: Path) -> None:
    path = sqlite_shop(tmp_path)
    app = make_app(path)
    list(app.catalog)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        found = error(app, "add", name="x", price=1, timeout=0.3)
        assert found.code in ("E4075", "E4050") and found.is_retryable
    finally:
        other.close()
    assert value(app, "add", name="x", price=1)["affected_rows"] == 1


def test_a_file_that_cannot_be_written_is_still_read(tmp_path: Path) -> None:
    path = Path(sqlite_shop(tmp_path))
    path.chmod(0o444)
    app = make_app(str(path))
    assert value(app, "count") == COUNT
    if os.access(path, os.W_OK):
        pytest.skip("this user may write every file")
    assert error(app, "add", name="x", price=1).code == "E4000"


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(b"no database" * 1000)
    app = make_app(str(path))
    found = error(app, "count")
    assert found.code == "E4040" and "not a database" in found.message
    shutil.rmtree(tmp_path)
