"""Limits per caller: how many requests, connections and sessions one caller may have open.

Only servers over HTTP use this module.
"""

from __future__ import annotations

from socket import AF_INET6, inet_pton

_IPV4_MAPPED_PREFIX = bytes(10) + b"\xff\xff"


def caller_share(limit: int) -> int:
    """Return how much of a limit one caller may use: three quarters, so that others have room."""
    return max(1, limit - max(1, limit // 4))


def caller_key(principal: str | None, address: str | None) -> str:
    """Return the key under which everything that a caller has open is counted.

    The prefix separates a principal from an address that looks the same.
    """
    return address_group(address or "") if principal is None else f"principal {principal}"


def address_group(address: str) -> str:
    """Return the key under which the connections and sessions of an address are counted.

    One client usually has a whole /64 network of IPv6 addresses, so the network is counted.
    """
    if ":" not in address:
        return address
    try:
        packed = inet_pton(AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return address
    if packed.startswith(_IPV4_MAPPED_PREFIX):
        return ".".join([str(byte) for byte in packed[12:]])
    return f"{packed[:8].hex()}/64"


class CallerLimit:
    """Counts what each caller has open, and limits it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._counts: dict[str, int] = {}

    def acquire(self, caller: str, others: int = 0) -> bool:
        """Count one more for a caller; return False if the caller is at the limit.

        `others` are open too, but they are counted elsewhere.
        """
        count = self._counts.get(caller, 0)
        if count + others >= self.limit:
            return False
        self._counts[caller] = count + 1
        return True

    def force_acquire(self, caller: str) -> None:
        """Count one more for a caller, even if the caller is at the limit."""
        self._counts[caller] = self._counts.get(caller, 0) + 1

    def release(self, caller: str) -> None:
        """Count one less for a caller."""
        count = self._counts[caller]
        if count > 1:
            self._counts[caller] = count - 1
        else:
            del self._counts[caller]
