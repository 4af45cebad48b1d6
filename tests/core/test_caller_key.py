"""The key of a caller: its principal, or the group of its address."""

from __future__ import annotations

import pytest

from tooli.core.caller_key import address_group, caller_key


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
        ("::1", "127.0.0.1", True),
        ("127.0.0.1", "127.255.3.4", True),
        ("127.0.0.1", "::ffff:127.0.0.2", True),
        ("::1", "::2", False),
        ("127.0.0.1", "128.0.0.1", False),
        ("not:an:address", "not:an:address", True),
        ("", "network", False),
    ],
)
def test_addresses_of_one_network_have_one_key(one: str, other: str, is_same: bool) -> None:
    assert (address_group(one) == address_group(other)) is is_same


def test_principal_has_its_own_key() -> None:
    assert caller_key("ada", "127.0.0.1") == caller_key("ada", "10.0.0.1")
    assert caller_key("10.0.0.1", None) != caller_key(None, "10.0.0.1")
    assert caller_key(None, None) == ""
