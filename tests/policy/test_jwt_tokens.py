"""The claims of access tokens. Signatures are tested with the verifier."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc.jwk import RSAKey

from tooli.policy.jwt_tokens import (
    ExpectedClaims,
    Identity,
    TokenRejected,
    has_audience,
    identity_from_claims,
    parse_header,
    verify_jwt,
)
from tooli.policy.verification_keys import VerificationKey, parse_jwks

KEY = RSAKey.generate_key(2048)
ACCESS = ExpectedClaims("https://issuer", ("https://shop", "https://shop/mcp"), True)


def b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def claims(**changed: Any) -> dict[str, Any]:
    found = {
        "iss": "https://issuer",
        "aud": "https://shop",
        "sub": "ada",
        "exp": time.time() + 600,
        **changed,
    }
    return {name: value for name, value in found.items() if value is not None}


def rejection(expected: ExpectedClaims = ACCESS, **changed: Any) -> str:
    with pytest.raises(TokenRejected) as caught:
        identity_from_claims(claims(**changed), expected)
    return str(caught.value)


def test_identity_has_subject_scopes_and_expiry() -> None:
    expires_at = time.time() + 60
    found = identity_from_claims(claims(scope="a b", exp=expires_at), ACCESS)
    assert found == Identity("ada", frozenset({"a", "b"}), expires_at)


@pytest.mark.parametrize("audience", ["https://shop", "https://shop/mcp", ["x", "https://shop"]])
def test_one_of_the_audiences_is_enough(audience: Any) -> None:
    assert identity_from_claims(claims(aud=audience), ACCESS).principal == "ada"


@pytest.mark.parametrize("audience", ["https://shop/", "https://other", ["x"], [], 5, {}])
def test_other_audiences_are_rejected(audience: Any) -> None:
    assert "audience" in rejection(aud=audience) or "aud" in rejection(aud=audience)


@pytest.mark.parametrize(
    ("changed", "principal"),
    [
        ({"sub": None, "client_id": "robot"}, "client:robot"),
        ({"sub": None, "azp": "robot"}, "client:robot"),
        ({"client_id": "robot"}, "ada"),
        ({"sub": "client:robot", "client_id": "robot"}, "client:robot"),
    ],
)
def test_token_of_a_client_has_its_id_as_subject(changed: Any, principal: str) -> None:
    assert identity_from_claims(claims(**changed), ACCESS).principal == principal


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sub": None}, "has no sub"),
        ({"sub": None, "client_id": 5}, "has no sub"),
        ({"sub": ""}, "invalid claim"),
        ({"sub": "a\nb"}, "invalid subject"),
        ({"sub": 5}, "invalid claim"),
        ({"sub": "client:robot"}, "form of a client"),
        ({"sub": "client:robot", "client_id": "other"}, "form of a client"),
        ({"cnf": {"jkt": "x"}}, "bound to a key"),
        ({"exp": None}, "has no exp"),
        ({"exp": 1}, "has expired"),
        ({"exp": float("inf")}, "invalid claim"),
        ({"nbf": time.time() + 6000}, "not valid yet"),
        ({"iat": time.time() + 6000}, "not valid yet"),
        ({"iss": "https://other"}, "another issuer"),
        ({"iss": None}, "has no iss"),
        ({"aud": None}, "has no aud"),
    ],
)
def test_invalid_claims_are_rejected(changed: Any, reason: str) -> None:
    assert reason in rejection(**changed)


def test_clocks_may_differ() -> None:
    now = time.time()
    identity_from_claims(claims(exp=now - 20, nbf=now + 20, iat=now + 20), ACCESS)


def test_binding_to_a_key_is_only_checked_for_access_tokens() -> None:
    own = ExpectedClaims("https://issuer", ("https://shop",))
    assert identity_from_claims(claims(cnf={"jkt": "x"}), own).principal == "ada"
    assert "has no sub" in rejection(own, sub=None, client_id="robot")


def test_audience_needs_a_setting() -> None:
    assert "no token_audience" in rejection(ExpectedClaims())


def test_audience_can_be_a_text_or_a_list() -> None:
    assert has_audience("a", ("a", "b"))
    assert has_audience(["x", "b"], ("a", "b"))
    assert not has_audience("ab", ("a",))
    assert not has_audience(None, ("a",))


def signed(kind: object) -> tuple[bytes, tuple[VerificationKey, ...]]:
    """Return a token whose header has a type, and the keys that verify it."""
    head = b64(json.dumps({"alg": "RS256", **({} if kind is None else {"typ": kind})}).encode())
    data = head + b"." + b64(json.dumps(claims()).encode())
    signature = KEY.private_key.sign(data, PKCS1v15(), SHA256())
    keys = parse_jwks(json.dumps({"keys": [KEY.as_dict(private=False)]}).encode())
    return data + b"." + b64(signature), keys


@pytest.mark.parametrize("kind", ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", None])
def test_types_of_access_tokens_are_accepted(kind: str | None) -> None:
    assert verify_jwt(*signed(kind), ACCESS).principal == "ada"


@pytest.mark.parametrize("kind", ["logout+jwt", "dpop+jwt", "", 5, ["at+jwt"]])
def test_tokens_for_another_purpose_are_rejected(kind: object) -> None:
    with pytest.raises(TokenRejected, match="not an access token"):
        verify_jwt(*signed(kind), ACCESS)


@pytest.mark.parametrize(
    "token", [b"", b".", b"!!.x.y", b"W10.x.y", b"NQ.x.y", b"W1tb.x.y", b"_w.x.y"]
)
def test_malformed_headers_are_rejected(token: bytes) -> None:
    with pytest.raises(TokenRejected, match="malformed"):
        parse_header(token)
