"""Limits, behaviors and guards of a tool, and the properties of its parameters."""

from __future__ import annotations

import pytest

from tooli.core.call_secrets import ReceivedSecret, call_secrets
from tooli.core.definitions import is_rate_limit
from tooli.core.tool import (
    Behavior,
    Choice,
    Guard,
    ListOf,
    Maybe,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    cut_message,
    is_bool,
    is_path,
    is_structured,
    quote,
)


@pytest.mark.parametrize("rate", ["1/second", "60/minute", "10000/hour", "5/day"])
def test_valid_rate_limit(rate: str) -> None:
    assert is_rate_limit(rate)


@pytest.mark.parametrize(
    "rate",
    [
        *("", "60", "/minute", "0/minute", "05/minute", "10001/minute", "1/week", "-1/day"),
        *("1.5/day", "1 /day", "٣/day", 60, None, True),
    ],
)
def test_invalid_rate_limit(rate: object) -> None:
    assert not is_rate_limit(rate)


def test_behaviors_combine() -> None:
    both = Behavior(read_only=True) | Behavior(idempotent=True)
    assert both == Behavior(read_only=True, idempotent=True)
    assert both.labels() == ("read-only", "idempotent")


def test_guard_needs_approval_or_a_human() -> None:
    assert not Guard().may_need_approval
    assert Guard(approval=True).needs_human
    assert Guard(human_in_the_loop=True).needs_human
    assert not Guard(danger="critical").needs_human
    assert Guard(danger="critical").may_need_approval
    assert not Guard(danger="high").may_need_approval


def test_shape_predicates_look_into_containers() -> None:
    flag, path = Scalar(bool), PathShape(str)
    assert is_bool(Maybe(flag))
    assert not is_bool(ListOf(flag))
    assert is_path(Maybe(ListOf(path)))
    assert is_path(TupleOf((flag, path)))
    assert not is_path(flag)
    assert is_structured(ListOf(Structured(dict)))
    assert not is_structured(flag)


def test_labels_of_choices_are_text() -> None:
    assert Choice((1, "b")).labels == ["1", "b"]


class TestQuote:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("short", "'short'"),
            (5, "5"),
            ("x" * 101, f"'{'x' * 100}'… (101 characters)"),
            (10**5000, "the number"),
            ([1] * 10**6, "a list with 1000000 items"),
            ({1: 2}, "an object with 1 items"),
        ],
        ids=["text", "number", "long text", "digits", "list", "dict"],
    )
    def test_long_values_are_cut(self, value: object, text: str) -> None:
        assert quote(value) == text


@pytest.mark.parametrize("text", ["secret" * 1000, ["secret" * 1000]])
def test_long_value_is_not_cut_in_a_call_with_secrets(text: object) -> None:
    """A secret that is cut in the middle could not be recognized and hidden."""
    token = call_secrets.set([ReceivedSecret("secret" * 1000)])
    try:
        assert "secret" not in quote(text)
        assert cut_message("secret" * 1000) == "the value is not valid"
        assert cut_message("short") == "short"
    finally:
        call_secrets.reset(token)
