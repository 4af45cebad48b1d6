"""Limits per caller: the key of an address, and counting."""

from __future__ import annotations

import pytest

from tooli.serving.caller_limits import CallerLimit, address_group


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8:0:0:ffff::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::1", "127.0.0.1", False),
        ("not:an:address", "not:an:address", True),
        ("", "network", False),
    ],
)
def test_addresses_of_one_network_have_one_key(one: str, other: str, is_same: bool) -> None:
    assert (address_group(one) == address_group(other)) is is_same


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
