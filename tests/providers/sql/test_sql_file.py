from __future__ import annotations

from pathlib import Path

import pytest

from tooli.errors import DefinitionError
from tooli.providers.sql import sql_file
from tooli.providers.sql.sql_file import (
    MANY,
    ONE,
    SCALAR,
    Statement,
    StatementProblem,
    parse_sql_file,
    parse_statement,
    read_parameter,
    read_sql_file,
    sql_files,
)
from tooli.providers.sql.sql_types import Parameter


def parse(title: str, text: str) -> Statement:
    return parse_statement(title, text, is_postgres=False)


def problem(title: str, text: str) -> str:
    with pytest.raises(StatementProblem) as caught:
        parse(title, text)
    return str(caught.value)


def test_a_whole_statement() -> None:
    found = parse(
        "admin.top_products",
        """
-- Show the best products.
--
-- Note: of one shop.
-- :shop int  The shop.
-- tags: shop, report
-- timeout: 2.5 s
-- effects: additive, idempotent
-- order by: price desc, "id"
-- Rate: 3 of 5.

SELECT 1 -- :not_a_parameter
;
""",
    )
    assert found.path == ("admin", "top-products")
    assert found.description == "Show the best products.\n\nNote: of one shop.\nRate: 3 of 5."
    assert found.parameters == (Parameter("shop", "int", description="The shop."),)
    assert (found.tags, found.timeout) == (("shop", "report"), 2.5)
    assert found.effects == ("additive", "idempotent")
    assert found.order_by == (("price", True), ("id", False))
    assert found.sql == "SELECT 1 -- :not_a_parameter"


@pytest.mark.parametrize(
    ("title", "result"),
    [
        ("a", MANY), ("a :many", MANY), ("a:one", ONE), ("a^", ONE), ("a :one", ONE),
        ("a$", SCALAR), ("a :scalar", SCALAR), ("a!", MANY), ("a<!", MANY), ("a :exec", MANY),
        ("get_it(id, name)^", ONE), ("a :affected", MANY),
    ],
)  # fmt: skip
def test_results(title: str, result: str) -> None:
    assert parse(title, "SELECT 1").result == result


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (":id int", Parameter("id", "int")),
        (":id BIGINT  The number.", Parameter("id", "int", description="The number.")),
        (":min float = 0  Lowest.", Parameter("min", "float", default=0, description="Lowest.")),
        (":name text? A name.", Parameter("name", "text", nullable=True, description="A name.")),
        (":name text = null", Parameter("name", "text", nullable=True)),
        (":name text = 'it''s' x", Parameter("name", "text", default="it's", description="x")),
        (':name text = "a b"', Parameter("name", "text", default="a b")),
        (":name text = 1.0", Parameter("name", "text", default="1.0")),
        (":kind a|b", Parameter("kind", "text", choices=("a", "b"))),
        (":kind 'a b'|c = c", Parameter("kind", "text", choices=("a b", "c"), default="c")),
        (":ids int[]", Parameter("ids", "int", is_list=True)),
        (":ids int[]?", Parameter("ids", "int", is_list=True, nullable=True)),
        (":ids int[] = [1, 2]", Parameter("ids", "int", is_list=True, default=[1, 2])),
        (":on bool=true", Parameter("on", "bool", default=True)),
        (":day date = 2026-01-31", Parameter("day", "date", default="2026-01-31")),
        (":x json = {\"a\": 1}", Parameter("x", "json", default={"a": 1})),
    ],
)  # fmt: skip
def test_parameters(line: str, expected: Parameter) -> None:
    assert read_parameter(line) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (":", "must be ':name type'"),
        (": x", "must be ':name type'"),
        (":id", "has no type"),
        (":id - the number", "has no type"),
        (":id inteeger", "did you mean 'integer'?"),
        (":id geometry", "unknown type 'geometry'; use one of text"),
        (":id int = x", "the default of id must be an integer"),
        (":kind a|b = c", "the default of kind must be one of a, b"),
        (":day date = tomorrow", "the default of day must be a date"),
    ],
)
def test_wrong_parameters(line: str, message: str) -> None:
    assert message in problem("a", f"-- {line}\nSELECT 1")


@pytest.mark.parametrize(
    ("title", "text", "message"),
    [
        ("a b", "SELECT 1", "no name"),
        ("", "SELECT 1", "no name"),
        ("a#", "SELECT 1", "'#' is not supported"),
        ("a*!", "SELECT 1", "not supported"),
        ("a", "-- x", "no SQL"),
        ("a", "-- timeout: soon\nSELECT 1", "number of seconds"),
        ("a", "-- tags:\nSELECT 1", "has no value"),
        ("a", "-- effects: none\nSELECT 1", "must be one of write"),
        ("a", "-- order by: a b\nSELECT 1", "asc or desc"),
        ("a", "-- tag: x\nSELECT 1", "did you mean 'tags'?"),
        ("a", "-- :a int\n-- :a text\nSELECT :a", "described twice"),
    ],
)
def test_wrong_statements(title: str, text: str, message: str) -> None:
    assert message in problem(title, text)


def test_files(tmp_path: Path) -> None:
    text = (
        "-- Statements of the shop.\n\n-- name: a\nSELECT 1;\n\n--name:b^\nSELECT 2\n"
        "-- name: a\nSELECT 3\n-- NAME: c d\nSELECT 4\n"
    )
    found, problems = parse_sql_file(text, "admin_tools/shop.sql", is_postgres=False)
    assert [(s.path, s.sql) for s in found] == [
        (("admin-tools", "a"), "SELECT 1"),
        (("admin-tools", "b"), "SELECT 2"),
    ]
    assert problems == {
        "admin_tools/shop.sql:8": "a: an earlier statement of the file has its name",
        "admin_tools/shop.sql:10": "c d: this is no name; write letters, digits, -, _ and dots",
    }
    found, problems = parse_sql_file("SELECT 0;\n-- name: a\nSELECT 1", "x.sql", is_postgres=False)
    assert len(found) == 1 and "the text before line 2" in problems["x.sql:1"]
    assert parse_sql_file("  \n", "x.sql", is_postgres=False) == ([], {})
    found, _ = parse_sql_file("-- All.\nSELECT 1", "all_of_it.sql", is_postgres=False)
    assert [(s.path, s.description) for s in found] == [(("all-of-it",), "All.")]


def test_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.sql"
    file.write_bytes(b"\xef\xbb\xbfSELECT 1")
    assert read_sql_file(str(file)) == "SELECT 1"
    with pytest.raises(StatementProblem, match="cannot be read"):
        read_sql_file(str(tmp_path))
    monkeypatch.setattr(sql_file, "MAX_FILE_BYTES", 4)
    with pytest.raises(StatementProblem, match="more than 0 MiB"):
        read_sql_file(str(file))
    monkeypatch.setattr(sql_file, "MAX_FILES", 1)
    assert [name for _, name in sql_files(str(tmp_path))] == ["a.sql"]
    (tmp_path / "b.sql").touch()
    with pytest.raises(DefinitionError, match=r"more than 1 \.sql files"):
        list(sql_files(str(tmp_path)))
