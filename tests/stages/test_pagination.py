"""Pages: cursors after records are added or removed, invalid cursors, and page sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tooli import Context, DefinitionError, Page, Tooli
from tooli.storage import page_window


def make(records: list[Any]) -> Tooli:
    """An app that returns the current records: as a list, a stream and a text."""
    app = Tooli("app", version="1")

    @app.command()
    def listed(other: str = "") -> list[Any]:
        return list(records)

    @app.command()
    def streamed(other: str = "") -> Iterator[Any]:
        yield from records

    @app.command()
    def text() -> str:
        return "".join(records)

    return app


def page(app: Tooli, tool: str, **options: Any) -> tuple[list[Any], str | None, list[str]]:
    result = app.call(tool, **options)
    assert result.ok, result.error
    meta = result.meta
    return result.result, meta["page"].get("next_cursor"), meta.get("warnings", [])


both = pytest.mark.parametrize("tool", ["listed", "streamed"])


@both
@settings(max_examples=60, deadline=None)
@given(
    before=st.integers(1, 30),
    after=st.integers(0, 10),
    added=st.lists(st.integers(1000, 2000), unique=True, max_size=8),
    gone=st.sets(st.integers(0, 29), max_size=8),
)
def test_records_added_or_removed_before_the_cursor(
    tool: str, before: int, after: int, added: list[int], gone: set[int]
) -> None:
    """The cursor finds its position if one of the last three records is still there."""
    records: list[Any] = list(range(before + after))
    app = make(records)
    first, cursor, _ = page(app, tool, limit=before)
    assert first == list(range(before))
    if cursor is None:
        return
    last = before - 1
    records[:] = [*added, *[n for n in records if n not in gone or n == last or n >= before]]
    rest, _, warnings = page(app, tool, limit=100, cursor=cursor)
    assert rest == list(range(before, before + after))
    assert not warnings


@both
def test_removed_last_record_loses_no_records(tool: str) -> None:
    records = list(range(10))
    app = make(records)
    _, cursor, _ = page(app, tool, limit=5)
    records.remove(4)
    rest, _, warnings = page(app, tool, limit=100, cursor=cursor)
    assert rest == [5, 6, 7, 8, 9]
    assert "may be repeated" in warnings[0]


@both
def test_position_is_used_if_no_record_is_found(tool: str) -> None:
    records = list(range(10))
    app = make(records)
    _, cursor, _ = page(app, tool, limit=5)
    records[:] = range(100, 110)
    rest, _, warnings = page(app, tool, limit=3, cursor=cursor)
    assert rest == [105, 106, 107]
    assert "by position" in warnings[0]


@both
def test_result_that_became_shorter_ends(tool: str) -> None:
    records = list(range(10))
    app = make(records)
    _, cursor, _ = page(app, tool, limit=5)
    records[:] = [7]
    rest, following, _ = page(app, tool, limit=3, cursor=cursor)
    assert rest == []
    assert following is None


def test_stream_is_searched_only_near_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_window, "SEARCH_DISTANCE", 5)
    records: list[Any] = list(range(40))
    app = make(records)
    _, cursor, _ = page(app, "streamed", limit=20)
    records[:] = [*range(100, 104), *range(40)]
    assert page(app, "streamed", limit=2, cursor=cursor)[0] == [20, 21]
    records[:] = [*range(100, 110), *range(40)]
    rest, _, warnings = page(app, "streamed", limit=2, cursor=cursor)
    assert rest == [10, 11]
    assert "by position" in warnings[0]
    assert page(app, "listed", limit=2)[0] == [100, 101]


@both
def test_equal_records_are_not_confused(tool: str) -> None:
    app = make([0] * 7 + [1] * 3)
    found: list[int] = []
    cursor = None
    for _ in range(4):
        some, cursor, warnings = page(app, tool, limit=3, cursor=cursor)
        found += some
        assert not warnings
    assert found == [0] * 7 + [1] * 3
    assert cursor is None


def test_stream_is_not_read_beyond_the_page() -> None:
    """After a full page, the stream is not asked for another record: it might block."""
    app = make([1, 2, 3])
    some, cursor, _ = page(app, "streamed", limit=3)
    assert some == [1, 2, 3]
    assert page(app, "streamed", limit=3, cursor=cursor)[:2] == ([], None)
    assert page(app, "listed", limit=3)[:2] == ([1, 2, 3], None)


# ------------------------------------------------------------------ validity of cursors


@both
def test_a_cursor_belongs_to_its_call(tool: str) -> None:
    app = make(list(range(10)))
    _, cursor, _ = page(app, tool, limit=5)
    other = "streamed" if tool == "listed" else "listed"
    for result in (
        app.call(other, limit=5, cursor=cursor),
        app.call(tool, limit=5, cursor=cursor, other="x"),
        app.call(tool, limit=5, cursor=cursor, filter=". > 2"),
    ):
        assert result.error is not None
        assert result.error.code == "E1042"
        assert result.error.field == "cursor"
    assert app.call(tool, limit=2, cursor=cursor, fields="x").ok, "the selected fields may change"


def test_changed_cursor_is_rejected_before_the_function_runs() -> None:
    ran: list[int] = []
    app = Tooli("app")

    @app.command()
    def numbers() -> list[int]:
        ran.append(1)
        return list(range(10))

    cursor = app.call("numbers", limit=3).meta["page"]["next_cursor"]
    ran.clear()
    for at in range(len(cursor)):
        changed = cursor[:at] + ("B" if cursor[at] != "B" else "C") + cursor[at + 1 :]
        result = app.call("numbers", limit=3, cursor=changed)
        assert result.error is not None
        assert result.error.code == "E1042"
        assert result.to_dict()["error"]["category"] == "input"
    assert not ran


def test_cursor_can_be_used_again() -> None:
    app = make(list(range(10)))
    _, cursor, _ = page(app, "listed", limit=4)
    assert page(app, "listed", limit=4, cursor=cursor) == page(
        app, "listed", limit=4, cursor=cursor
    )


# ------------------------------------------------------------------ page sizes and Page


def test_page_size_of_the_command() -> None:
    app = Tooli("app")

    @app.command(paginated=True)
    def many() -> list[int]:
        return list(range(250))

    @app.command(paginated=7)
    def few() -> Iterator[int]:
        yield from range(250)

    assert len(app.call("many").result) == 100
    assert app.call("few").result == list(range(7))
    assert list(app.stream("few")) == list(range(7))
    assert len(app.call("few", limit=0).result) == 250
    assert "page" not in app.call("few", limit=0).meta


@pytest.mark.parametrize("text", [{"paginated": -1}, {"paginated": "x"}, {"max_tokens": 0}])
def test_invalid_limits_are_definition_errors(text: Any) -> None:
    with pytest.raises(DefinitionError, match=next(iter(text))):
        Tooli("app").command(**text)


def test_function_that_pages_itself() -> None:
    asked: list[Any] = []
    app = Tooli("app")

    @app.command()
    def source(ctx: Context) -> Page[int]:
        asked.append((ctx.page.limit, ctx.page.cursor))
        first = int(ctx.page.cursor or 0)
        return Page(range(first, first + 3), next_cursor=str(first + 3), total=99)

    result = app.call("source", limit=2)
    assert result.result == [0, 1]
    assert result.meta["page"]["total"] == 99
    again = app.call("source", limit=2, cursor=result.meta["page"]["next_cursor"])
    assert again.result == [2]
    third = app.call("source", limit=5, cursor=again.meta["page"]["next_cursor"])
    assert third.result == [3, 4, 5]
    assert asked == [(2, None), (2, None), (5, "3")]
    assert app.find("source").limits.paginated  # type: ignore[union-attr]
    schema = app.call("source", detailed=True).meta["output_schema"]
    assert schema == {"type": "array", "items": {"type": "integer"}}


def test_other_class_named_page() -> None:
    """A class of the author that is also called Page."""
    import dataclasses

    globals_of: dict[str, Any] = {}

    @dataclasses.dataclass
    class Other:
        n: int

    globals_of["Page"] = Other
    exec("def one() -> Page:\n    return Page(3)", globals_of)
    app = Tooli("app")
    app.command()(globals_of["one"])
    assert app.call("one").to_dict()["result"] == {"n": 3}
    assert not app.find("one").limits.paginated  # type: ignore[union-attr]


def test_text_continues_where_it_was_cut() -> None:
    records = [f"line {i}\n" for i in range(60)]
    app = make(records)
    found, cursor, steps = "", None, 0
    while True:
        result = app.call("text", max_bytes=450, cursor=cursor)
        found += result.unwrap()
        assert found.endswith("\n"), "cut at the end of a line"
        steps += 1
        cursor = result.meta.get("page", {}).get("next_cursor")
        if cursor is None:
            break
    assert found == "".join(records)
    assert steps > 2
