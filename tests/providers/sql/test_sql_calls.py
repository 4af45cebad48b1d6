from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from tests.providers.sql.shops import make_app, sqlite_shop

from tooli.providers.sql.sql_calls import to_key_value


def test_the_values_of_a_cursor() -> None:
    assert [to_key_value(v) for v in (1, 1.5, "a", True, date(2026, 1, 31), b"\xff")] == [
        *(1, 1.5, "a", "True", "2026-01-31", "/w==")
    ]


def test_a_cursor_of_another_form_is_refused(tmp_path: Path) -> None:
    """The author has changed the order of the pages between two calls."""
    path = sqlite_shop(tmp_path)
    select = "SELECT id, price FROM products ORDER BY id"
    by_offset = make_app(path, {"all": select})
    by_order = make_app(path, {"all": f"-- order by: id\n{select}"})
    for first, second in ((by_offset, by_order), (by_order, by_offset)):
        cursor = first.call("all", limit=2).meta["page"]["next_cursor"]
        assert first.call("all", limit=2, cursor=cursor).result[0]["id"] == 3
        found = second.call("all", limit=2, cursor=cursor).error
        assert found is not None and found.code == "E1042"


@pytest.mark.parametrize("read_only", [None, True])
def test_a_statement_is_checked_when_its_database_is_there(
    tmp_path: Path, read_only: bool | None
) -> None:
    statements = {
        "add": "-- effects: additive\nINSERT INTO products (name, price) VALUES ('x', 1)",
        "drop": "DELETE FROM products",
        "all": "SELECT id FROM products",
        "wrong": "SELECT * FROM nowhere",
    }
    app = make_app(str(tmp_path / "shop.db"), statements, read_only=read_only)
    assert app.call("all").error.code == "E4040"  # type: ignore[union-attr]
    sqlite_shop(tmp_path)
    assert len(app.call("all", limit=2).result) == 2
    assert "no such table" in str(app.call("wrong").error)
    added, dropped = app.call("add"), app.call("drop")
    if read_only:
        assert "only reads" in str(added.error) and "only reads" in str(dropped.error)
    else:
        assert added.result == {"affected_rows": 1}
        assert dropped.error is not None and dropped.error.code == "E1010"
        assert app.call("drop", dry_run=True).result["actions"][0]["action"] == "delete"
        assert app.call("drop", yes=True).result == {"affected_rows": 26}
