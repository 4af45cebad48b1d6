"""The key under which everything that a caller uses is counted.

Limits of connections, requests, sessions, rates, approvals and stored outcomes use it.
"""

from __future__ import annotations

from socket import AF_INET6, inet_pton

_IPV4_MAPPED_PREFIX = bytes(10) + b"\xff\xff"
_IPV6_LOOPBACK = bytes(15) + b"\x01"
_LOOPBACK = "loopback"


def caller_key(principal: str | None, address: str | None) -> str:
    """Return the key of a caller: its verified principal, or else its network address.

    The prefix separates a principal from an address that looks the same.
    """
    return address_group(address or "") if principal is None else f"principal {principal}"


def address_group(address: str) -> str:
    """Return the key of an address, which other addresses of the same client share.

    One client usually has a whole /64 network of IPv6 addresses, so the network is counted. A local
    client can use every address in 127.0.0.0/8, so these and ::1 count as one address.
    """
    if ":" not in address:
        return _LOOPBACK if address.startswith("127.") else address
    try:
        packed = inet_pton(AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return address
    if packed.startswith(_IPV4_MAPPED_PREFIX):
        return address_group(".".join([str(byte) for byte in packed[12:]]))
    return _LOOPBACK if packed == _IPV6_LOOPBACK else f"{packed[:8].hex()}/64"
