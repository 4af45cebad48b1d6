"""Plan tokens: a plan that somebody has seen, as a word that lets exactly that be run, once.

    "p" + base64( when it ends │ which one │ the call │ the plan │ a mark for each action │ seal )

Sealed with a key of the user's, so that nobody makes one without having planned. There is a mark
for each that was used.
"""

from __future__ import annotations

import os
from time import time

from tooli.core.record import Record
from tooli.pipeline.call_fingerprint import digest
from tooli.storage.once_files import claim_once, release_claim
from tooli.storage.signing_keys import (
    InvalidSignature,
    decode_signed,
    encode_signed,
    load_or_create_key,
)
from tooli.storage.state_dir import get_state_dir

PLAN_TTL_SECONDS = 3600
"""Seconds for which a plan can be applied."""
_EXPIRY_BYTES, _NONCE_BYTES, _BINDING_BYTES, _PLAN_DIGEST_BYTES, _SIGNATURE_BYTES = 5, 8, 12, 16, 16
_MIN_BODY_BYTES = _EXPIRY_BYTES + _NONCE_BYTES + _BINDING_BYTES + _PLAN_DIGEST_BYTES


class InvalidPlanToken(ValueError):  # noqa: N818
    """The text is no token of ours, was changed, or its time is over; the message says which."""


class PlanToken(Record):
    """What a token says."""

    expires_at: int
    nonce: bytes
    binding: bytes
    plan_digest: bytes
    action_digests: bytes = b""


def compute_plan_binding(fingerprint: str, principal: str | None) -> bytes:
    """What ties a plan to a call: tool, arguments, whoever asks, and the folder they ask from."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""
    bound_text = "\0".join((fingerprint, principal or "", folder))
    return digest(bound_text.encode("utf-8", "surrogatepass"), _BINDING_BYTES)


def encode_plan_token(binding: bytes, plan: str, action_digests: bytes) -> str | None:
    """The token for a plan; None where no key can be kept."""
    key = load_or_create_key("plans")
    if key is None:
        return None
    expires_at = int(time()) + PLAN_TTL_SECONDS
    body = (
        expires_at.to_bytes(_EXPIRY_BYTES, "big")
        + os.urandom(_NONCE_BYTES)
        + binding
        + bytes.fromhex(plan)
        + action_digests
    )
    return encode_signed("p", body, key, _SIGNATURE_BYTES)


def decode_plan_token(text: str) -> PlanToken:
    """What a token says; raises BrokenToken."""
    key = load_or_create_key("plans")
    if key is None:
        raise InvalidPlanToken("no key for plans can be kept here")
    try:
        body = decode_signed("p", text, key, _SIGNATURE_BYTES)
    except InvalidSignature:
        raise InvalidPlanToken("it was changed, or made by somebody else") from None
    if body is None or len(body) < _MIN_BODY_BYTES:
        raise InvalidPlanToken("it is none")
    expires_at = int.from_bytes(body[:_EXPIRY_BYTES], "big")
    if expires_at < time():
        raise InvalidPlanToken("its time is over")
    nonce, rest = (
        body[_EXPIRY_BYTES : _EXPIRY_BYTES + _NONCE_BYTES],
        body[_EXPIRY_BYTES + _NONCE_BYTES :],
    )
    binding, rest = rest[:_BINDING_BYTES], rest[_BINDING_BYTES:]
    return PlanToken(
        expires_at, nonce, binding, rest[:_PLAN_DIGEST_BYTES], rest[_PLAN_DIGEST_BYTES:]
    )


def claim_plan_token(token: PlanToken) -> bool:
    """Whether this is the first use of a token; an OSError where that cannot be known."""
    return claim_once(_used_tokens_dir(), token.nonce.hex(), 2 * PLAN_TTL_SECONDS)


def release_plan_token(token: PlanToken) -> None:
    """Let a token be used again: its plan was not run."""
    release_claim(_used_tokens_dir(), token.nonce.hex())


def _used_tokens_dir() -> str:
    return os.path.join(get_state_dir(), "plans")
