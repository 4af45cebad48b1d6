"""Limits per caller: counting."""

from __future__ import annotations

from tooli.serving.caller_limits import CallerLimit


def test_each_caller_has_its_own_limit() -> None:
    limit = CallerLimit(2)
    assert [limit.acquire("a") for _ in range(3)] == [True, True, False]
    assert limit.acquire("b")
    limit.release("a")
    assert limit.acquire("a")
    assert not limit.acquire("a")
    for caller in ("a", "a", "b"):
        limit.release(caller)
    assert limit._counts == {}
