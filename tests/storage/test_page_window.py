"""Cursors are signed, bound to a call and short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.storage.page_window import (
    CursorPosition,
    compute_cursor_binding,
    decode_cursor,
    digest_record,
    encode_cursor,
)
from tooli.storage.signing import InvalidToken

KEY = b"k" * 32
STARTS = st.builds(
    CursorPosition,
    st.binary(min_size=6, max_size=6),
    st.integers(0, 2**40 - 1),
    st.lists(st.binary(min_size=5, max_size=5), max_size=3).map(tuple),
    st.none() | st.text(max_size=40),
)


@given(STARTS)
def test_a_cursor_decodes_to_the_encoded_position(start: CursorPosition) -> None:
    assert decode_cursor(encode_cursor(start, KEY), KEY) == start


@given(STARTS, st.data())
def test_every_change_is_detected(start: CursorPosition, data: st.DataObject) -> None:
    text = encode_cursor(start, KEY)
    at = data.draw(st.integers(0, len(text)))
    other = data.draw(st.sampled_from("Aaz09-_=+/ \n.é"))
    for changed in (text[:at] + other + text[at + 1 :], text[:at] + other + text[at:], text[:at]):
        if changed != text:
            with pytest.raises(InvalidToken):
                decode_cursor(changed, KEY)


@given(st.text(max_size=80))
def test_no_other_text_is_accepted(text: str) -> None:
    with pytest.raises(InvalidToken):
        decode_cursor(text, KEY)


def test_a_cursor_of_another_key_is_rejected() -> None:
    with pytest.raises(InvalidToken):
        decode_cursor(encode_cursor(CursorPosition(b"123456", 3), KEY), b"x" * 32)


def test_a_cursor_is_short() -> None:
    digests = tuple(digest_record(bytes([i])) for i in range(3))
    assert (
        len(
            encode_cursor(
                CursorPosition(compute_cursor_binding("tool", b"{}"), 12345, digests), KEY
            )
        )
        < 60
    )
