from __future__ import annotations

import pytest

from tooli.errors import Interrupted
from tooli.providers.sql.sql_database import (
    Analysis,
    CallStop,
    Column,
    PageQuery,
    order_clause,
    quote_name,
    to_json_value,
)


class FakeContext:
    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.callbacks: list[object] = []

    def remaining_time(self) -> float | None:
        return self.seconds

    def on_stop(self, callback: object) -> None:
        self.callbacks.append(callback)


def test_a_stop_knows_the_deadline() -> None:
    assert CallStop().remaining_time() is None and not CallStop().is_over
    assert CallStop().remaining_time(5) == 5
    context = FakeContext(3.0)
    stop = CallStop(context)  # type: ignore[arg-type]
    assert (stop.remaining_time(), stop.remaining_time(1)) == (3.0, 1)
    stop.check()
    stop.on_stop(print)
    assert context.callbacks[-1] is print
    context.callbacks[0]()  # type: ignore[operator]
    with pytest.raises(Interrupted):
        stop.check()
    assert CallStop(FakeContext(0.0)).is_over  # type: ignore[arg-type]


def test_rows_and_schemas() -> None:
    columns = (Column("a", {"type": "integer"}), Column("b", {}, str.upper))
    found = Analysis("", (), (), reads_only=True, columns=columns)
    assert found.to_row(("a", "b", "c"), (1, "x", b"\xff")) == {"a": 1, "b": "X", "c": "/w=="}
    assert found.to_row(("a", "b"), (None, None)) == {"a": None, "b": None}
    row = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}
    row = {**row, "required": ["a", "b"]}
    assert found.output_schema("many") == {"type": "array", "items": row}
    assert found.output_schema("one") == {**row, "type": ["object", "null"]}
    assert found.output_schema("scalar") == {"type": "integer"}
    unknown = Analysis("", (), (), reads_only=True)
    assert unknown.output_schema("scalar") == {}
    assert unknown.output_schema("many") == {"type": "array", "items": {"type": "object"}}
    change = Analysis("", (), ())
    assert change.output_schema("many")["required"] == ["affected_rows"]
    assert change.replace(columns=columns).output_schema("many")["required"][1] == "rows"


def test_json_values() -> None:
    assert to_json_value([memoryview(b"\x00"), (b"\x01", None, 1)]) == ["AA==", ["AQ==", None, 1]]


def test_orders() -> None:
    assert quote_name('a"b') == '"a""b"'
    first = PageQuery(limit=3, order_by=(("a", True), ("b", False)))
    assert order_clause(first, lambda at: f"${at}") == ' ORDER BY "a" DESC, "b"'
    following = order_clause(first.replace(after=(1, 2)), lambda at: f"${at}")
    assert following == (
        ' WHERE ("a" < $0) OR ("a" = $0 AND "b" > $1) OR ("a" IS NULL) OR ("b" IS NULL)'
        ' ORDER BY "a" DESC, "b"'
    )
