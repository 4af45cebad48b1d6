"""Plan tokens: signed tokens that allow a call to run exactly the plan of its dry run, once.

    "p" + base64url( expiry │ nonce │ binding │ plan digest │ action digests │ signature )

Tokens are signed with a key of the user, so only a dry run can create one. A marker file records
each used token.
"""

from __future__ import annotations

import os

from tooli.core.call_fingerprint import digest
from tooli.core.record import Record
from tooli.storage.signing import (
    InvalidToken,
    decode_expiring_token,
    encode_expiring_token,
    load_or_create_key,
)
from tooli.storage.state_files import claim_once, get_state_dir, release_claim

PLAN_TTL_SECONDS = 3600
"""Seconds for which a plan can be applied."""
_BINDING_BYTES, _PLAN_DIGEST_BYTES, _SIGNATURE_BYTES = 12, 16, 16


class PlanToken(Record):
    """The content of a plan token."""

    nonce: str
    binding: bytes
    plan_digest: bytes
    action_digests: bytes = b""


def compute_plan_binding(fingerprint: str, principal: str | None) -> bytes:
    """Return the bytes that bind a plan to a call, its principal and the current folder.

    Args:
        fingerprint: fingerprint of the call: its tool and arguments.
        principal: the authenticated caller, if there is one.
    """
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""
    bound_text = "\0".join((fingerprint, principal or "", folder))
    return digest(bound_text.encode("utf-8", "surrogatepass"), _BINDING_BYTES)


def encode_plan_token(binding: bytes, plan_digest: str, action_digests: bytes) -> str | None:
    """Return the token for a plan; None if no key can be kept.

    Args:
        binding: result of `compute_plan_binding`.
        plan_digest: digest of the plan, in hexadecimal digits.
        action_digests: digests of its actions, one after the other.
    """
    key = load_or_create_key("plans")
    if key is None:
        return None
    payload = binding + bytes.fromhex(plan_digest) + action_digests
    return encode_expiring_token("p", payload, key, _SIGNATURE_BYTES, PLAN_TTL_SECONDS)


def decode_plan_token(text: str) -> PlanToken:
    """Return the content of a plan token; raise InvalidToken."""
    key = load_or_create_key("plans")
    if key is None:
        raise InvalidToken("the key for plans cannot be read in the state directory")
    token = decode_expiring_token("p", text, key, _SIGNATURE_BYTES)
    binding, rest = token.payload[:_BINDING_BYTES], token.payload[_BINDING_BYTES:]
    if len(rest) < _PLAN_DIGEST_BYTES:
        raise InvalidToken("it is malformed")
    return PlanToken(token.nonce, binding, rest[:_PLAN_DIGEST_BYTES], rest[_PLAN_DIGEST_BYTES:])


def claim_plan_token(token: PlanToken) -> bool:
    """Mark a token as used; return False if it was used before.

    Raises:
        OSError: the marker can be neither created nor found.
    """
    return claim_once(_used_tokens_dir(), token.nonce, 2 * PLAN_TTL_SECONDS)


def release_plan_token(token: PlanToken) -> None:
    """Allow a token to be used again, because its plan did not run."""
    release_claim(_used_tokens_dir(), token.nonce)


def _used_tokens_dir() -> str:
    return os.path.join(get_state_dir(), "plans")
