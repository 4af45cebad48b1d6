"""Pages: the records of one page, and the signed cursor of the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.core.call import PYTHON_CALLER, Call
from tooli.core.call_fingerprint import digest
from tooli.core.result_types import Page
from tooli.errors import InputError
from tooli.records.call_options import ResultOptions
from tooli.records.record_flow import RecordFlow
from tooli.schema.tool_reader import read_tool
from tooli.storage import page_window
from tooli.storage.page_window import (
    CONTEXT_CHARS,
    RECORD_DIGEST_BYTES,
    CursorPosition,
    PageWindow,
    compute_cursor_binding,
    decode_cursor,
    encode_cursor,
)
from tooli.storage.signing import InvalidToken

KEY = b"k" * 32
CURSOR_CONTENTS = st.builds(
    CursorPosition,
    st.binary(min_size=6, max_size=6),
    st.integers(0, 2**40 - 1),
    st.lists(st.binary(min_size=5, max_size=5), max_size=3).map(tuple),
    st.none() | st.text(max_size=40),
)


@given(CURSOR_CONTENTS)
def test_cursor_round_trip(content: CursorPosition) -> None:
    assert decode_cursor(encode_cursor(content, KEY), KEY) == content


@given(CURSOR_CONTENTS, st.data())
def test_changed_cursor_is_rejected(content: CursorPosition, data: st.DataObject) -> None:
    text = encode_cursor(content, KEY)
    at = data.draw(st.integers(0, len(text)))
    other = data.draw(st.sampled_from("Aaz09-_=+/ \n.é"))
    for changed in (text[:at] + other + text[at + 1 :], text[:at] + other + text[at:], text[:at]):
        if changed != text:
            with pytest.raises(InvalidToken):
                decode_cursor(changed, KEY)


@given(st.text(max_size=80))
def test_arbitrary_text_is_rejected(text: str) -> None:
    with pytest.raises(InvalidToken):
        decode_cursor(text, KEY)


def test_cursor_with_another_key_is_rejected() -> None:
    with pytest.raises(InvalidToken):
        decode_cursor(encode_cursor(CursorPosition(b"123456", 3), KEY), b"x" * 32)


def test_cursor_is_short() -> None:
    digests = tuple([digest(b"%d" % i, RECORD_DIGEST_BYTES, KEY) for i in range(3)])
    content = CursorPosition(compute_cursor_binding("tool", b"{}", KEY), 12345, digests)
    assert len(encode_cursor(content, KEY)) < 60


# ------------------------------------------------------------------ pages

BINDING = b"binding"[:6]
RECORDS = list(range(10))


def rows(n: int) -> list[int]:
    return list(range(n))


TOOL = read_tool(rows, app="app", path=("rows",), kwargs={})
CALL = Call(TOOL, {"n": 9}, PYTHON_CALLER, [])


class BoundWindow(PageWindow):
    """A window with a known binding and key."""

    def _binding_and_key(self) -> tuple[bytes, bytes]:
        return BINDING, KEY


def make_window(
    cursor: str | None = None, limit: int | None = 3, is_streamed: bool = False
) -> PageWindow:
    flow = RecordFlow(ResultOptions(limit=limit), {})
    flow.is_streamed = is_streamed
    flow.cursor_position = None if cursor is None else decode_cursor(cursor, KEY)
    window = BoundWindow(CALL, flow)
    flow.processors.append(window)
    return window


def read_page(window: PageWindow, records: list[Any], is_list: bool = False) -> list[Any]:
    if is_list:
        window.set_all_records(records)
    page = list(window.flow.process(iter(records)))
    window.end()
    return page


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_pages_cover_all_records_once(is_list: bool, is_streamed: bool) -> None:
    cursor, pages = None, []
    for _ in range(4):
        window = make_window(cursor, is_streamed=is_streamed)
        pages.append(read_page(window, RECORDS, is_list))
        cursor = window.cursor_after(window.count)
        assert window.warnings == []
    assert pages == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]] and cursor is None


def test_total_is_known_after_the_last_record() -> None:
    window = make_window(limit=None, is_streamed=True)
    assert read_page(window, RECORDS) == RECORDS
    assert window.flow.total == 10
    window = make_window()
    read_page(window, RECORDS)
    assert window.flow.total is None and window.cursor_after(3) is not None


def second_page(
    before: list[Any], after: list[Any], is_list: bool = False
) -> tuple[list[Any], list[str]]:
    """Return the second page and its warnings. The records change between the two pages."""
    first = make_window()
    read_page(first, before, is_list)
    window = make_window(first.cursor_after(3))
    return read_page(window, after, is_list), window.warnings


@pytest.mark.parametrize("is_list", [False, True])
def test_inserted_records_cause_no_repetition(is_list: bool) -> None:
    assert second_page(RECORDS, [-2, -1, *RECORDS], is_list) == ([3, 4, 5], [])


@pytest.mark.parametrize("is_list", [False, True])
def test_deleted_record_causes_no_gap(is_list: bool) -> None:
    assert second_page(RECORDS, RECORDS[1:], is_list) == ([3, 4, 5], [])


def test_deleted_last_record_is_reported() -> None:
    page, warnings = second_page(RECORDS, [0, 1, *RECORDS[3:]])
    assert page == [3, 4, 5]
    assert warnings == [
        "A record before the cursor was deleted or changed. Some records may be repeated."
    ]


def test_page_continues_by_position_if_all_records_changed() -> None:
    page, warnings = second_page(RECORDS, [f"new {n}" for n in RECORDS])
    assert page == ["new 3", "new 4", "new 5"]
    assert "continues by position" in warnings[0]
    assert second_page(RECORDS, [7, 8])[0] == []


def test_stream_search_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_window, "SEARCH_DISTANCE", 2)
    page, warnings = second_page(RECORDS, [*range(-20, 0), *RECORDS])
    assert "continues by position" in warnings[0] and page == [-17, -16, -15]
    long = list(range(100))
    cursor, records = None, []
    for _ in range(5):
        window = make_window(cursor)
        records += read_page(window, long)
        cursor = window.cursor_after(window.count)
    assert records == long[:15]


def test_cursor_can_point_within_a_page() -> None:
    """A size limit may cut a page after its records were selected."""
    window = make_window()
    read_page(window, RECORDS)
    cursor = window.cursor_after(1)
    assert cursor is not None and read_page(make_window(cursor), RECORDS) == [1, 2, 3]


def test_cursor_after_page_of_tool_has_cursor_of_tool() -> None:
    window = make_window(limit=2)
    window.flow.tool_page = Page([], next_cursor="next", total=99)
    read_page(window, [1, 2, 3], is_list=True)
    assert window.flow.total == 99
    inside = decode_cursor(window.cursor_after(2) or "", KEY)
    assert (inside.position, inside.source_cursor) == (2, None)
    after = decode_cursor(window.cursor_after(3) or "", KEY)
    assert (after.position, after.record_digests, after.source_cursor) == (0, (), "next")
    window.flow.tool_page = Page([], next_cursor=None, total=3)
    assert window.cursor_after(3) is None


def test_result_without_limit_can_be_cut_later() -> None:
    window = make_window(limit=None)
    assert window.paginate_value([1, 2, 3]) == [1, 2, 3] and window.flow.total is None
    assert window.cursor_after(3) is None
    cursor = window.cursor_after(2)
    assert cursor is not None and read_page(make_window(cursor), [1, 2, 3]) == [3]
    window = make_window(limit=None)
    assert window.paginate_value("some text") == "some text"
    assert (window.cursor_after(9), window.flow.total) == (None, 9)
    assert window.paginate_value(1) == 1 and window.flow.cursor_after is None


def test_text_continues_at_cursor() -> None:
    text = "word " * 40
    window = make_window()
    assert window.remaining_text(text) == text
    window.end()
    cursor = window.cursor_after(CONTEXT_CHARS + 6)
    rest = make_window(cursor)
    assert rest.remaining_text(text) == text[CONTEXT_CHARS + 6 :] and rest.warnings == []
    changed = make_window(cursor)
    changed.remaining_text(text.upper())
    assert changed.warnings == ["The text before the cursor has changed."]


def test_cursor_of_another_call_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))

    other_call = CALL.replace(arguments={"n": 8})
    flow = RecordFlow(ResultOptions(limit=2), {})
    window = PageWindow(CALL, flow)
    window.process_list(RECORDS)
    key = window._binding_and_key()[1]
    flow.cursor_position = decode_cursor(window.cursor_after(2) or "", key)
    assert PageWindow(CALL, flow).process_list(RECORDS) == [2, 3]
    with pytest.raises(InputError, match="belongs to a call of another command") as caught:
        PageWindow(other_call, flow)
    assert (caught.value.code, caught.value.field) == ("E1042", "cursor")
