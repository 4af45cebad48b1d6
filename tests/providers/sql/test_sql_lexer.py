from __future__ import annotations

import pytest

from tooli.providers.sql.sql_lexer import replace_params, single_statement, words


@pytest.mark.parametrize(
    ("sql", "names", "is_postgres"),
    [
        ("SELECT :a, :b_2, :a", ("a", "b_2"), True),
        ("SELECT ':a', \":a\", 'it''s :a', :b", ("b",), True),
        ("SELECT :a::text, x::int", ("a",), True),
        ("SELECT 1 -- :a\n, :b /* :c /* :d */ :e */", ("b",), True),
        ("SELECT 1 /* :c /* :d */ , :e", ("e",), False),
        ("SELECT $$ :a $$, $q$ :b $$ :c $q$, :d", ("d",), True),
        ("SELECT E'\\' :a', :b", ("b",), True),
        ("SELECT '\\', :b", ("b",), False),
        ("SELECT `:a`, [:b], :c", ("c",), False),
        ("SELECT x[1 : 2], y[: n]", (), True),
        ("SELECT 'open :a", (), True),
        ("SELECT $$ open :a", (), True),
        ("SELECT /* open :a", (), True),
        ("SELECT x'00', :a", ("a",), False),
    ],
)
def test_parameters(sql: str, names: tuple[str, ...], is_postgres: bool) -> None:
    replaced, found = replace_params(sql, lambda name: f"<{name}>", is_postgres=is_postgres)
    assert found == names
    assert all(f"<{name}>" in replaced for name in names)
    assert len(replaced) == len(sql) + replaced.count("<")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1;", "SELECT 1"),
        ("SELECT ';' ; -- the end", "SELECT ';'"),
        ("SELECT 1;;\n", "SELECT 1"),
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1 ; 2", "several statements"),
        ("SELECT 1; DROP TABLE x", "several statements"),
        ("SELECT $1", "no names"),
        ("-- nothing", "no SQL"),
        (";", "no SQL"),
        ("", "no SQL"),
    ],
)
def test_single_statement(sql: str, expected: str) -> None:
    found, problem = single_statement(sql, is_postgres=True)
    assert found == expected or expected in problem


def test_positional_parameters_of_sqlite() -> None:
    for sql in ("SELECT ?", "SELECT ?1", "SELECT @a", "SELECT $a"):
        assert "no names" in single_statement(sql, is_postgres=False)[1]
    assert single_statement("SELECT '?', \"@a\"", is_postgres=False)[1] == ""


def test_words() -> None:
    found = words("SELECT \"PG_Read_File\"(x), 'lo_import' -- dblink", is_postgres=True)
    assert found == ("select", "pg_read_file", "x")
