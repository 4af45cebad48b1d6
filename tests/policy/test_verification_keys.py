"""Keys of an authorization server. Files with keys are tested with the verifier."""

from __future__ import annotations

import json
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey

from tooli.policy import verification_keys
from tooli.policy.verification_keys import parse_jwks, require_joserfc
from tooli.storage.state_files import UnusableFile

RSA, EC = RSAKey.generate_key(2048), ECKey.generate_key("P-256")


def jwks(*keys: Any) -> bytes:
    return json.dumps({"keys": [*keys]}).encode()


def test_only_public_keys_for_signatures_are_used() -> None:
    secret = OctKey.generate_key(256).as_dict(private=True)
    found = parse_jwks(
        jwks(
            {**secret, "alg": "HS256"},
            EC.as_dict(private=True),  # everyone can sign with it
            {**RSA.as_dict(private=False), "use": "enc"},
            {**RSA.as_dict(private=False), "alg": "none"},
            {**RSA.as_dict(private=False), "alg": "HS256"},
            {"kty": "RSA", "n": "AA", "e": "AQAB"},
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
            {"kty": ["RSA"]},
            5,
            {**RSA.as_dict(private=False), "kid": "good"},
        )
    )
    assert [(key.key_id, key.algorithms[0]) for key in found] == [("good", "RS256")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"nonsense", "JSON"),
        (b"[]", "not a JWKS"),
        (json.dumps(RSA.as_dict(private=False)).encode(), "not a JWKS"),
        (b'{"keys": 5}', "list"),
        (jwks(), "no key"),
        (jwks({"kty": "oct", "k": "AAAA"}), "no key"),
        (jwks(*[EC.as_dict(private=False)] * 65), "at most 64"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_unusable_sets_are_rejected(data: bytes, reason: str) -> None:
    with pytest.raises(UnusableFile, match=reason):
        parse_jwks(data)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "joserfc.jwk", None)
    with pytest.raises(UnusableFile, match=r"pip install 'tooli\[auth\]"):
        require_joserfc()
    with pytest.raises(UnusableFile):
        verification_keys.parse_keys(b"x" * 40)
