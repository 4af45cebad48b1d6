"""Seals: a small message that goes out to a client and must come back as it went, once.

    seal({"tool": …}) ──▶ text ──▶ the client ──▶ text ──▶ unseal ──▶ {"tool": …}

Signed with a key of this process, or with one that several share: `TOOLI_SEAL_KEY`, or that
of the process that they were forked from.
Every seal says when it ends and can be used once; where the key is shared, so is the memory
of what was used.
"""

from __future__ import annotations

import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from threading import Lock
from time import time

from tooli.state.keys import BrokenSeal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LASTS = 600.0
"""Seconds for which a seal holds at most."""

_key: bytes | None = None
_shared = False
_used: dict[str, float] = {}
_spending = Lock()  # of two that bring the same seal at once, one is first


def seal(message: Mapping[str, Any], lasts: float = LASTS) -> str:
    """The message as text that nobody else can make or change."""
    from json import dumps

    body = {**message, "_ends": time() + min(lasts, LASTS), "_once": os.urandom(12).hex()}
    data = dumps(body, separators=(",", ":"), sort_keys=True).encode()
    return f"{_as_text(data)}.{_as_text(_sign(data))}"


def unseal(text: str) -> dict[str, Any]:
    """The message that was sealed; raises BrokenSeal. From now on the seal is used."""
    from json import loads

    head, _, signature = text.partition(".")
    try:
        data, signed = _as_bytes(head), _as_bytes(signature)
    except ValueError:
        raise BrokenSeal("it is not a seal") from None
    if not hmac.compare_digest(_sign(data), signed):
        raise BrokenSeal("it was changed, or comes from another server")
    message: dict[str, Any] = loads(data)
    ends, once = message.pop("_ends"), message.pop("_once")
    if ends < time():
        raise BrokenSeal("its time is over")
    if not _spend(once, ends):
        raise BrokenSeal("it was used before")
    return message


def share() -> None:
    """Make the key now: the processes that are forked from this one are to share it."""
    global _shared
    _sign(b"")
    _shared = True


def _sign(data: bytes) -> bytes:
    global _key, _shared
    if _key is None:
        said = os.environ.get("TOOLI_SEAL_KEY")
        _key = sha256(said.encode()).digest() if said else os.urandom(32)
        _shared = bool(said)
    return hmac.new(_key, data, sha256).digest()


def _spend(once: str, ends: float) -> bool:
    """Whether this is the first use of a seal."""
    now = time()
    with _spending:
        for old in [name for name, end in _used.items() if end < now]:
            del _used[old]
        if once in _used:
            return False
        _used[once] = ends
    if not _shared:
        return True
    from tooli.state.home import state_home
    from tooli.state.marks import claim

    try:
        return claim(os.path.join(state_home(), "seals"), once, 2 * LASTS)
    except OSError:  # what cannot be known is not let through
        return False


def _as_text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _as_bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
