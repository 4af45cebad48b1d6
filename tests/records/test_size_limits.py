"""Limits in bytes, characters and tokens."""

from __future__ import annotations

import pytest

from tooli.core.output_limits import OUTPUT_LIMITS
from tooli.records.call_options import ResultOptions
from tooli.records.size_limits import CALLER_LIMIT, SizeLimit, exceeded_limit, size_limits


@pytest.mark.parametrize(
    ("unit", "text", "size"),
    [
        ("bytes", "aü😀", 7),
        ("characters", "abc", 3),
        ("characters", "aü😀", 4),
        ("tokens", "the text 1234", 5),
    ],
)
def test_size_in_each_unit(unit: str, text: str, size: int) -> None:
    data = text.encode()
    assert SizeLimit(1, unit, "x").measure(data) == size
    assert SizeLimit(1, unit, "x").excess(data) == size - 1
    assert SizeLimit(size, unit, "x").excess(data) == 0


def test_limits_of_the_options() -> None:
    assert size_limits(ResultOptions(max_items=3, max_bytes=0)) == ()
    options = ResultOptions(max_bytes=9, max_tokens=8, caller_limit=OUTPUT_LIMITS["claude-code"])
    assert size_limits(options) == (
        SizeLimit(9, "bytes", "max-bytes"),
        SizeLimit(8, "tokens", "max-tokens"),
        SizeLimit(30_000, "bytes", CALLER_LIMIT),
    )


def test_limit_of_an_agent_leaves_room_for_stderr() -> None:
    codex = OUTPUT_LIMITS["codex"]
    for argv, amount in (
        (None, 9_000),
        (("list", "--name", "ü" * 10), 9_000 - 7 - 9 - 23),
        (("x" * 9_000,), 6_500),
    ):
        options = ResultOptions(max_bytes=50, caller_limit=codex, argv=argv)
        own, of_caller = size_limits(options, has_notes_on_stderr=True)
        assert (own.amount, of_caller.amount) == (50, amount)


def test_first_limit_that_is_exceeded() -> None:
    limits = (SizeLimit(100, "bytes", "max-bytes"), SizeLimit(3, "tokens", "max-tokens"))
    assert exceeded_limit(limits, b"1 2") is None
    assert exceeded_limit(limits, b"1,2,3") == (limits[1], 2)
    assert exceeded_limit(limits, b"x" * 101) == (limits[0], 1)
    assert exceeded_limit((), b"x" * 101) is None


def test_required_value_of_the_option() -> None:
    tokens, bytes_, caller = (
        SizeLimit(3, "tokens", "max-tokens"),
        SizeLimit(3, "bytes", "max-bytes"),
        SizeLimit(3, "characters", CALLER_LIMIT),
    )
    assert tokens.required(b"1,2,3", exact=True) == 5
    assert bytes_.required(b"1,2,3", exact=True) == 5
    assert (caller.option, caller.required("ü".encode(), exact=True)) == ("max-bytes", 2)
    for limit in (tokens, bytes_, caller):
        assert limit.required(b"1,2,3") > limit.required(b"1,2,3", exact=True)


@pytest.mark.parametrize("unit", ["bytes", "characters", "tokens"])
def test_text_within_a_limit_has_at_most_max_bytes(unit: str) -> None:
    for text in ("\n" * 500, "-" * 500, "龘" * 90, "😀" * 90, "x" * 200):
        data = text.encode()
        limit = SizeLimit(SizeLimit(1, unit, "x").measure(data), unit, "x")
        assert len(data) <= limit.max_bytes
