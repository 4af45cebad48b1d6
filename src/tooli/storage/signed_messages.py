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

from tooli.storage.signing_keys import InvalidSignature

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_TTL_SECONDS = 600.0
"""Seconds for which a seal holds at most."""

_signing_key: bytes | None = None
_is_key_shared = False
_used_nonces: dict[str, float] = {}
_nonce_lock = Lock()  # of two that bring the same seal at once, one is first


def sign_message(message: Mapping[str, Any], ttl: float = MAX_TTL_SECONDS) -> str:
    """The message as text that nobody else can make or change."""
    from json import dumps

    body = {**message, "_ends": time() + min(ttl, MAX_TTL_SECONDS), "_once": os.urandom(12).hex()}
    data = dumps(body, separators=(",", ":"), sort_keys=True).encode()
    return f"{_encode_base64url(data)}.{_encode_base64url(_sign(data))}"


def verify_message(text: str) -> dict[str, Any]:
    """The message that was sealed; raises BrokenSeal. From now on the seal is used."""
    from json import loads

    head, _, signature = text.partition(".")
    try:
        data, signed = _decode_base64url(head), _decode_base64url(signature)
    except ValueError:
        raise InvalidSignature("it is not a seal") from None
    if not hmac.compare_digest(_sign(data), signed):
        raise InvalidSignature("it was changed, or comes from another server")
    message: dict[str, Any] = loads(data)
    expires_at, nonce = message.pop("_ends"), message.pop("_once")
    if expires_at < time():
        raise InvalidSignature("its time is over")
    if not _claim_nonce(nonce, expires_at):
        raise InvalidSignature("it was used before")
    return message


def share_key() -> None:
    """Make the key now: the processes that are forked from this one are to share it."""
    global _is_key_shared
    _sign(b"")
    _is_key_shared = True


def _sign(data: bytes) -> bytes:
    global _signing_key, _is_key_shared
    if _signing_key is None:
        secret = os.environ.get("TOOLI_SEAL_KEY")
        _signing_key = sha256(secret.encode()).digest() if secret else os.urandom(32)
        _is_key_shared = bool(secret)
    return hmac.new(_signing_key, data, sha256).digest()


def _claim_nonce(nonce: str, expires_at: float) -> bool:
    """Whether this is the first use of a seal."""
    now = time()
    with _nonce_lock:
        for old in [name for name, end in _used_nonces.items() if end < now]:
            del _used_nonces[old]
        if nonce in _used_nonces:
            return False
        _used_nonces[nonce] = expires_at
    if not _is_key_shared:
        return True
    from tooli.storage.once_files import claim_once
    from tooli.storage.state_dir import get_state_dir

    try:
        return claim_once(os.path.join(get_state_dir(), "seals"), nonce, 2 * MAX_TTL_SECONDS)
    except OSError:  # what cannot be known is not let through
        return False


def _encode_base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decode_base64url(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
